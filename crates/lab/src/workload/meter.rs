//! Measures one section of a workload: wall clock, processor time, faults, peak memory, counters.
//!
//! Invariant: exactly one section a run. Nothing between the two clock reads belongs to the lab but the section itself, and the
//! sampler's thread where a workload asks for one.
//!
//! The section runs inside [`freestone_measured_section`], a function that callgrind can be told to count alone.

use super::counters::HardwareCounters;
use super::process_view::{self, RssReader, Usage};
use crate::record::Counters;
use std::time::{Duration, Instant};

/// What one section took.
#[derive(Clone)]
pub(crate) struct Measured {
    /// Wall-clock time in nanoseconds, without the time a workload slept on purpose.
    pub(crate) wall_ns: u64,
    /// Processor time and faults.
    pub(crate) usage: Usage,
    /// Largest resident size.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Resident size at the start.
    pub(crate) start_rss_bytes: Option<u64>,
    /// Hardware counters.
    pub(crate) counters: Counters,
}

/// Runs the section and keeps what it took.
#[derive(Default)]
pub(crate) struct Meter {
    measured: Option<Measured>,
    counts_children: bool,
    rss_series: Vec<(u64, u64)>,
}

impl Meter {
    /// Adds the time and faults of children to the section's; its peak is then that of the largest process.
    pub(crate) fn count_children(&mut self) {
        self.counts_children = true;
    }

    /// Runs and measures the section.
    pub(crate) fn section<T>(&mut self, section: impl FnOnce(&mut Sampler) -> T) -> T {
        let mut counters = HardwareCounters::open();
        let mut sampler = Sampler::new();
        process_view::forget_peak_rss();
        let start_rss_bytes = sampler.reader.as_ref().map(RssReader::bytes);
        let before = self.usage();
        if let Ok(counters) = &mut counters {
            counters.start();
        }
        sampler.began = Instant::now();
        let result = freestone_measured_section(section, &mut sampler);
        let wall = sampler.began.elapsed().saturating_sub(sampler.slept);
        let counters = match &mut counters {
            Ok(counters) => counters.stop(),
            Err(reason) => Counters::Absent(reason.clone()),
        };
        let usage = self.usage().since(before);
        self.rss_series = sampler.series;
        self.measured = Some(Measured {
            wall_ns: wall.as_nanos() as u64,
            usage,
            peak_rss_bytes: process_view::peak_rss_bytes().max(self.counts_children.then(Usage::largest_child_bytes)),
            start_rss_bytes,
            counters,
        });
        result
    }

    /// What was measured, and the samples taken on the way; `None` when the workload never ran a section.
    pub(crate) fn finish(self) -> Option<(Measured, Vec<(u64, u64)>)> {
        Some((self.measured?, self.rss_series))
    }

    fn usage(&self) -> Usage {
        let own = Usage::of_self();
        if self.counts_children { own.plus(Usage::of_children()) } else { own }
    }
}

/// Takes samples of the resident size inside a section, without allocating.
pub(crate) struct Sampler {
    reader: Option<RssReader>,
    began: Instant,
    slept: Duration,
    series: Vec<(u64, u64)>,
}

impl Sampler {
    fn new() -> Self {
        Self {
            reader: RssReader::open(),
            began: Instant::now(),
            slept: Duration::ZERO,
            series: Vec::with_capacity(4096),
        }
    }

    /// Records the resident size now and returns it; 0 where the kernel does not say.
    pub(crate) fn sample(&mut self) -> u64 {
        let bytes = self.reader.as_ref().map_or(0, RssReader::bytes);
        if self.series.len() < self.series.capacity() {
            self.series.push((self.began.elapsed().as_millis() as u64, bytes));
        }
        bytes
    }

    /// Sleeps for `duration`, taking a sample every `step`.
    pub(crate) fn sleep(&mut self, duration: Duration, step: Duration) {
        let began = Instant::now();
        while began.elapsed() < duration {
            self.sample();
            std::thread::sleep(step.min(duration.saturating_sub(began.elapsed())));
        }
        self.slept += began.elapsed();
        self.sample();
    }
}

/// The measured section, under a name that callgrind can be told to count alone.
#[inline(never)]
fn freestone_measured_section<T>(section: impl FnOnce(&mut Sampler) -> T, sampler: &mut Sampler) -> T {
    section(sampler)
}
