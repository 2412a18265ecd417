//! Taking statistics from running threads.
//!
//! Reads every thread's counters while the thread runs; [`Stats::settle`] makes the numbers add up.

use crate::shared::Shared;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::stats::Stats;
use crate::thread::life::Threads;
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;

/// The statistics of all heaps and of the parts that they share.
pub(super) fn take<O: Os + 'static>(shared: &Shared<O>, threads: &Threads<O>) -> Stats {
    let pages = shared.pages.stats();
    let mut stats = Stats {
        dirty: pages.free_with_memory() * PAGE_BYTES as u64,
        metadata: shared.pages.metadata_bytes(),
        peak_committed: pages.peak_pages * PAGE_BYTES as u64,
        peak_live: shared.usage.peak_live_bytes(),
        purged: pages.purged_bytes,
        fresh: pages.fresh_bytes,
        dirty_by_age: shared.pages.dirty_by_age(),
        n_allocations: pages.large_allocs,
        n_frees: pages.large_frees,
        n_threads: threads.n_alive(),
        ..Stats::default()
    };
    let (mut live, mut out) = (0i64, 0i64);
    for class in 0..N_CLASSES {
        let bytes = block_bytes(class) as i64;
        let mut blocks_out = -shared.usage.returned_blocks(class);
        for heap in threads.iter() {
            let counts = heap.counts(class);
            stats.n_allocations += counts.allocs;
            stats.n_frees += counts.frees;
            stats.n_remote_frees += counts.remote_frees;
            live += (counts.allocs as i64 - counts.frees as i64) * bytes;
            blocks_out += counts.out;
        }
        out += blocks_out * bytes;
    }
    let (live_guarded, open_guarded) = shared.guarded.live_and_open_bytes();
    stats.metadata += shared.guarded.metadata_bytes();
    out += live_guarded as i64;
    let mut kept_pages = 0;
    for heap in threads.iter() {
        let (puts, takes) = heap.cache().puts_and_takes();
        stats.n_allocations += takes;
        stats.n_frees += puts;
        stats.n_handovers += heap.n_handovers();
        kept_pages += heap.cache().cached_pages();
        if let Some(watch) = heap.watched().get() {
            let (waiting, pages) = watch.quarantine().large();
            stats.n_frees += waiting;
            kept_pages += pages;
        }
    }
    let [spans, large, kept] =
        [pages.small_pages, pages.large_pages, kept_pages].map(|pages| pages * PAGE_BYTES as u64);
    stats.settle(live, out, spans + open_guarded, (large, kept))
}

#[cfg(test)]
mod tests;
