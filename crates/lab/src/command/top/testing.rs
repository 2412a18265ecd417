//! States for tests.

use freestone::door::live::{CLASS_ROWS, HEAP_ROWS, LiveState};
use freestone::{ClassStats, HeapStats, Stats};

/// A state in which nothing has happened.
pub(super) fn state(number: u64, at_ms: u64) -> LiveState {
    LiveState {
        process: 4711,
        number,
        at_ms,
        interval_ms: 100,
        stats: Stats::default(),
        classes: [ClassStats::default(); CLASS_ROWS],
        heaps: [HeapStats::default(); HEAP_ROWS],
        n_heap_rows: 0,
        n_heaps: 0,
    }
}

/// A state of a process that has 100 blocks of 48 bytes, a large one of 3 MiB, and two threads.
pub(super) fn busy_state() -> LiveState {
    let mut state = state(1, 1000);
    state.classes[2] = class(48, [4800, 480], [200, 100, 7]);
    state.classes[5] = class(96, [960, 9600], [9000, 8990, 0]);
    state.classes[CLASS_ROWS - 1] = class(0, [3 << 20, 0], [1, 0, 0]);
    let stats = &mut state.stats;
    stats.live = (3 << 20) + 5760;
    stats.cached = 10_080;
    stats.fragmented = 100_000;
    stats.dirty = 1 << 20;
    stats.metadata = 65_536;
    stats.committed = (4 << 20) + 181_376;
    stats.peak_committed = 5 << 20;
    stats.peak_live = 4 << 20;
    stats.n_allocations = 9201;
    stats.n_frees = 9090;
    stats.n_remote_frees = 7;
    stats.n_threads = 2;
    state.heaps[0] = heap([1, 4711], 131_072, 9000, 9100);
    state.heaps[1] = heap([2, 4712], 65_536, 1080, 101);
    (state.n_heap_rows, state.n_heaps) = (2, 2);
    state
}

/// The blocks of a class: bytes that are live and cached; counts of allocations, frees and remote frees.
fn class(block_bytes: u64, [live, cached]: [u64; 2], [n_allocations, n_frees, n_remote_frees]: [u64; 3]) -> ClassStats {
    let mut class = ClassStats::default();
    (class.block_bytes, class.live, class.cached) = (block_bytes, live, cached);
    (class.n_allocations, class.n_frees, class.n_remote_frees) = (n_allocations, n_frees, n_remote_frees);
    class
}

/// The heap of a thread.
fn heap([number, thread_id]: [u32; 2], spans: u64, cached: u64, n_allocations: u64) -> HeapStats {
    let mut heap = HeapStats::default();
    (heap.number, heap.thread_id) = (number, thread_id);
    (heap.spans, heap.cached, heap.n_allocations) = (spans, cached, n_allocations);
    heap
}
