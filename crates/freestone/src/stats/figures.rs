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

/// A figure: what it is called, what it means, and how it moves.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Its name, a space, and what it means: one text, because every pointer in a table costs each process a relocation.
    text: &'static str,
    name_len: u8,
    /// How it moves.
    pub(crate) kind: Kind,
}

impl Figure {
    /// Its name. It ends in `_bytes` if that is its unit; a count has no unit.
    pub(crate) fn name(&self) -> &'static str {
        self.text.get(..usize::from(self.name_len)).unwrap_or_default()
    }

    /// A space, and what it means.
    pub(crate) fn meaning(&self) -> &'static str {
        self.text.get(usize::from(self.name_len)..).unwrap_or_default()
    }
}

/// What figures are of: the process, or a part of it.
pub(crate) trait Row: 'static {
    /// Its figures.
    const FIGURES: &'static [Figure];

    /// The value of the figure with a number; `None` if the row has none.
    fn value(&self, at: usize) -> Option<u64>;
}

/// Gives a type its figures, from a list with the value beside each. (Pointers to functions would be a function and a relocation for each.)
macro_rules! figures {
    ($of:ty: $($kind:ident $name:literal, $meaning:literal, |$row:ident| $value:expr;)*) => {
        impl Row for $of {
            const FIGURES: &'static [Figure] = &[$(Figure {
                text: concat!($name, " ", $meaning),
                name_len: $name.len() as u8,
                kind: Kind::$kind,
            }),*];

            fn value(&self, at: usize) -> Option<u64> {
                [$({ let $row = self; $value }),*].get(at).copied().flatten()
            }
        }
    };
}

figures! { Stats:
    Gauge "live_bytes", "In blocks that the program holds, in full", |row| Some(row.live);
    Gauge "cached_bytes", "In free blocks that threads cache, or that are in flight to their spans", |row| Some(row.cached);
    Gauge "fragmented_bytes", "In spans, outside blocks that are live or cached", |row| Some(row.fragmented);
    Gauge "dirty_bytes", "In free page runs that have physical memory", |row| Some(row.dirty);
    Gauge "metadata_bytes", "In the allocator's own records", |row| Some(row.metadata);
    Gauge "committed_bytes", "The sum of live, cached, fragmented, dirty and metadata", |row| Some(row.committed);
    Gauge "resident_bytes", "Committed, less the OS pages of spans that no block was carved from", |row| Some(row.resident());
    Gauge "density_bytes", "Live in each 4096 bytes of resident, on average", |row| Some(row.density());
    Gauge "peak_committed_bytes", "The highest committed, without span records", |row| Some(row.peak_committed);
    Gauge "peak_live_bytes", "The highest live that was observed", |row| Some(row.peak_live);
    Gauge "heaps", "Heaps alive: one per thread that has allocated, and explicit ones", |row| Some(u64::from(row.n_threads));
    Counter "purged_bytes", "Given back to the operating system", |row| Some(row.purged);
    Counter "fresh_bytes", "Handed out without physical memory: writing it faults", |row| Some(row.fresh);
    Counter "allocations", "Blocks allocated", |row| Some(row.n_allocations);
    Counter "frees", "Blocks freed", |row| Some(row.n_frees);
    Counter "remote_frees", "Blocks freed in a span that another heap owned", |row| Some(row.n_remote_frees);
    Counter "handovers", "Batches in which those were handed to their owners", |row| Some(row.n_handovers);
}

figures! { DirtyAge:
    Gauge "bytes", "Dirty memory by how long it has been free, in parts of the decay time", |row| Some(row.bytes);
}

figures! { ClassStats:
    Gauge "live_bytes", "In blocks that the program holds, in full", |row| Some(row.live);
    Gauge "cached_bytes", "In free blocks that threads cache, or that are in flight to their spans", |row| Some(row.cached);
    Counter "allocations", "Blocks allocated", |row| Some(row.n_allocations);
    Counter "frees", "Blocks freed", |row| Some(row.n_frees);
    Counter "remote_frees", "Blocks freed in a span that another heap owned", |row| Some(row.n_remote_frees);
}

figures! { HeapStats:
    Gauge "span_bytes", "Spans that the heap has taken from the page heap and not given back", |row| Some(row.spans);
    Gauge "cached_bytes", "In free blocks that the heap caches", |row| Some(row.cached);
    Gauge "live_bytes", "Explicit heaps: in blocks that the program holds or that are coming back", |row| of_explicit(row, row.live);
    Gauge "large_bytes", "Explicit heaps: the part of live in large blocks", |row| of_explicit(row, row.large);
    Gauge "limit_bytes", "Explicit heaps with a limit: the most that spans and large blocks may have", |row| of_explicit(row, row.limit).filter(|&limit| limit != 0);
    Counter "allocations", "Blocks allocated from the heap", |row| Some(row.n_allocations);
    Counter "frees", "Blocks freed by the heap's thread", |row| Some(row.n_frees);
    Counter "remote_frees", "Of these, blocks freed in a span that another heap owned", |row| Some(row.n_remote_frees);
    Counter "handovers", "Batches in which those were handed to their owners", |row| Some(row.n_handovers);
}

fn of_explicit(row: &HeapStats, value: u64) -> Option<u64> {
    (row.kind == HeapKind::Explicit).then_some(value)
}
