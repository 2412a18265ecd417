//! All figures together, and their texts.

use super::Stats;
use super::json::Json;
use super::open_metrics::OpenMetrics;
use super::rows::{ClassStats, HeapStats};
use core::fmt;

/// A snapshot with a row for each size class and each heap. [`Freestone::with_details`](crate::Freestone::with_details) takes one.
///
/// ```
/// use freestone::Freestone;
///
/// #[global_allocator]
/// static ALLOCATOR: Freestone = Freestone;
///
/// let numbers = vec![0_u64; 1000];
/// let sum = ALLOCATOR.with_details(|details| details.classes.iter().map(|class| class.live).sum::<u64>());
/// assert!(sum.expect("memory for the rows") >= 8 * numbers.len() as u64);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Details<'a> {
    /// The process.
    pub stats: Stats,
    /// The size classes from the smallest to the largest, then one row for large blocks. `stats.live`, `stats.cached` and the counts of blocks
    /// are sums over them.
    pub classes: &'a [ClassStats],
    /// The heaps that are alive, one per thread that has allocated, and explicit ones.
    pub heaps: &'a [HeapStats],
}

impl Details<'_> {
    /// The figures as OpenMetrics text, which Prometheus reads. Formatting it allocates nothing.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// let text = ALLOCATOR.with_details(|details| details.open_metrics().to_string()).expect("memory for the rows");
    /// assert!(text.contains("# TYPE freestone_live_bytes gauge\n") && text.ends_with("# EOF\n"));
    /// ```
    #[must_use]
    pub fn open_metrics(&self) -> impl fmt::Display {
        OpenMetrics { stats: self.stats, classes: self.classes, heaps: self.heaps }
    }

    /// The figures as one JSON object, on one line without an end of line. Formatting it allocates nothing.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// let text = ALLOCATOR.with_details(|details| details.json().to_string()).expect("memory for the rows");
    /// assert!(text.starts_with("{\"version\":"));
    /// ```
    #[must_use]
    pub fn json(&self) -> impl fmt::Display {
        Json { stats: self.stats, classes: self.classes, heaps: self.heaps }
    }
}
