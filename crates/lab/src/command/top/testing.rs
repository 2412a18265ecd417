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
    state.classes[2] =
        ClassStats { block_bytes: 48, live: 4800, cached: 480, n_allocations: 200, n_frees: 100, n_remote_frees: 7 };
    state.classes[5] =
        ClassStats { block_bytes: 96, live: 960, cached: 9600, n_allocations: 9000, n_frees: 8990, n_remote_frees: 0 };
    state.classes[CLASS_ROWS - 1] =
        ClassStats { block_bytes: 0, live: 3 << 20, cached: 0, n_allocations: 1, n_frees: 0, n_remote_frees: 0 };
    state.stats = Stats {
        live: (3 << 20) + 5760,
        cached: 10_080,
        fragmented: 100_000,
        dirty: 1 << 20,
        metadata: 65_536,
        committed: (4 << 20) + 181_376,
        peak_committed: 5 << 20,
        peak_live: 4 << 20,
        n_allocations: 9201,
        n_frees: 9090,
        n_remote_frees: 7,
        n_threads: 2,
        ..Stats::default()
    };
    state.heaps[0] = HeapStats {
        number: 1,
        thread_id: 4711,
        spans: 131_072,
        cached: 9000,
        n_allocations: 9100,
        ..HeapStats::default()
    };
    state.heaps[1] = HeapStats {
        number: 2,
        thread_id: 4712,
        spans: 65_536,
        cached: 1080,
        n_allocations: 101,
        ..HeapStats::default()
    };
    (state.n_heap_rows, state.n_heaps) = (2, 2);
    state
}
