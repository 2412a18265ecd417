//! What a heap's bins hold, what its program holds, and what is free in its spans: the counts behind every decision of the slow paths.
#![allow(unsafe_code)]
//!
//! The hot paths keep two counters a bin, `allocs` and `room`; what is needed beyond them is computed here, when it is needed.
//!
//! # Safety
//! Only heaps that are alive come to a slow path: what they share is set.

use crate::size_class::block_bytes;
use crate::thread::ThreadHeap;
use freestone_base::sync::Ordering;
use freestone_os::Os;

impl<O: Os + 'static> ThreadHeap<O> {
    /// Blocks handed out of a bin, ever.
    pub(crate) fn allocs(&self, class: usize) -> u64 {
        self.allocs[class].load(Ordering::Relaxed)
    }

    /// Blocks freed into a bin, ever. Read by another thread, it may be off by what that thread is doing right now.
    pub(crate) fn frees(&self, class: usize) -> u64 {
        let granted = self.bins[class].granted.load(Ordering::Relaxed);
        u64::try_from(granted - self.room[class].load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Frees until a bin has to be looked at.
    pub(crate) fn room(&self, class: usize) -> i64 {
        self.room[class].load(Ordering::Relaxed)
    }

    /// Blocks in a bin. For the owner.
    pub(crate) fn len(&self, class: usize) -> i64 {
        self.bins[class].moved.load(Ordering::Relaxed) + self.frees(class) as i64 - self.allocs(class) as i64
    }

    /// Blocks of a class that this thread allocated and nobody freed, as far as the thread itself knows.
    pub(crate) fn live(&self, class: usize) -> i64 {
        let frees = self.frees(class) + self.bins[class].remote_frees.load(Ordering::Relaxed);
        self.allocs(class) as i64 - frees as i64
    }

    /// Lets `frees` more blocks into a bin before it is looked at again.
    pub(crate) fn grant(&self, class: usize, frees: i64) {
        let room = self.room[class].load(Ordering::Relaxed);
        let granted = &self.bins[class].granted;
        granted.store(granted.load(Ordering::Relaxed) + frees - room, Ordering::Relaxed);
        self.room[class].store(frees, Ordering::Relaxed);
    }

    /// Counts blocks that came into a bin (or, negative, left it) other than by allocation and free.
    pub(crate) fn move_in(&self, class: usize, blocks: i64) {
        let moved = &self.bins[class].moved;
        moved.store(moved.load(Ordering::Relaxed) + blocks, Ordering::Relaxed);
    }

    /// Notes blocks that became free inside this heap's spans (or, negative, are free no more); counted by [`ThreadHeap::count_free`].
    pub(crate) fn note_free(&self, class: usize, blocks: i64) {
        let uncounted = &self.uncounted_free_bytes;
        uncounted.set(uncounted.get() + blocks * block_bytes(class) as i64);
    }

    /// Tells the shared count what became free inside this heap's spans.
    pub(crate) fn count_free(&self) {
        let bytes = self.uncounted_free_bytes.replace(0);
        if bytes != 0 {
            // SAFETY: only heaps that are alive come to a slow path.
            unsafe { self.shared() }.usage.add_free_in_spans(bytes);
        }
    }

    /// Counts blocks taken out of this heap's spans (or, negative, given back).
    pub(crate) fn take_out(&self, class: usize, blocks: i64) {
        let out = &self.bins[class].out;
        out.store(out.load(Ordering::Relaxed) + blocks, Ordering::Relaxed);
    }

    /// What a bin should hold at most; sets it up at first use.
    pub(crate) fn capacity(&self, class: usize) -> u32 {
        let capacity = &self.bins[class].capacity;
        if capacity.get() == 0 {
            // SAFETY: only heaps that are alive come to a slow path.
            capacity.set(unsafe { self.shared() }.settings().bin_start(block_bytes(class)));
        }
        capacity.get()
    }

    /// Tells the shared count what this heap's program holds now in blocks of a class. Done when a span of it changes hands.
    pub(crate) fn publish_live(&self, class: usize) {
        let live = self.live(class);
        let before = self.published_live[class].replace(live);
        if live != before {
            // SAFETY: as in `capacity`.
            unsafe { self.shared() }.usage.publish_live((live - before) * block_bytes(class) as i64);
        }
    }
}
