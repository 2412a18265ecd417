//! When a burst ends: a thread had more blocks of a class than its bin holds, and has freed all but a few of them.
//!
//! ```text
//!  live │    ╭╮ more than the bin holds
//!       │   ╭╯╰─╮
//!       │  ╭╯   ╰─ · ─ a sixteenth of what was flushed: the burst ends; then again at a quarter of that, …, and with the last one
//!       └──────────────
//!  flushes ─▶ the bin gets room only until so few are live ─▶ that free takes the slow path, which empties the bin
//!  refills from spans ─▶ the thread needs more memory: no burst has ended
//! ```
//!
//! A thread may sleep after any free, and no other thread can empty its bins. Some blocks of a burst may stay for as long as the thread: so it ends when few
//! are live, and what the frees after that leave in the bin is flushed at a quarter of them, and so on. When a burst ends, bins of other classes of which few blocks
//! are live are emptied, too; those that had no burst when none is.
//! It is a burst if much more was flushed than taken out of spans: a thread that replaces blocks does as much of both.
//! `docs/decisions/0008-the-last-block-of-a-burst.md`, `0083-few-blocks-that-stay.md` and `0087-many-threads-that-hold-little.md` have the measurements.
//!
//! Threads: only the heap's thread uses it.

use crate::size_class::PerClass;
use core::cell::Cell;

/// A burst has ended when no more than one block in this many is live, of those that were flushed.
const REST_PART: i64 = 16;

/// The next end is at one in this many of those that are live at one end.
const NEXT_PART: i64 = 4;

/// Fewer bytes are no burst.
const MUCH_BYTES: i64 = 32 << 10;

/// See the module header. Zero is right for a heap that had no burst.
#[derive(Debug)]
pub(crate) struct BurstPolicy {
    /// A burst has ended, and since then every allocation was served from a bin.
    has_ended: Cell<bool>,
    /// The classes whose room ends when few of the heap's blocks are live.
    awaits_few: PerClass<Cell<bool>>,
    /// With no more live blocks of all classes, more of a burst that has ended is released.
    next_end: Cell<i64>,
    /// Bytes of blocks that were flushed from full bins, less those of blocks that were taken out of spans again; 0 or more.
    flushed_bytes: Cell<i64>,
}

/// How far a burst of a heap has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ended {
    /// Few blocks of a class are live, for the first time.
    Nearly,
    /// Most of those that were live then are freed, or none is live.
    Later,
}

/// How the blocks of a class go, of a burst or of none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Course {
    /// Blocks that are live.
    pub(crate) live: i64,
    /// Blocks flushed since the bin was last empty.
    pub(crate) flushed: u32,
}

impl Course {
    /// Whether so few are live that a burst of the class has ended. Of a class that had none: whether none is.
    pub(crate) fn has_few(self) -> bool {
        self.live <= self.few()
    }

    /// Whether a burst of the class is about to end.
    pub(crate) fn nears_end(self) -> bool {
        !self.has_few() && self.live < i64::from(self.flushed)
    }

    /// With so many live blocks a burst of the class has ended.
    fn few(self) -> i64 {
        i64::from(self.flushed) / REST_PART
    }

    /// How many blocks are to be freed until few are live, or a quarter of the few.
    fn until_next(self) -> i64 {
        self.live - if self.has_few() { self.live / NEXT_PART } else { self.few() }
    }
}

impl BurstPolicy {
    /// No burst.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            has_ended: Cell::new(false),
            awaits_few: PerClass::new([const { Cell::new(false) }; crate::size_class::N_CLASSES]),
            next_end: Cell::new(0),
            flushed_bytes: Cell::new(0),
        }
    }

    /// Counts bytes of blocks that were flushed.
    pub(crate) fn count_flushed(&self, bytes: i64) {
        self.flushed_bytes.set(self.flushed_bytes.get() + bytes);
    }

    /// The thread needs memory that its bins do not have: so many bytes of blocks were taken out of spans.
    pub(crate) fn begin(&self, bytes: i64) {
        self.has_ended.set(false);
        self.flushed_bytes.set((self.flushed_bytes.get() - bytes).max(0));
    }

    /// Whether the room of bins should end when few blocks are live: much was flushed.
    pub(crate) fn is_on_watch(&self) -> bool {
        self.flushed_bytes.get() >= MUCH_BYTES
    }

    /// A burst of a class has ended, and `n_live` blocks of all classes are live. Returns whether, and how far, a burst of the heap has ended with it: not if
    /// it had before and most blocks that were live then still are.
    pub(crate) fn end(&self, n_live: i64) -> Option<Ended> {
        let is_first = !self.has_ended.replace(true);
        if !is_first && n_live > self.next_end.get() {
            return None;
        }
        // With the last block there is no next time.
        self.next_end.set((n_live + NEXT_PART - 1) / NEXT_PART - 1);
        Some(if is_first && n_live > 0 { Ended::Nearly } else { Ended::Later })
    }

    /// Called when a bin's room is used up. Returns whether that was awaited, and few blocks are live.
    pub(crate) fn was_awaited(&self, class: usize, course: Course) -> bool {
        self.awaits_few[class].replace(false) && self.is_on_watch() && course.has_few()
    }

    /// The room to grant a bin that has `room`, so that the free after which few blocks are live, or a quarter of the few, takes the slow path; `None` if an earlier
    /// free does that anyway, or if there is no block to wait for.
    #[inline(always)]
    pub(crate) fn await_few(&self, class: usize, course: Course, room: i64) -> Option<i64> {
        let n = course.until_next();
        let awaits = n > 0 && n <= room + 1;
        if awaits {
            self.awaits_few[class].set(true);
        }
        awaits.then_some(n - 1)
    }

    /// Whether it is awaited that few blocks of a class are live.
    #[cfg(test)]
    pub(crate) fn awaits_few(&self, class: usize) -> bool {
        self.awaits_few[class].get()
    }
}

#[cfg(test)]
mod tests;
