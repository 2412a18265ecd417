//! Taking statistics from running threads.
//!
//! Reads every thread's counters while the thread runs; [`Stats::settle`] makes the numbers add up. Takes the locks of the registry and of the page
//! heap for a moment each, and holds none when it returns.

use crate::config::{Prefault, Purge, Thp};
use crate::shared::Shared;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::stats::live_page::CLASS_ROWS;
use crate::stats::rows::{ClassStats, HeapStats};
use crate::stats::{Details, Stats};
use crate::thread::heap::ThreadHeap;
use crate::thread::holdings::Holdings;
use crate::thread::life::Threads;
use crate::thread::mailbox::Life;
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;

/// A row for each size class, and one for large blocks.
pub(super) type ClassRows = [ClassStats; CLASS_ROWS];

const _: () = assert!(CLASS_ROWS == N_CLASSES + 1);

/// The statistics of all heaps and of the parts that they share.
pub(super) fn take<O: Os + 'static>(shared: &Shared<O>, threads: &Threads<O>) -> Stats {
    take_classes(shared, threads, &mut [ClassStats::default(); CLASS_ROWS])
}

/// As [`take`], and fills the rows of the size classes.
pub(super) fn take_classes<O: Os + 'static>(
    shared: &Shared<O>,
    threads: &Threads<O>,
    classes: &mut ClassRows,
) -> Stats {
    let (pages, dirty_by_age) = shared.pages.stats_with_ages();
    let mut stats = Stats {
        dirty: pages.free_with_memory() * PAGE_BYTES as u64,
        metadata: shared.pages.metadata_bytes() + shared.guarded.metadata_bytes(),
        peak_committed: pages.peak_pages * PAGE_BYTES as u64,
        peak_live: shared.usage.peak_live_bytes(),
        purged: pages.purged_bytes,
        fresh: pages.fresh_bytes,
        uncarved: uncarved_bytes(shared),
        dirty_by_age,
        n_threads: threads.n_alive(),
        ..Stats::default()
    };
    let (small, large) = classes.split_at_mut(N_CLASSES);
    for (class, row) in small.iter_mut().enumerate() {
        *row = small_blocks(shared, threads, class);
    }
    let mut all_large =
        ClassStats { n_allocations: pages.large_allocs, n_frees: pages.large_frees, ..ClassStats::default() };
    for heap in threads.iter() {
        add_large_blocks(&mut all_large, heap);
        stats.n_handovers += heap.n_handovers();
    }
    all_large.cached += shared.pages.freed_pages().to_bytes().0 as u64;
    let large_bytes = pages.large_pages * PAGE_BYTES as u64;
    all_large.cached = all_large.cached.min(large_bytes);
    all_large.live = large_bytes - all_large.cached;
    large.fill(all_large);
    let stats = stats.settle(classes, pages.small_pages * PAGE_BYTES as u64 + shared.guarded.open_bytes());
    shared.usage.raise_peak(stats.live);
    stats
}

/// What of small spans has no memory; none is known where the kernel may give memory ahead of need, or takes it back late. A sandbox may not let it be asked.
fn uncarved_bytes<O: Os>(shared: &Shared<O>) -> u64 {
    let settings = shared.settings();
    let may_be_huge = match settings.thp() {
        Thp::Auto => !settings.sandbox() && shared.os().gives_huge_pages_unasked(),
        thp => thp == Thp::On,
    };
    let may_have_memory = may_be_huge || settings.prefault() != Prefault::Off || settings.purge() == Purge::Free;
    if may_have_memory { 0 } else { u64::try_from(shared.pages.uncarved.bytes()).unwrap_or(0) }
}

/// The blocks of a size class in all heaps.
fn small_blocks<O: Os + 'static>(shared: &Shared<O>, threads: &Threads<O>, class: usize) -> ClassStats {
    let bytes = block_bytes(class) as u64;
    let mut row = ClassStats { block_bytes: bytes, ..ClassStats::default() };
    // A guarded block is in no span.
    let n_guarded = shared.guarded.live_classes().filter(|&of| of == class).count() as i64;
    let mut n_out = n_guarded + shared.usage.left_out(class);
    for heap in threads.iter() {
        let counts = heap.counts(class);
        row.n_allocations += counts.allocs;
        row.n_frees += counts.frees;
        row.n_remote_frees += counts.remote_frees;
        n_out += counts.out;
    }
    let n_out = u64::try_from(n_out).unwrap_or(0);
    row.live = row.n_allocations.saturating_sub(row.n_frees).min(n_out) * bytes;
    row.cached = n_out * bytes - row.live;
    row
}

/// Adds what a heap caches of large blocks, and what it has counted without the page heap.
fn add_large_blocks<O: Os + 'static>(row: &mut ClassStats, heap: &ThreadHeap<O>) {
    let (puts, takes) = heap.cache().puts_and_takes();
    row.n_allocations += takes;
    row.n_frees += puts;
    row.cached += heap.cache().cached_pages() * PAGE_BYTES as u64;
    if let Some(watch) = heap.watched().get() {
        let (waiting, pages) = watch.quarantine().large();
        row.n_frees += waiting;
        row.cached += pages * PAGE_BYTES as u64;
    }
}

/// Calls `visit` with everything, in memory that the kernel lends for that; `None` if it has none.
pub(super) fn with_details<O: Os + 'static, R>(
    shared: &Shared<O>,
    threads: &Threads<O>,
    visit: impl FnOnce(&Details<'_>) -> R,
) -> Option<R> {
    let (mut visit, mut result) = (Some(visit), None);
    show_details(shared, threads, &mut |details| result = visit.take().map(|visit| visit(details)));
    result
}

/// Calls `visit` once, or not at all if there is no memory. Compiled once, whoever asks.
fn show_details<O: Os + 'static>(shared: &Shared<O>, threads: &Threads<O>, visit: &mut dyn FnMut(&Details<'_>)) {
    let alive = || threads.iter_kinds().filter(|(_, heap, _)| heap.life() == Life::Alive);
    // A heap that begins between the two has no row.
    let n_heaps = alive().count();
    freestone_os::with_rows(n_heaps, |heaps: &mut [HeapStats]| {
        freestone_os::with_rows(CLASS_ROWS, |classes: &mut [ClassStats]| {
            let Ok(classes): Result<&mut ClassRows, _> = classes.try_into() else { return };
            let stats = take_classes(shared, threads, classes);
            let mut n_filled = 0;
            for (row, (kind, heap, holdings)) in heaps.iter_mut().zip(alive()) {
                *row = HeapStats { kind, ..heap_row(shared, heap, holdings) };
                n_filled += 1;
            }
            visit(&Details { stats, classes, heaps: heaps.get(..n_filled).unwrap_or(&[]) });
        });
    });
}

/// What a heap has. `holdings` are an explicit heap's. Its kind is left open.
pub(super) fn heap_row<O: Os + 'static>(
    shared: &Shared<O>,
    heap: &ThreadHeap<O>,
    holdings: Option<&Holdings>,
) -> HeapStats {
    let page_bytes = PAGE_BYTES as u64;
    let mut row = HeapStats {
        number: heap.number(),
        thread_id: heap.thread_id(),
        spans: heap.span_pages() * page_bytes,
        n_handovers: heap.n_handovers(),
        ..HeapStats::default()
    };
    let ((puts, takes), (allocs, frees)) = (heap.cache().puts_and_takes(), heap.large_allocs_and_frees());
    (row.n_allocations, row.n_frees) = (takes + allocs, puts + frees);
    let mut out_bytes = 0;
    for class in 0..N_CLASSES {
        let (counts, bytes) = (heap.counts(class), block_bytes(class) as u64);
        let in_bin = u64::try_from(counts.in_bin).unwrap_or(0);
        row.n_allocations += counts.allocs;
        row.n_frees += counts.frees;
        row.n_remote_frees += counts.remote_frees;
        row.cached += in_bin * bytes;
        out_bytes += u64::try_from(counts.out).unwrap_or(0).saturating_sub(in_bin) * bytes;
    }
    row.cached += heap.cache().cached_pages() * page_bytes;
    if let Some(holdings) = holdings {
        let (large, limit) = holdings.large_and_limit(&shared.pages);
        row.large = large * page_bytes;
        row.limit = limit.unwrap_or(0) * page_bytes;
        row.live = out_bytes + row.large;
    }
    row
}

#[cfg(test)]
mod tests;
