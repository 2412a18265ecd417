//! The figures as one JSON object.
//!
//! ```text
//! {"version":"0.1.0","live_bytes":…,…,"dirty_by_age_bytes":[…],"by_class":[{"kind":"small","size":16,…},…],"by_heap":[{"heap":1,"kind":"thread",…},…]}
//! ```
//!
//! Numbers are whole. The row of the large blocks has no `size`.

use super::Stats;
use super::figures::Row;
use super::rows::{ClassStats, HeapStats};
use core::fmt::{self, Display, Formatter};

/// The text. See the module header.
pub(super) struct Json<'a> {
    pub(super) stats: Stats,
    pub(super) classes: &'a [ClassStats],
    pub(super) heaps: &'a [HeapStats],
}

impl Display for Json<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { stats, classes, heaps } = *self;
        write!(f, "{{\"version\":\"{}\"", env!("CARGO_PKG_VERSION"))?;
        write_members(f, &stats)?;
        let [quarter, half, whole, longer] = stats.dirty_by_age;
        write!(f, ",\"dirty_by_age_bytes\":[{quarter},{half},{whole},{longer}],\"by_class\":")?;
        write_list(f, classes.iter().filter(|row| row.has_figures()), |f, row| {
            if row.block_bytes == 0 {
                f.write_str("\"kind\":\"large\"")?
            } else {
                write!(f, "\"kind\":\"small\",\"size\":{}", row.block_bytes)?
            }
            write_members(f, row)
        })?;
        f.write_str(",\"by_heap\":")?;
        write_list(f, heaps.iter(), |f, row| {
            write!(f, "\"heap\":{},\"kind\":\"{}\"", row.number, row.kind.name())?;
            if row.thread_id != 0 {
                write!(f, ",\"thread_id\":{}", row.thread_id)?;
            }
            write_members(f, row)
        })?;
        f.write_str("}")
    }
}

/// Writes the figures of a row, each behind a comma.
fn write_members<T: Row>(f: &mut Formatter<'_>, row: &T) -> fmt::Result {
    T::FIGURES.iter().enumerate().try_for_each(|(at, figure)| match row.value(at) {
        Some(number) => write_member(f, figure.name(), number),
        None => Ok(()),
    })
}

/// Writes one figure. One function for rows of all kinds.
#[inline(never)]
fn write_member(f: &mut Formatter<'_>, name: &str, number: u64) -> fmt::Result {
    write!(f, ",\"{name}\":{number}")
}

/// Writes an array of objects, whose members `write` writes.
fn write_list<T>(
    f: &mut Formatter<'_>,
    rows: impl Iterator<Item = T>,
    write: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str("[")?;
    for (at, row) in rows.enumerate() {
        f.write_str(if at == 0 { "{" } else { ",{" })?;
        write(f, row)?;
        f.write_str("}")?;
    }
    f.write_str("]")
}
