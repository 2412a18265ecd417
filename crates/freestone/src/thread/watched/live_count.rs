//! How many blocks of a watched heap are live, and when a burst of them has ended.
//!
//! ```text
//!  live │      ╭──╮ peak
//!       │    ╭─╯  ╰╮
//!       │  ╭─╯     ╰─╮
//!       │ ─╯         ╰─ · ─ floor: the burst ends; then again at a quarter of it, …, and with the last one
//!       └──────────────────
//! ```
//!
//! A thread may sleep after a burst, and no other thread can release what its heap holds back: each block in the quarantine keeps the memory of its span.
//! A burst ends when few blocks are live, relative to the most there were, for some of them may stay for as long as the thread. What the frees
//! after that leave in the quarantine is released when three in four of the blocks that were live then are freed, and so on: in the end no more wait than a few times those that are live.
//!
//! Blocks of other heaps that the thread frees count as if they were its own, for threads often exchange as many as they allocate. But how many are live is then not known: so a burst in which
//! some were freed ends only if 1024 blocks were live at once.
//!
//! Threads: only the heap's thread.

use core::cell::Cell;

/// So many blocks that came from spans are a burst.
const BURST_LEAST: u32 = 1024;

/// With fewer live blocks at most a burst ends with the last of them only: a server has some hundreds with each request.
const PEAK_LEAST: i64 = BURST_LEAST as i64;

/// A burst has ended when no more than one block in this many is live, of the most that were.
const FLOOR_PART: i64 = 64;

/// The next end is at one in this many of those that are live at one end.
const NEXT_PART: i64 = 4;

/// See the module header. Zero is none.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LiveCount {
    /// Blocks that the heap handed out, less those that its thread freed, less the floor, less one: a free counts it down, and looks at its sign only.
    above: Cell<i64>,
    /// With no more live blocks a burst may have ended.
    floor: Cell<i64>,
    /// The most that were live when blocks came from spans in this burst.
    peak: Cell<i64>,
    /// Blocks that came from spans in this burst.
    brought: Cell<u32>,
    /// A burst has ended, and since then blocks were only freed.
    awaits_rest: Cell<bool>,
    /// Blocks of other heaps were freed in this burst.
    has_foreign: Cell<bool>,
}

impl LiveCount {
    /// None is live.
    pub(crate) fn reset(&self) {
        self.above.set(-self.floor.get() - 1);
        self.begin_burst(0, false);
    }

    /// Blocks that the heap handed out, less those that its thread freed.
    fn live(&self) -> i64 {
        self.above.get() + self.floor.get() + 1
    }

    fn set_floor(&self, floor: i64) {
        self.above.set(self.live() - floor - 1);
        self.floor.set(floor);
    }

    fn begin_burst(&self, floor: i64, awaits_rest: bool) {
        self.set_floor(floor);
        self.peak.set(0);
        self.brought.set(0);
        self.awaits_rest.set(awaits_rest);
        self.has_foreign.set(false);
    }

    /// Whether none is live, but for blocks of other heaps that the thread has freed.
    #[cfg(test)]
    pub(crate) fn is_none(&self) -> bool {
        self.live() <= 0
    }

    /// Counts a block that is handed out.
    #[inline(always)]
    pub(crate) fn count_alloc(&self) {
        self.above.set(self.above.get() + 1);
    }

    /// Counts a block that is freed. Returns whether a burst may have ended.
    #[inline(always)]
    pub(crate) fn count_free(&self) -> bool {
        self.above.set(self.above.get() - 1);
        self.above.get() < 0
    }

    /// Notes that the next block that is freed is another heap's.
    pub(crate) fn note_foreign(&self) {
        self.has_foreign.set(true);
    }

    /// Counts blocks that came from spans.
    pub(crate) fn count_brought(&self, n: u32) {
        self.brought.set(self.brought.get().saturating_add(n));
        self.peak.set(self.peak.get().max(self.live()));
        self.awaits_rest.set(false);
        self.set_floor(if self.peak.get() >= PEAK_LEAST { self.peak.get() / FLOOR_PART } else { 0 });
    }

    /// Whether a burst has ended, or most of what it left is freed. It is counted anew then.
    pub(crate) fn ends_burst(&self) -> bool {
        if self.live() < 0 {
            // More blocks of other heaps were freed than this one handed out.
            self.above.set(-self.floor.get() - 1);
        }
        let live = self.live();
        let is_burst = self.brought.get() >= BURST_LEAST && (self.peak.get() >= PEAK_LEAST || !self.has_foreign.get());
        let ends = self.above.get() < 0 && (self.awaits_rest.get() || is_burst);
        if ends {
            self.begin_burst(live / NEXT_PART, live > 0);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn none() -> LiveCount {
        LiveCount {
            above: Cell::new(-1),
            floor: Cell::new(0),
            peak: Cell::new(0),
            brought: Cell::new(0),
            awaits_rest: Cell::new(false),
            has_foreign: Cell::new(false),
        }
    }

    fn allocate(count: &LiveCount, n: u32) {
        for _ in 0..n {
            count.count_brought(1);
            count.count_alloc();
        }
    }

    /// Frees blocks until so many are live. Returns how many were live at each end of a burst.
    fn free_until(count: &LiveCount, live: i64) -> Vec<i64> {
        let mut ends = Vec::new();
        while count.live() > live {
            if count.count_free() && count.ends_burst() {
                ends.push(count.live());
            }
        }
        ends
    }

    /// Frees a block of another heap. Returns whether a burst ends with it.
    fn ends_with_foreign_free(count: &LiveCount) -> bool {
        count.note_foreign();
        count.count_free() && count.ends_burst()
    }

    #[test]
    fn a_burst_ends_when_few_are_live_and_again_as_the_rest_is_freed() {
        let count = none();
        allocate(&count, 8000);
        assert_eq!(free_until(&count, 0), [124, 31, 7, 1, 0]);
    }

    #[test]
    fn blocks_that_stay_do_not_keep_a_burst_from_ending() {
        for stays in [1, 2, 100] {
            let count = none();
            allocate(&count, 8000);
            let last = *free_until(&count, stays).last().unwrap();
            assert!(last <= NEXT_PART * stays, "{stays}: {last}");
        }
    }

    #[test]
    fn a_heap_with_few_blocks_ends_a_burst_only_after_many_came_from_spans() {
        let count = none();
        for _ in 0..10 {
            allocate(&count, 100);
            assert_eq!(free_until(&count, 0), []);
        }
        allocate(&count, 100);
        assert_eq!(free_until(&count, 0), [0]);
        allocate(&count, 100);
        assert_eq!(free_until(&count, 0), [], "it is counted anew");
    }

    #[test]
    fn after_an_end_a_heap_that_allocates_again_has_to_have_another_burst() {
        let count = none();
        allocate(&count, 10_000);
        assert_eq!(free_until(&count, 50), [156]);
        for _ in 0..10 * BURST_LEAST {
            allocate(&count, 1);
            assert_eq!(free_until(&count, 50), []);
        }
    }

    #[test]
    fn a_thread_that_frees_the_blocks_of_others_ends_no_burst() {
        let count = none();
        for _ in 0..5000 {
            assert!(!ends_with_foreign_free(&count));
        }
    }

    #[test]
    fn a_thread_that_frees_more_blocks_of_others_than_it_hands_out_ends_no_burst() {
        let count = none();
        for _ in 0..10 * BURST_LEAST {
            allocate(&count, 1);
            for _ in 0..2 {
                assert!(!ends_with_foreign_free(&count));
            }
        }
        allocate(&count, 8000);
        assert_eq!(free_until(&count, 0), [124, 31, 7, 1, 0], "it is seen to rise");
    }

    #[test]
    fn blocks_of_others_end_a_burst_of_as_many_that_others_free() {
        let count = none();
        allocate(&count, 8000);
        let ends = (0..8000).filter(|_| ends_with_foreign_free(&count)).count();
        assert_eq!(ends, 5);
        // What was freed in this burst says nothing of the next.
        allocate(&count, BURST_LEAST / 2);
        assert_eq!(free_until(&count, 0), []);
        allocate(&count, BURST_LEAST / 2);
        assert_eq!(free_until(&count, 0), [0]);
    }
}
