//! How long blocks have waited in a heap's inbox.
//!
//! The heap's thread counts how often it took blocks. Whoever looks at the inbox compares the count with that of its last look.

use freestone_base::sync::{AtomicU32, AtomicUsize, Ordering};

/// An inbox is left alone for so many times as long as it took to look through it: with that a looking thread takes a twentieth of a processor at most
/// for each inbox.
const ALONE_TIMES: u32 = 20;

/// It counts as so many ms at most: an inbox is left alone for ten minutes at most.
const TOOK_MOST_MS: u32 = 30_000 - 1;

/// What is noted of an inbox. Zero is right for a heap that begins.
#[derive(Debug)]
pub(crate) struct IdleNote {
    /// How often the heap's thread took blocks: written by that thread alone.
    n_taken: AtomicU32,
    /// One more than that number at the last look, or another number if there were no blocks: this and the rest belong to the thread that looks.
    seen: AtomicU32,
    /// When that number, with blocks in the inbox, was first seen, in ms of the kernel's clock, cut to 32 bits.
    since_ms: AtomicU32,
    /// The newest block that was left in the inbox when it was last looked through, or 0.
    left: AtomicUsize,
    /// When that was, and how long the inbox is left alone since, likewise.
    looked_ms: AtomicU32,
    /// See `looked_ms`.
    alone_ms: AtomicU32,
}

/// Whether there are blocks in an inbox that nobody has looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// No.
    None,
    /// Yes, but the heap's thread may yet take them.
    NotLong,
    /// Yes, and its thread has taken none for the decay time.
    Long,
}

impl IdleNote {
    /// Nothing noted.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            n_taken: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            since_ms: AtomicU32::new(0),
            left: AtomicUsize::new(0),
            looked_ms: AtomicU32::new(0),
            alone_ms: AtomicU32::new(0),
        }
    }

    /// The heap's thread has taken blocks.
    pub(crate) fn note_taken(&self) {
        self.n_taken.store(self.n_taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Notes what is in the inbox at `now_ms`: `newest` is the address of the block that came last, or 0. Returns how long blocks have waited in it.
    pub(crate) fn look(&self, newest: usize, now_ms: u32, decay_ms: u32) -> Waiting {
        let n_taken = self.n_taken.load(Ordering::Relaxed);
        // The same block may have come again since the thread took it.
        let was_left = newest == self.left.load(Ordering::Relaxed) && self.seen.load(Ordering::Relaxed) == n_taken;
        if newest == 0 || was_left {
            self.seen.store(n_taken, Ordering::Relaxed);
            return Waiting::None;
        }
        let seen = n_taken.wrapping_add(1);
        if self.seen.load(Ordering::Relaxed) != seen {
            self.seen.store(seen, Ordering::Relaxed);
            self.since_ms.store(now_ms, Ordering::Relaxed);
        }
        let waited_ms = now_ms.wrapping_sub(self.since_ms.load(Ordering::Relaxed));
        let is_alone =
            now_ms.wrapping_sub(self.looked_ms.load(Ordering::Relaxed)) < self.alone_ms.load(Ordering::Relaxed);
        if waited_ms < decay_ms || is_alone { Waiting::NotLong } else { Waiting::Long }
    }

    /// Notes that the inbox was looked through, which took `took_ms` up to `now_ms`. `left` is the newest block that was
    /// left in it, or 0; others may have come since.
    pub(crate) fn note_looked_through(&self, left: usize, now_ms: u32, took_ms: u32) {
        self.left.store(left, Ordering::Relaxed);
        self.seen.store(self.n_taken.load(Ordering::Relaxed), Ordering::Relaxed);
        let alone_ms = (took_ms.min(TOOK_MOST_MS) + 1) * ALONE_TIMES;
        self.looked_ms.store(now_ms, Ordering::Relaxed);
        self.alone_ms.store(alone_ms, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
