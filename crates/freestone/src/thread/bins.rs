//! The bins: for each size class the free blocks that a thread has at hand. An allocation is a pop, a free is a push.
#![allow(unsafe_code)]
//!
//! ```text
//!  offset      0  lookup   which blocks are the heap's own    read by every `free`
//!             32  key      encodes links
//!             40  heads    [*block; 72]                       first free block of each bin
//!            616  allocs   [u64; 72]                          blocks handed out, ever
//!           1192  room     [i64; 72]                          frees until the slow path checks the bin
//!                 granted  [i64; 72]                          frees granted, ever: `room` counts them down
//!                 moved    [i64; 72]                          blocks that came from spans and the inbox, less those that were flushed out
//!                 classes, countdown  used by slow paths only
//! ```
//!
//! Arrays of fields rather than an array of bins: an index times 8 is an addressing mode, an index times 32 is an instruction.
//!
//! A bin ends with [`END_OF_BIN`], as its head or as the last link. Its links are encoded with the heap's key, and its blocks are marked
//! (`span::free_node`). A link that the program has damaged decodes to a number that is misaligned like the end, or that no memory is at: so the
//! hot path's one test leaves it for an empty bin and for a damaged one.
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
//! `N_CLASSES` in each. The blocks in a bin are free and belong to the bin, so their first words are its links. A slow path follows a link only
//! after it has looked the address up in the page map, unless the heap has no key.

use crate::size_class::{N_CLASSES, PerClass};
use crate::span::free_node::{self, END_OF_BIN, Linked, is_aligned};
use crate::span::{Generation, View};
use crate::thread::countdown::Countdown;
use crate::thread::free_block::{FreeBatch, FreeBlock, FreeChain};
use crate::thread::lookup::Lookup;
use core::cell::Cell;
use core::mem::offset_of;
use core::{hint, ptr};
use freestone_base::count::{self, CountsDown};
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::sync::{AtomicI64, AtomicU64, Ordering};

/// See the module header.
#[repr(C)]
pub(crate) struct Bins {
    lookup: Lookup,
    key: Cell<LinkKey>,
    heads: PerClass<Cell<*mut Node>>,
    allocs: PerClass<AtomicU64>,
    room: PerClass<AtomicI64>,
    granted: PerClass<AtomicI64>,
    moved: PerClass<AtomicI64>,
    classes: PerClass<BinState>,
    countdown: Countdown,
    /// The sum of the classes' capacities.
    capacities: Cell<u32>,
}

// `hotpath.golden` has these offsets, of 64-bit processors.
const _: () = assert!(offset_of!(Bins, lookup) == 0);
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(Bins, key) == 32);
    assert!(offset_of!(Bins, heads) == 40);
    assert!(offset_of!(Bins, allocs) == 40 + 8 * N_CLASSES);
    assert!(offset_of!(Bins, room) == 40 + 16 * N_CLASSES);
};

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
            key: Cell::new(LinkKey::PLAIN),
            heads: PerClass::new([const { Cell::new(END_OF_BIN) }; N_CLASSES]),
            allocs: PerClass::new([const { AtomicU64::new(0) }; N_CLASSES]),
            room: PerClass::new([const { AtomicI64::new(0) }; N_CLASSES]),
            granted: PerClass::new([const { AtomicI64::new(0) }; N_CLASSES]),
            moved: PerClass::new([const { AtomicI64::new(0) }; N_CLASSES]),
            classes: PerClass::new([const { BinState::new() }; N_CLASSES]),
            countdown: Countdown::new(),
            capacities: Cell::new(0),
        }
    }

    /// Makes them those of a heap of this generation. They are empty, or zero in a record that was never used.
    pub(crate) fn begin(&self, view: View, generation: Generation, key: LinkKey) {
        self.lookup.begin(view, generation);
        self.key.set(key);
        self.heads.iter().for_each(|head| head.set(END_OF_BIN));
    }

    /// What links are encoded with; plain if hardening is off.
    #[inline(always)]
    pub(crate) fn key(&self) -> LinkKey {
        self.key.get()
    }

    /// The lookup that decides whether a block is the heap's own.
    #[inline(always)]
    pub(crate) fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// Takes the first block of a bin; null if the bin is empty or damaged. The hot half of every allocation. `class` is below `N_CLASSES`.
    #[inline(always)]
    #[must_use]
    pub(crate) fn pop(&self, class: usize) -> *mut u8 {
        debug_assert!(class < N_CLASSES);
        // SAFETY: the class is below `N_CLASSES` (module header).
        let head = unsafe { self.heads.get_unchecked(class) };
        let block = head.get();
        if !is_aligned(block) {
            return ptr::null_mut();
        }
        // SAFETY: what is aligned is no end, but a block's address.
        unsafe { hint::assert_unchecked(!block.is_null()) };
        // SAFETY: a block in the bin is free, and its first word links to the next.
        head.set(unsafe { free_node::next(block, self.key()) });
        // SAFETY: the block is free, and no code has it yet.
        unsafe { free_node::clear_mark(block) };
        // SAFETY: the class is below `N_CLASSES`.
        count::increment(unsafe { self.allocs.get_unchecked(class) });
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

    /// Puts a freed block into its bin if there is room and the block has no mark; else gives it back. Right for every heap, a placeholder too.
    ///
    /// # Errors
    /// The block, if the bin has no room, or the block may be free already.
    #[inline(always)]
    pub(crate) fn try_push(&self, block: FreeBlock) -> Result<(), FreeBlock> {
        debug_assert!(block.class() < N_CLASSES);
        // SAFETY: the class of a free block is below `N_CLASSES`.
        let room = unsafe { self.room.get_unchecked(block.class()) };
        if room.load(Ordering::Relaxed) <= 0 || block.is_marked() {
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
        head.set(block.link(head.get(), self.key()));
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
        head.set(batch.link(head.get(), self.key()));
        self.count_moved(class, i64::from(len));
    }

    /// Takes all but the first `keep` blocks out of a bin; `None` if there are no more than these. `view` covers them.
    ///
    /// # Errors
    /// A link of those that stay is damaged: the address of the block with the link, or 0 for the head. The blocks before it are in the bin, the
    /// others are lost.
    pub(crate) fn take_all_but(&self, class: usize, keep: i64, view: &View) -> Result<Option<FreeChain>, usize> {
        let n = u32::try_from(self.len(class) - keep).unwrap_or(0);
        let mut blocks = self.iter(class, view);
        for kept in 0..keep {
            if blocks.next().is_none() {
                if blocks.at == END_OF_BIN {
                    return Ok(None);
                }
                self.end_behind(class, blocks.before);
                self.count_moved(class, kept - self.len(class));
                return Err(blocks.before.addr());
            }
        }
        self.end_behind(class, blocks.before);
        Ok(Some(self.chain(blocks.at, n, class)))
    }

    /// Ends a bin behind a block in it; empties the bin if the block is null.
    fn end_behind(&self, class: usize, last: *mut Node) {
        if last.is_null() {
            self.heads[class].set(END_OF_BIN);
        } else {
            self.link_behind(last, END_OF_BIN);
        }
    }

    /// Links a block of a bin to `next`, a block or the end.
    fn link_behind(&self, block: *mut Node, next: *mut Node) {
        // SAFETY: the block is in the bin: free, and its first word is its link.
        unsafe { (*block).next = self.key().apply(next) };
    }

    /// The `n` blocks from `first` on, which were in the bin and are in it no more.
    fn chain(&self, first: *mut Node, n: u32, class: usize) -> FreeChain {
        // SAFETY: what was cut off the bin is linked with its key, free, and in no bin; the bin counted `n` blocks of it.
        unsafe { FreeChain::new(first, n, class, self.key()) }
    }

    /// The blocks of a bin, up to its end or a damaged link. `view` covers them. The bin does not change meanwhile.
    fn iter<'a>(&self, class: usize, view: &'a View) -> Linked<'a> {
        self.linked(self.heads[class].get(), class, view)
    }

    /// The blocks of a bin, or of those set aside, from `first` on. `view` covers them.
    fn linked<'a>(&self, first: *mut Node, class: usize, view: &'a View) -> Linked<'a> {
        // SAFETY: the blocks in the bin and beside it are free, and linked with its key.
        unsafe { Linked::new(first, class, self.key(), view) }
    }

    /// Ends a bin at the block at `address`, if it is in it: it was freed again meanwhile and linked elsewhere. The blocks behind it are lost.
    /// `view` covers the blocks.
    pub(crate) fn end_at(&self, class: usize, address: usize, view: &View) {
        let (mut blocks, most) = (self.iter(class, view), usize::try_from(self.len(class)).unwrap_or(0));
        if let Some(at) = blocks.by_ref().take(most).position(|at| at.addr() == address) {
            // SAFETY: the block is in the bin, and so free.
            unsafe { free_node::write_in_bin(blocks.before, END_OF_BIN, self.key()) };
            self.count_moved(class, at as i64 + 1 - self.len(class));
        }
    }

    /// Whether a bin has no block.
    pub(crate) fn is_empty(&self, class: usize) -> bool {
        self.heads[class].get() == END_OF_BIN
    }

    /// The first block of a bin, or null: for checks.
    pub(crate) fn first(&self, class: usize) -> *mut Node {
        if self.is_empty(class) { ptr::null_mut() } else { free_node::not_chosen(self.heads[class].get()) }
    }

    /// The block `n` behind one of a bin that has as many, all of which were put there just now; of null, the first one is 1 behind.
    fn behind(&self, class: usize, block: *mut Node, n: u64) -> *mut Node {
        match n {
            0 => block,
            // SAFETY: the blocks are in the bin: free, and linked with its key.
            _ if block.is_null() => unsafe { free_node::behind(self.first(class), n - 1, self.key()) },
            // SAFETY: as above.
            _ => unsafe { free_node::behind(block, n, self.key()) },
        }
    }

    /// Blocks handed out of a bin, ever.
    pub(crate) fn allocs(&self, class: usize) -> u64 {
        self.allocs[class].load(Ordering::Relaxed)
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
    #[inline(always)]
    pub(crate) fn count_single_alloc(&self, class: usize) {
        count::increment(&self.allocs[class]);
        self.count_moved(class, 1);
    }

    /// Takes back the count of an allocation: it counts elsewhere.
    pub(crate) fn uncount_alloc(&self, class: usize) {
        let allocs = &self.allocs[class];
        allocs.store(allocs.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
        self.count_moved(class, -1);
    }

    /// Counts a block that was freed and does not come into the bin.
    #[inline(always)]
    pub(crate) fn count_single_free(&self, class: usize) {
        let granted = &self.granted[class];
        granted.store(granted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.count_moved(class, -1);
    }

    /// Frees until the slow path checks a bin.
    pub(crate) fn room(&self, class: usize) -> i64 {
        self.room[class].load(Ordering::Relaxed)
    }

    /// Blocks in a bin. For the heap's thread.
    #[inline]
    pub(crate) fn len(&self, class: usize) -> i64 {
        self.moved[class].load(Ordering::Relaxed) + self.own_frees(class) - self.allocs(class) as i64
    }

    /// What [`Bins::frees`] is when the bin's room is used up: the hot paths cannot get further.
    #[inline(always)]
    pub(crate) fn frees_within_reach(&self, class: usize) -> u64 {
        self.granted[class].load(Ordering::Relaxed) as u64
    }

    /// Counts blocks that came into a bin (or, negative, left it) other than by allocation and free.
    #[inline(always)]
    pub(crate) fn count_moved(&self, class: usize, blocks: i64) {
        let moved = &self.moved[class];
        moved.store(moved.load(Ordering::Relaxed) + blocks, Ordering::Relaxed);
    }
}

mod aside;
mod bin_state;
mod chosen;
mod damaged;
mod room;
mod sampling;
use bin_state::BinState;

#[cfg(test)]
mod tests;
