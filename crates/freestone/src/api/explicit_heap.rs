//! [`Heap`]: an explicit heap; dropping it frees all its blocks at once.
#![allow(unsafe_code)]
//!
//! ```text
//!  Heap::new ─▶ allocate, free, from any thread ─▶ drop: every block of it is gone
//! ```
//!
//! A heap is a thread heap behind a lock: whichever thread holds the lock is its thread. Any thread may free its blocks, by
//! [`Heap::deallocate`] of any heap, or by C's `free` where that is `libfreestone`'s: a free by a thread that does not hold the lock puts the
//! block into the heap's inbox at once. So when the heap is dropped, every block that was freed before is in its spans or its inbox, and the other blocks end with it.
//!
//! Rust's global `dealloc` must not free its blocks: it trusts the layout and keeps the block in a bin of its thread without looking up the
//! owner, where the block would outlive its heap. (`GlobalAlloc` and `Allocator` ask the same of every allocator: free with the one that
//! allocated.)
//!
//! Cost: the thread heap's, and an uncontended lock. C's `free`, and a free while another thread has the lock, is one atomic operation; such blocks wait until
//! the heap next allocates, `purge` is called, or the background thread finds that they have waited for the decay time. (A thread that uses only explicit heaps has
//! no heap of its own, and does not count as one of the threads for which `background=auto` starts that.)
//!
//! # Safety
//! Dropping a heap frees all its blocks: the contract of its unsafe constructor covers that.

use crate::api::process::{self, PROCESS};
use crate::api::{free, recording, shortage};
use crate::config::{Harden, Mistake};
use crate::size_class::{block_bytes, class_of_aligned};
use crate::stats::rows::HeapStats;
use crate::thread::explicit::ExplicitHeap;
use crate::thread::free_block::FreeBlock;
use crate::thread::gated::Entered;
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::{any_block, flush, upkeep};
use core::alloc::Layout;
use core::ptr::NonNull;
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::System;

/// An explicit heap: blocks allocated from it are freed one by one or, when it is dropped, all at once.
///
/// Blocks come from spans and page runs of their own, which no other heap uses. Any number of threads may use a heap; a lock makes them take
/// turns. With one of the features for it, a `Heap` is an `Allocator`, and so is a `&Heap`.
///
/// ```
/// use core::alloc::Layout;
/// use freestone::Heap;
///
/// // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
/// let heap = unsafe { Heap::new() }.expect("memory for a heap");
/// let layout = Layout::array::<u64>(100)?;
/// let numbers = heap.allocate(layout).expect("memory for 100 numbers").cast::<u64>();
/// // SAFETY: the block holds 100 numbers, and is live.
/// unsafe { numbers.write(7) };
/// // The block ends with the heap.
/// drop(heap);
/// # Ok::<(), core::alloc::LayoutError>(())
/// ```
#[derive(Debug)]
pub struct Heap {
    record: &'static ExplicitHeap<System>,
}

// SAFETY: the record is only used under its lock.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Heap {
    /// A new heap without a limit; `None` when memory runs out.
    ///
    /// ```
    /// use freestone::Heap;
    ///
    /// // SAFETY: no block is allocated from it.
    /// let heap = unsafe { Heap::new() }.expect("memory for a heap");
    /// drop(heap);
    /// ```
    ///
    /// # Safety
    /// - When the heap is dropped, no code uses any block allocated from it, and every free of one has returned, or never comes.
    /// - Its blocks are freed by [`Heap::deallocate`], or by C's `free` where that is `libfreestone`'s, not by
    ///   [`GlobalAlloc::dealloc`](core::alloc::GlobalAlloc::dealloc).
    #[must_use]
    pub unsafe fn new() -> Option<Self> {
        // SAFETY: this function's contract is that of `hardened`.
        unsafe { Self::hardened(Harden::Off) }
    }

    /// A new heap whose blocks are hardened as `level` says, or as the option `harden` says for the process if that is more; `None` when memory
    /// runs out. From [`Harden::Checks`] on every operation on its blocks is checked, whichever thread makes it. What [`Harden::Full`]
    /// does besides, it does only for the process as a whole.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// use freestone::Heap;
    /// use freestone::options::Harden;
    ///
    /// // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    /// let heap = unsafe { Heap::hardened(Harden::Checks) }.expect("memory for a heap");
    /// let block = heap.allocate(Layout::new::<[u8; 24]>()).expect("memory for 24 bytes");
    /// // SAFETY: the block was allocated just now, and is not used again. A write behind its end would be reported here.
    /// unsafe { heap.deallocate(block) };
    /// ```
    ///
    /// # Safety
    /// - As for [`Heap::new`].
    #[must_use]
    pub unsafe fn hardened(level: Harden) -> Option<Self> {
        if !process::start() {
            return None;
        }
        PROCESS.explicit_heap(level).map(|record| Self { record })
    }

    /// Limits the heap's memory to `bytes`, rounded down to whole pages of 64 KiB; `None` removes the limit. A span counts in full, however
    /// few of its blocks are allocated.
    ///
    /// # Errors
    /// The heap has more than that already, or `bytes` is less than a page; nothing has changed then.
    ///
    /// ```
    /// # use core::alloc::Layout;
    /// # use freestone::Heap;
    /// # // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    /// # let heap = unsafe { Heap::new() }.expect("memory for a heap");
    /// heap.set_limit(Some(1 << 20))?;
    /// assert!(heap.allocate(Layout::new::<[u8; 2 << 20]>()).is_none());
    /// # Ok::<(), freestone::options::Mistake>(())
    /// ```
    pub fn set_limit(&self, bytes: Option<usize>) -> Result<(), Mistake> {
        let limit_pages = bytes.map(|bytes| (bytes >> PAGE_BYTES_LOG2) as u64);
        if limit_pages == Some(0) {
            return Err(Mistake::OutOfRange);
        }
        self.record.set_limit(limit_pages).map_err(|_| Mistake::BelowUse)
    }

    /// Its record.
    pub(super) fn record(&self) -> &'static ExplicitHeap<System> {
        self.record
    }

    /// What the heap holds now. Blocks that other threads have freed go back to the heap first. In a heap that is hardened with
    /// [`Harden::Checks`] or more, freed blocks that wait in its quarantine count as live.
    ///
    /// ```
    /// # use core::alloc::Layout;
    /// # use freestone::Heap;
    /// # // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    /// # let heap = unsafe { Heap::new() }.expect("memory for a heap");
    /// let block = heap.allocate(Layout::new::<[u8; 1000]>()).expect("memory for 1000 bytes");
    /// assert_eq!(heap.stats().live, 1024, "whole blocks count");
    /// # // SAFETY: the block was allocated just now, and is not used again.
    /// # unsafe { heap.deallocate(block) };
    /// assert_eq!(heap.stats().live, 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> HeapStats {
        process::stats_of_heap(self.record)
    }

    /// Allocates a block of `layout`, with any contents; `None` when memory runs out or the heap's limit is reached. A layout of size 0 gets a
    /// block, too.
    ///
    /// ```
    /// # use core::alloc::Layout;
    /// # use freestone::Heap;
    /// # // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    /// # let heap = unsafe { Heap::new() }.expect("memory for a heap");
    /// let block = heap.allocate(Layout::from_size_align(1000, 64)?).expect("memory for 1000 bytes");
    /// assert_eq!(block.addr().get() % 64, 0);
    /// # Ok::<(), core::alloc::LayoutError>(())
    /// ```
    #[must_use]
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        NonNull::new(self.new_block(layout).start)
    }

    /// Allocates a block of `layout` with every byte zero; `None` as for [`Heap::allocate`]. Memory that is known to be zero is not cleared again.
    ///
    /// ```
    /// # use core::alloc::Layout;
    /// # use freestone::Heap;
    /// # // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    /// # let heap = unsafe { Heap::new() }.expect("memory for a heap");
    /// let number = heap.allocate_zeroed(Layout::new::<u64>()).expect("memory for a number");
    /// // SAFETY: the block holds a number, and its bytes are zero.
    /// assert_eq!(unsafe { number.cast::<u64>().read() }, 0);
    /// ```
    #[must_use]
    pub fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = self.new_block(layout);
        let start = NonNull::new(block.start)?;
        if !block.zero {
            // SAFETY: the block was allocated for that many bytes just now, and no other code has it.
            unsafe { PROCESS.shared.pages.clear(block.start, layout.size()) };
        }
        Some(start)
    }

    fn new_block(&self, layout: Layout) -> NewBlock {
        let attempt = |own: Own<'_, System>| own.allocate(layout.size(), layout.align());
        self.in_turn(layout, attempt, |block| block.start.is_null())
    }

    /// Calls `attempt` with the heap; again, once there is room, if it found no memory for `layout`.
    fn in_turn<R>(&self, layout: Layout, attempt: impl Fn(Own<'_, System>) -> R, is_null: impl Fn(&R) -> bool) -> R {
        let n_refused = || self.record.holdings().n_refused();
        let (mut round, mut is_last) = (0, false);
        loop {
            let before = n_refused();
            let got = attempt(self.record.enter().own());
            let is_short = is_null(&got) && any_block::is_possible(layout.size(), layout.align());
            if !is_short {
                shortage::relieve();
                return got;
            }
            if is_last {
                return got;
            }
            is_last = self.make_room(n_refused() != before, round);
            round += 1;
        }
    }

    /// Makes room after attempt `round` has failed. Returns whether the next is the last. The rest of the process has no part in the heap's own limit, and
    /// keeps what it has.
    #[cold]
    #[inline(never)]
    fn make_room(&self, is_own_limit: bool, round: u32) -> bool {
        match (is_own_limit, round) {
            (false, _) => shortage::make_room(),
            (true, 0) => {}
            (true, _) => shortage::notify(),
        }
        upkeep::flush_all(self.record.enter().own());
        !is_own_limit || round > 0
    }

    /// Frees a block of this heap or any other.
    ///
    /// # Safety
    /// - The block was returned by Freestone, is not freed, and no code uses it any more.
    ///
    /// ```
    /// # use core::alloc::Layout;
    /// # use freestone::Heap;
    /// # // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    /// # let heap = unsafe { Heap::new() }.expect("memory for a heap");
    /// let block = heap.allocate(Layout::new::<u64>()).expect("memory for a number");
    /// // SAFETY: the block was allocated just now, and is not used again.
    /// unsafe { heap.deallocate(block) };
    /// ```
    pub unsafe fn deallocate(&self, block: NonNull<u8>) {
        // A thread whose calls are recorded frees it as any other block.
        let entered = if recording::recorded().is_none() { self.record.try_enter() } else { None };
        // SAFETY: the block is live, and no code uses it any more (this function's contract).
        let is_freed = |entered: Entered<'_, System>| unsafe { free_at_hand(entered.own(), block.as_ptr()) };
        if !entered.is_some_and(is_freed) {
            // SAFETY: as above, and it was not freed.
            unsafe { free::free(block.as_ptr()) }
        }
    }

    /// Makes a block allocated for the layout `old` hold `size` bytes with the same alignment, in this heap, keeping its contents up to the
    /// smaller size. Returns the block, which may have moved. `None` when memory runs out or the heap's limit is reached, and then the block is
    /// untouched.
    ///
    /// # Safety
    /// - The block was allocated by Freestone for `old`, and is not freed. It is not used again unless the result is `None`.
    ///
    /// ```
    /// # use core::alloc::Layout;
    /// # use freestone::Heap;
    /// # // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    /// # let heap = unsafe { Heap::new() }.expect("memory for a heap");
    /// let layout = Layout::new::<[u8; 100]>();
    /// let block = heap.allocate(layout).expect("memory for 100 bytes");
    /// // SAFETY: the block was allocated for `layout` just now, and only the new one is used.
    /// let longer = unsafe { heap.reallocate(block, layout, 1000) };
    /// assert!(longer.is_some());
    /// ```
    #[must_use]
    pub unsafe fn reallocate(&self, block: NonNull<u8>, old: Layout, size: usize) -> Option<NonNull<u8>> {
        let new = Layout::from_size_align(size, old.align()).ok()?;
        // SAFETY: the block is live, and not used again unless the result is null (this function's contract).
        let resize = |own: Own<'_, System>| unsafe { own.reallocate(block.as_ptr(), size, old.align()) };
        let resize_own = |own: Own<'_, System>| own.has(block.as_ptr()).then(|| resize(own));
        if let Some(resized) = self.in_turn(new, resize_own, |resized| resized.is_some_and(|block| block.is_null())) {
            return NonNull::new(resized);
        }
        let moved = self.allocate(new)?;
        // SAFETY: each block holds the smaller of the two sizes, and they are two.
        unsafe { moved.copy_from_nonoverlapping(block, old.size().min(size)) };
        // SAFETY: the old block is live, and not used again when the result is a new one (this function's contract).
        unsafe { self.deallocate(block) };
        Some(moved)
    }

    /// Bytes of the block that a layout gets, all of which may be used: its size rounded up to a size class; for large blocks, its size.
    ///
    /// ```
    /// # use core::alloc::Layout;
    /// # use freestone::Heap;
    /// assert_eq!(Heap::block_bytes(Layout::new::<[u8; 17]>()), 32);
    /// ```
    #[must_use]
    pub fn block_bytes(layout: Layout) -> usize {
        class_of_aligned(layout.size(), layout.align()).map_or(layout.size(), block_bytes)
    }
}

/// Frees a small block of a heap that is not watched, as C's `free` does that of a thread. `false` of any other block, which stays as it is.
///
/// # Safety
/// - As for [`Heap::deallocate`].
unsafe fn free_at_hand(own: Own<'_, System>, block: *mut u8) -> bool {
    let class = own.lookup().own_class(block.addr()).filter(|_| own.watch().is_none());
    let Some(class) = class else { return false };
    // SAFETY: the page map says that the block is of the class, and no code uses it any more (this function's contract).
    let block = unsafe { FreeBlock::new(block, class) };
    if block.is_marked() {
        // SAFETY: as above. The slow path finds out whether the block is free.
        unsafe { own.free(block.into_node().cast()) };
    } else {
        flush::push(own, block);
    }
    true
}

impl Drop for Heap {
    fn drop(&mut self) {
        // A thread that could have no heap may have freed blocks of this one, which are kept elsewhere until now.
        PROCESS.freed_early.free_all(self.record.enter().own());
        // SAFETY: no code uses a block of the heap any more, and frees of its blocks have returned (the contract of `new`); the heap is not
        // used after its drop.
        unsafe { PROCESS.threads.destroy(self.record) }
    }
}
