//! The table of all figures that are exported: name, unit, kind and meaning. OpenMetrics, JSON and `docs/monitoring.md` have the same.
//!
//! A name in OpenMetrics is `freestone_`, the prefix of the row it belongs to, and the figure's name; a counter's samples end in `_total`. A name in
//! JSON is the figure's alone.

use super::Stats;
use super::rows::{ClassStats, DirtyAge, HeapKind, HeapStats};

/// How a figure moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Up and down.
    Gauge,
    /// Up only, from the start of the process.
    Counter,
}

/// A figure of a row of type `T`.
#[derive(Debug)]
pub(crate) struct Figure<T: 'static> {
    /// Name; ends in `_bytes` if that is its unit. A count has no unit.
    pub(crate) name: &'static str,
    /// How it moves.
    pub(crate) kind: Kind,
    /// What it means.
    pub(crate) meaning: &'static str,
    /// Its value; `None` if the row has none.
    pub(crate) value: fn(&T) -> Option<u64>,
}

const fn gauge<T>(name: &'static str, meaning: &'static str, value: fn(&T) -> Option<u64>) -> Figure<T> {
    Figure { name, kind: Kind::Gauge, meaning, value }
}

const fn counter<T>(name: &'static str, meaning: &'static str, value: fn(&T) -> Option<u64>) -> Figure<T> {
    Figure { name, kind: Kind::Counter, meaning, value }
}

/// Of the process.
pub(crate) static OF_PROCESS: [Figure<Stats>; 16] = [
    gauge("live_bytes", "In blocks that the program holds, in full", |row| Some(row.live)),
    gauge("cached_bytes", "In free blocks that threads cache, or that are in flight to their spans", |row| {
        Some(row.cached)
    }),
    gauge("fragmented_bytes", "In spans, outside blocks that are live or cached", |row| Some(row.fragmented)),
    gauge("dirty_bytes", "In free page runs that have physical memory", |row| Some(row.dirty)),
    gauge("metadata_bytes", "In the allocator's own records", |row| Some(row.metadata)),
    gauge("committed_bytes", "The sum of live, cached, fragmented, dirty and metadata", |row| Some(row.committed)),
    gauge("density_bytes", "Live in each 4096 bytes of committed, on average", |row| Some(row.density())),
    gauge("peak_committed_bytes", "The highest committed, without span records", |row| Some(row.peak_committed)),
    gauge("peak_live_bytes", "The highest live that was observed", |row| Some(row.peak_live)),
    gauge("heaps", "Heaps alive: one per thread that has allocated, and explicit ones", |row| {
        Some(u64::from(row.n_threads))
    }),
    counter("purged_bytes", "Given back to the operating system", |row| Some(row.purged)),
    counter("fresh_bytes", "Handed out without physical memory: writing it faults", |row| Some(row.fresh)),
    counter("allocations", "Blocks allocated", |row| Some(row.n_allocations)),
    counter("frees", "Blocks freed", |row| Some(row.n_frees)),
    counter("remote_frees", "Blocks freed in a span that another heap owned", |row| Some(row.n_remote_frees)),
    counter("handovers", "Batches in which those were handed to their owners", |row| Some(row.n_handovers)),
];

/// Of the dirty memory of an age.
pub(crate) static OF_AGE: [Figure<DirtyAge>; 1] =
    [gauge("bytes", "Dirty memory by how long it has been free, in parts of the decay time", |row| Some(row.bytes))];

/// Of a size class.
pub(crate) static OF_CLASS: [Figure<ClassStats>; 5] = [
    gauge("live_bytes", "In blocks of the size class that the program holds", |row| Some(row.live)),
    gauge("cached_bytes", "In free blocks of the size class that threads cache, or that are in flight", |row| {
        Some(row.cached)
    }),
    counter("allocations", "Blocks of the size class allocated", |row| Some(row.n_allocations)),
    counter("frees", "Blocks of the size class freed", |row| Some(row.n_frees)),
    counter("remote_frees", "Blocks of the size class freed in a span that another heap owned", |row| {
        Some(row.n_remote_frees)
    }),
];

/// Of a heap.
pub(crate) static OF_HEAP: [Figure<HeapStats>; 9] = [
    gauge("span_bytes", "Spans that the heap has taken from the page heap and not given back", |row| Some(row.spans)),
    gauge("cached_bytes", "In free blocks that the heap caches", |row| Some(row.cached)),
    gauge("live_bytes", "Explicit heaps: in blocks that the program holds or that are coming back", |row| {
        of_explicit(row, row.live)
    }),
    gauge("large_bytes", "Explicit heaps: the part of live in large blocks", |row| of_explicit(row, row.large)),
    gauge("limit_bytes", "Explicit heaps with a limit: the most that spans and large blocks may have", |row| {
        of_explicit(row, row.limit).filter(|&limit| limit != 0)
    }),
    counter("allocations", "Blocks allocated from the heap", |row| Some(row.n_allocations)),
    counter("frees", "Blocks freed by the heap's thread", |row| Some(row.n_frees)),
    counter("remote_frees", "Of these, blocks freed in a span that another heap owned", |row| Some(row.n_remote_frees)),
    counter("handovers", "Batches in which those were handed to their owners", |row| Some(row.n_handovers)),
];

fn of_explicit(row: &HeapStats, value: u64) -> Option<u64> {
    (row.kind == HeapKind::Explicit).then_some(value)
}
