//! Spare heaps: heaps whose threads have ended, kept as they are for the next threads.
//!
//! ```text
//!  a thread ends ─▶ spare ─▶ the next thread's          bins, spans, and the blocks out of them change hands as they are
//!                     │
//!                     └ after the decay time, or when memory runs short ─▶ ended: what the heap has goes to other heaps and to the page heap
//! ```
//!
//! A thread that takes a spare heap frees blocks that its predecessor allocated as its own, and needs no span for its first allocations. No other
//! heap can use what a spare heap holds: so only few bytes may wait in the bins of spare heaps ([`BYTES_OF_ALL`]), and not for long. Blocks of it
//! that other threads free wait in its inbox, so they count as well: a program of one thread that goes idle has no other to end the heap.
//!
//! Used under the registry's lock.

use crate::thread::records::{Record, RecordStack};
use core::cell::Cell;
use freestone_base::sync::AtomicU32;

/// The most bytes of blocks in the bins of all spare heaps together, and of theirs that are with the program.
pub(crate) const BYTES_OF_ALL: usize = 4 << 20;

/// The most spare heaps.
pub(crate) const HEAPS_MOST: u32 = 64;

/// What a heap notes about its thread.
#[derive(Debug)]
pub(crate) struct ThreadNote {
    /// The kernel's number of the thread; 0 if it was not asked for. Any thread may read it.
    pub(crate) kernel_id: AtomicU32,
    /// Calls of the thread's exit hook.
    pub(crate) exit_rounds: Cell<u32>,
    /// Since when the heap is spare.
    since_ms: Cell<u64>,
    /// What it held then, or will, in bytes.
    bytes: Cell<usize>,
}

/// A heap that can be spare.
pub(crate) trait Spare: Record {
    /// What it notes about its thread.
    fn thread_note(&self) -> &ThreadNote;
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct SpareHeaps<T> {
    /// The newest first.
    heaps: RecordStack<T>,
    n: u32,
    bytes: usize,
}

impl<T: Spare> SpareHeaps<T> {
    /// None.
    pub(crate) const fn new() -> Self {
        Self { heaps: RecordStack::new(), n: 0, bytes: 0 }
    }

    /// How many there are.
    pub(crate) fn n(&self) -> u32 {
        self.n
    }

    /// Keeps a heap that holds `bytes`, or will. Returns whether there is room for it.
    #[must_use]
    pub(crate) fn put(&mut self, heap: &T, bytes: usize, now_ms: u64) -> bool {
        if self.n == HEAPS_MOST || self.bytes + bytes > BYTES_OF_ALL {
            return false;
        }
        heap.thread_note().since_ms.set(now_ms);
        heap.thread_note().bytes.set(bytes);
        self.heaps.push(heap);
        self.n += 1;
        self.bytes += bytes;
        true
    }

    /// Takes the newest.
    pub(crate) fn take(&mut self) -> Option<&T> {
        self.take_if(|_| true)
    }

    /// Takes one that is spare for `decay_ms`, if there is one.
    pub(crate) fn take_expired(&mut self, now_ms: u64, decay_ms: u32) -> Option<&T> {
        self.take_if(|end| now_ms.saturating_sub(end.since_ms.get()) >= u64::from(decay_ms))
    }

    fn take_if(&mut self, is_wanted: impl Fn(&ThreadNote) -> bool) -> Option<&T> {
        let heap = self.heaps.remove_first(|heap| is_wanted(heap.thread_note()))?;
        self.n -= 1;
        self.bytes -= heap.thread_note().bytes.get();
        Some(heap)
    }
}

#[cfg(test)]
mod tests;
