//! The bins: for each size class the free blocks that a thread has at hand. An allocation is a pop, a free is a push.
#![allow(unsafe_code)]
//!
//! ```text
//!  offset      0  lookup   which blocks are the heap's own    read by every `free`
//!             32  heads    [*block; 72]                       first free block of each bin
//!            608  allocs   [u64; 72]                          blocks handed out, ever
//!           1184  room     [i64; 72]                          frees until the slow path checks the bin
//!                 classes  used by slow paths only
//! ```
//!
//! Arrays of fields rather than an array of bins: an index times 8 is an addressing mode, an index times 32 is an instruction.
//!
//! Invariants
//! - The length of a bin is `moved + frees - allocs`, where `frees = granted - room`. It is exact, and computed only when it is needed.
//! - `room` is never more than what the bin lacks to its capacity, whatever was allocated meanwhile: the slow path may come early, never late.
//! - A bin may hold blocks of any owner: a Rust `dealloc` gets the class from the layout and does not look up the owner. A flush sorts them.
//! - The bins of a placeholder heap are empty and have no room, so the hot paths leave it by a branch that they have anyway, and never write
//!   to it.
//!
//! Threads: only the heap's thread calls methods that change anything. Any thread may read the counters.
//!
//! # Safety
//! The hot paths index the arrays without a check: a class comes from the size class table, a constant, or the page map, and is below
//! `N_CLASSES` in each. The blocks in a bin are free and belong to the bin, so their first words are its links.

use crate::size_class::N_CLASSES;
use crate::thread::free_block::{FreeBatch, FreeBlock, FreeChain};
use crate::thread::lookup::Lookup;
use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;
use freestone_base::count::{self, CountsDown};
use freestone_base::inbox::Node;
use freestone_base::sync::{AtomicI64, AtomicU64, Ordering};

/// The part of a bin's state that only slow paths use.
#[derive(Debug)]
struct BinState {
    /// Frees granted, ever: `room` counts them down.
    granted: AtomicI64,
    /// Blocks that came into the bin from spans and the inbox, less those that were flushed out.
    moved: AtomicI64,
    /// Frees of blocks of other owners, which did not pass through the bin.
    remote_frees: AtomicU64,
    /// Blocks that the bin should hold at most; 0 before its first use.
    capacity: Cell<u32>,
    /// Blocks flushed since the bin was last empty.
    flushed: Cell<u32>,
    /// `allocs` at the last decay tick: if it has not changed by the next, the bin is idle.
    allocs_at_tick: Cell<u64>,
}

/// See the module header.
#[repr(C)]
pub(crate) struct Bins {
    lookup: Lookup,
    heads: [Cell<*mut Node>; N_CLASSES],
    allocs: [AtomicU64; N_CLASSES],
    room: [AtomicI64; N_CLASSES],
    classes: [BinState; N_CLASSES],
}

// `hotpath.golden` has these offsets.
const _: () = assert!(offset_of!(Bins, lookup) == 0);
const _: () = assert!(offset_of!(Bins, heads) == 32);
const _: () = assert!(offset_of!(Bins, allocs) == 32 + 8 * N_CLASSES);
const _: () = assert!(offset_of!(Bins, room) == 32 + 16 * N_CLASSES);

// SAFETY: `room` is an array of `N_CLASSES` counters at that offset.
unsafe impl CountsDown for Bins {
    const OFFSET: usize = offset_of!(Self, room);
    const LEN: usize = N_CLASSES;
}

impl Bins {
    /// Empty bins without room.
    pub(crate) const fn empty() -> Self {
        Self {
            lookup: Lookup::empty(),
            heads: [const { Cell::new(ptr::null_mut()) }; N_CLASSES],
            allocs: [const { AtomicU64::new(0) }; N_CLASSES],
            room: [const { AtomicI64::new(0) }; N_CLASSES],
            classes: [const {
                BinState {
                    granted: AtomicI64::new(0),
                    moved: AtomicI64::new(0),
                    remote_frees: AtomicU64::new(0),
                    capacity: Cell::new(0),
                    flushed: Cell::new(0),
                    allocs_at_tick: Cell::new(0),
                }
            }; N_CLASSES],
        }
    }

    /// The lookup that decides whether a block is the heap's own.
    #[inline(always)]
    pub(crate) fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// Takes the first block of a bin; null if the bin is empty. The hot half of every allocation. `class` is below `N_CLASSES`.
    #[inline(always)]
    #[must_use]
    pub(crate) fn pop(&self, class: usize) -> *mut u8 {
        debug_assert!(class < N_CLASSES);
        // SAFETY: the class is below `N_CLASSES` (module header).
        let head = unsafe { self.heads.get_unchecked(class) };
        let block = head.get();
        if !block.is_null() {
            // SAFETY: a block in the bin is free, and its first word links to the next.
            head.set(unsafe { (*block).next });
            // SAFETY: the class is below `N_CLASSES`.
            count::increment(unsafe { self.allocs.get_unchecked(class) });
        }
        block.cast()
    }

    /// Puts a freed block into its bin. Returns whether the bin's room is used up, so that the slow path must check it. The hot half of every
    /// free of a block that was found to be the heap's own.
    #[inline(always)]
    #[must_use]
    pub(crate) fn push(&self, block: FreeBlock) -> bool {
        let class = block.class();
        self.link(block);
        // SAFETY: the class of a free block is below `N_CLASSES`.
        unsafe { count::decrement_is_negative(self, class) }
    }

    /// Puts a freed block into its bin if there is room; gives it back if there is none. Right for every heap, a placeholder too.
    ///
    /// # Errors
    /// The block, if the bin has no room.
    #[inline(always)]
    pub(crate) fn try_push(&self, block: FreeBlock) -> Result<(), FreeBlock> {
        debug_assert!(block.class() < N_CLASSES);
        // SAFETY: the class of a free block is below `N_CLASSES`.
        let room = unsafe { self.room.get_unchecked(block.class()) };
        if room.load(Ordering::Relaxed) <= 0 {
            return Err(block);
        }
        self.link(block);
        count::decrement(room);
        Ok(())
    }

    #[inline(always)]
    fn link(&self, block: FreeBlock) {
        // SAFETY: the class of a free block is below `N_CLASSES`.
        let head = unsafe { self.heads.get_unchecked(block.class()) };
        head.set(block.link(head.get()));
    }

    /// Puts a remotely freed block into its bin, without using up room.
    #[inline]
    pub(crate) fn put(&self, block: FreeBlock) {
        let class = block.class();
        self.link(block);
        self.count_moved(class, 1);
    }

    /// Puts a batch before what is in its bin.
    pub(crate) fn put_batch(&self, batch: FreeBatch) {
        let (head, class, len) = (&self.heads[batch.class()], batch.class(), batch.len());
        head.set(batch.link(head.get()));
        self.count_moved(class, i64::from(len));
    }

    /// Takes all but the first `keep` blocks out of a bin; `None` if there are no more than these.
    pub(crate) fn take_all_but(&self, class: usize, keep: i64) -> Option<FreeChain> {
        let n = u32::try_from(self.len(class) - keep).unwrap_or(0);
        let mut link: *mut *mut Node = self.heads[class].as_ptr();
        for _ in 0..keep {
            // SAFETY: `link` is the head of the bin or the first word of a block in it.
            let next = unsafe { *link };
            if next.is_null() {
                return None;
            }
            // SAFETY: `next` is a block in the bin: free, and its first word is the link behind it.
            link = unsafe { &raw mut (*next).next };
        }
        // SAFETY: as above.
        let first = unsafe { core::mem::replace(&mut *link, ptr::null_mut()) };
        // SAFETY: the blocks behind the cut are linked, free, and in no bin any more; the bin counted `n` of them.
        Some(unsafe { FreeChain::new(first, n, class) })
    }

    /// Whether a bin has no block.
    pub(crate) fn is_empty(&self, class: usize) -> bool {
        self.heads[class].get().is_null()
    }

    /// The first block of a bin, or null: for checks.
    pub(crate) fn first(&self, class: usize) -> *mut Node {
        self.heads[class].get()
    }

    /// Blocks handed out of a bin, ever.
    pub(crate) fn allocs(&self, class: usize) -> u64 {
        self.allocs[class].load(Ordering::Relaxed)
    }

    /// Blocks freed into a bin, ever. Read by another thread, it may be off by what the heap's thread is doing at the moment.
    pub(crate) fn frees(&self, class: usize) -> u64 {
        let granted = self.classes[class].granted.load(Ordering::Relaxed);
        u64::try_from(granted - self.room[class].load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Blocks of a class that have other owners and that this thread freed, ever.
    pub(crate) fn remote_frees(&self, class: usize) -> u64 {
        self.classes[class].remote_frees.load(Ordering::Relaxed)
    }

    /// Counts `n` blocks as freed that do not come into the bin.
    pub(crate) fn count_remote_frees(&self, class: usize, n: u64) {
        count::add(&self.classes[class].remote_frees, n);
    }

    /// Counts a block that was allocated without passing through the bin.
    pub(crate) fn count_single_alloc(&self, class: usize) {
        count::increment(&self.allocs[class]);
        self.count_moved(class, 1);
    }

    /// Counts a block that was freed and does not come into the bin.
    pub(crate) fn count_single_free(&self, class: usize) {
        let granted = &self.classes[class].granted;
        granted.store(granted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.count_moved(class, -1);
    }

    /// Frees until the slow path checks a bin.
    pub(crate) fn room(&self, class: usize) -> i64 {
        self.room[class].load(Ordering::Relaxed)
    }

    /// Blocks in a bin. Exact for the heap's thread.
    pub(crate) fn len(&self, class: usize) -> i64 {
        self.classes[class].moved.load(Ordering::Relaxed) + self.frees(class) as i64 - self.allocs(class) as i64
    }

    /// Blocks of a class that this thread allocated, less those that it freed, whichever heap owns them. Negative if the thread frees what others
    /// allocated; more than the program holds if others free what the thread allocated.
    pub(crate) fn live(&self, class: usize) -> i64 {
        self.allocs(class) as i64 - (self.frees(class) + self.remote_frees(class)) as i64
    }

    /// Grants a bin room for `frees` more blocks before the slow path checks it again.
    pub(crate) fn grant(&self, class: usize, frees: i64) {
        let granted = &self.classes[class].granted;
        granted.store(granted.load(Ordering::Relaxed) + frees - self.room(class), Ordering::Relaxed);
        self.room[class].store(frees, Ordering::Relaxed);
    }

    /// Counts blocks that came into a bin (or, negative, left it) other than by allocation and free.
    pub(crate) fn count_moved(&self, class: usize, blocks: i64) {
        let moved = &self.classes[class].moved;
        moved.store(moved.load(Ordering::Relaxed) + blocks, Ordering::Relaxed);
    }

    /// The most blocks that a bin should hold; `start` gives the first value.
    pub(crate) fn capacity(&self, class: usize, start: impl FnOnce() -> u32) -> u32 {
        let capacity = &self.classes[class].capacity;
        if capacity.get() == 0 {
            capacity.set(start());
        }
        capacity.get()
    }

    /// Sets the most blocks that a bin should hold.
    pub(crate) fn set_capacity(&self, class: usize, capacity: u32) {
        self.classes[class].capacity.set(capacity);
    }

    /// Blocks flushed since the bin was last empty.
    pub(crate) fn flushed(&self, class: usize) -> u32 {
        self.classes[class].flushed.get()
    }

    /// Counts blocks flushed since the bin was last empty.
    pub(crate) fn count_flushed(&self, class: usize, blocks: u32) {
        let flushed = &self.classes[class].flushed;
        flushed.set(flushed.get().saturating_add(blocks));
    }

    /// Returns how many blocks were flushed since the bin was last empty, and resets the count: it is empty now.
    pub(crate) fn restart_flushed(&self, class: usize) -> u32 {
        self.classes[class].flushed.replace(0)
    }

    /// Whether the bin has blocks and nothing was allocated from it since this was last asked. For the decay tick.
    pub(crate) fn is_idle_since_last_asked(&self, class: usize) -> bool {
        let allocs = self.allocs(class);
        self.classes[class].allocs_at_tick.replace(allocs) == allocs && !self.is_empty(class)
    }

    /// Resets an empty bin for the next heap of this record; the counters continue.
    pub(crate) fn reset(&self, class: usize) {
        self.grant(class, 0);
        self.set_capacity(class, 0);
        self.restart_flushed(class);
    }
}

#[cfg(test)]
mod tests;
