//! The pool of many threads: blocks as in [`crate::FixedPool`], a lock-free list instead of a list.
//!
//! ```text
//! | block 0 | block 1 | ... | links, 4 bytes a block | heads of the lists |
//!    magazine of thread 1 ◀── a batch ──▶ list ┈┈┈┈ list ◀── a batch ──▶ magazine of thread 2
//! ```
//!
//! A thread that allocates much takes a [`Magazine`]: most of its calls then touch nothing that another thread writes. Without one
//! each call changes the head of a list. Threads use different lists, and look at the others' when theirs is empty.
//!
//! Which thread may do what: all of `&self` by any; a block may be given back by any thread, with or without a magazine.
//! Cost: a call without contention is bounded; with it, some thread always finishes. Damage: a block's contents hold no bookkeeping,
//! so a write after free corrupts no list.
//!
//! # Safety
//! The region is the pool's alone while it lives, and its links are only reached as atomics.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{Fallback, NoFallback};
use crate::grid::Grid;
use crate::links::{Head, Links, MOST_BLOCKS, N_LISTS, list_of_this_thread};
use crate::magazine::Magazine;
use crate::shape::Shape;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use freestone_base::sync::AtomicU32;

/// Equal blocks over memory it is given, for any number of threads, without a lock.
///
/// ```
/// use core::mem::MaybeUninit;
/// use freestone_pool::{Error, Shape, SharedPool};
///
/// let shape = Shape::aligned(64, 1000, 8)?;
/// let mut memory = vec![MaybeUninit::<u64>::uninit(); shape.shared_region_bytes().div_ceil(8)];
/// // SAFETY: the vector lives longer than the pool.
/// let pool = unsafe { SharedPool::new_at(shape, core::ptr::NonNull::from(&mut memory[..]).cast(), memory.len() * 8)? };
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| {
///             let mut magazine = pool.magazine();
///             let block = magazine.allocate()?;
///             // SAFETY: nobody uses the block any more.
///             unsafe { magazine.deallocate(block) }
///         });
///     }
/// });
/// assert_eq!(pool.stats().n_used, 0);
/// # Ok::<(), Error>(())
/// ```
pub struct SharedPool<'m, F = NoFallback> {
    pub(crate) grid: Grid,
    pub(crate) links: Links<'m>,
    pub(crate) is_zeroed: bool,
    fallback: F,
    memory: PhantomData<&'m mut [MaybeUninit<u8>]>,
}

// SAFETY: nothing in the pool belongs to a thread.
unsafe impl<F: Send> Send for SharedPool<'_, F> {}
// SAFETY: the lists hand each block to one caller; the grid only computes addresses.
unsafe impl<F: Sync> Sync for SharedPool<'_, F> {}

impl<'m> SharedPool<'m> {
    /// A pool in `region`, of which it uses [`Shape::shared_region_bytes`]. The links are written, 4 bytes a block, and the heads
    /// of the lists; the blocks are not.
    ///
    /// # Errors
    /// A region misaligned or too small; more blocks than 32 bits can name.
    pub fn new(shape: Shape, region: &'m mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        let bytes = region.len();
        // SAFETY: the exclusive borrow outlives the pool.
        unsafe { Self::new_at(shape, NonNull::from(region).cast(), bytes) }
    }

    /// A pool in the `bytes` at `start`: for memory that is no Rust slice.
    ///
    /// # Errors
    /// As [`SharedPool::new`].
    ///
    /// # Safety
    /// - The memory is valid for reads and writes for `'m`, and nothing else touches it, but for blocks in use, until the pool is gone.
    pub unsafe fn new_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        let grid = Self::grid(shape, start, bytes)?;
        let links = grid.bookkeeping().cast::<AtomicU32>();
        for index in 0..shape.count() {
            // SAFETY: the region has a link for each block.
            unsafe { links.add(index).write(AtomicU32::new(0)) };
        }
        // SAFETY: the links were just written, and are the pool's for as long as the memory.
        Ok(unsafe { Self::over(grid, false) })
    }

    /// A pool in the `bytes` at `start`, all of them zero, as an operating system gives them. The lists' heads are written, nothing
    /// else, and a block that is handed out for the first time need not be cleared.
    ///
    /// # Errors
    /// As [`SharedPool::new`].
    ///
    /// # Safety
    /// - As [`SharedPool::new_at`], and the memory is zero.
    #[cfg(not(loom))]
    pub unsafe fn new_zeroed_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        let grid = Self::grid(shape, start, bytes)?;
        // SAFETY: zero bytes are atomics of value 0.
        Ok(unsafe { Self::over(grid, true) })
    }

    fn grid(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Grid, Error> {
        if shape.count() > MOST_BLOCKS {
            return Err(Error::TooLarge { block_bytes: shape.block_bytes(), count: shape.count() });
        }
        Grid::new(shape, start, bytes, shape.shared_region_bytes())
    }

    /// # Safety
    /// - Behind the grid's blocks lies an atomic 0 for each.
    unsafe fn over(grid: Grid, is_zeroed: bool) -> Self {
        let first = grid.bookkeeping().cast::<AtomicU32>();
        // SAFETY: the caller's promise; the blocks' alignment and spacing keep the table aligned. The heads lie behind it, where there is
        // room for them at their alignment.
        let (links, heads) = unsafe {
            let links = core::slice::from_raw_parts(first.as_ptr(), grid.shape.count());
            let behind = first.add(grid.shape.count()).cast::<u8>();
            let heads = behind.byte_add(behind.align_offset(align_of::<Head>())).cast::<Head>();
            (0..N_LISTS).for_each(|list| heads.add(list).write(Head::empty()));
            (links, heads.cast::<[Head; N_LISTS]>().as_ref())
        };
        Self { grid, links: Links::new(links, heads), is_zeroed, fallback: NoFallback, memory: PhantomData }
    }

    /// The same pool with something behind it for when no block is left.
    pub fn with_fallback<F: Fallback>(self, fallback: F) -> SharedPool<'m, F> {
        let Self { grid, links, is_zeroed, fallback: NoFallback, memory } = self;
        SharedPool { grid, links, is_zeroed, fallback, memory }
    }
}

impl<'m, F: Fallback> SharedPool<'m, F> {
    /// A store of up to 64 free blocks for one thread.
    pub fn magazine(&self) -> Magazine<'_, 'm, F> {
        Magazine::new(self)
    }

    /// Hands out a block. Its contents are whatever they are.
    ///
    /// # Errors
    /// No block is left, nor does the fallback have one. Free blocks in threads' magazines are not looked for.
    #[inline]
    pub fn allocate(&self) -> Result<NonNull<u8>, Error> {
        match self.take_one() {
            Some((block, _)) => Ok(block),
            None => self.ask_fallback(),
        }
    }

    /// Hands out a block of zeroes: clears [`Shape::block_bytes`], or nothing if the block is known to be zero.
    ///
    /// # Errors
    /// As [`SharedPool::allocate`].
    #[inline]
    pub fn allocate_zeroed(&self) -> Result<NonNull<u8>, Error> {
        match self.take_one() {
            Some((block, is_fresh)) => {
                // SAFETY: the block was just handed out.
                unsafe { self.clear(block, is_fresh) };
                Ok(block)
            }
            None => self.ask_fallback_zeroed(),
        }
    }

    /// Takes a block back, from any thread.
    ///
    /// # Errors
    /// As [`crate::FixedPool::deallocate`]. Of two threads that free one block at the same time, one is refused.
    ///
    /// # Safety
    /// As [`crate::FixedPool::deallocate`].
    #[inline]
    pub unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        let index = self.grid.index_of(block.addr().get());
        if !self.links.take_back(index) {
            // SAFETY: the same obligation.
            return unsafe { self.refuse(block) };
        }
        self.links.give(list_of_this_thread(), &[index as u32]);
        Ok(())
    }

    /// As [`SharedPool::deallocate`], without any check.
    ///
    /// # Safety
    /// As [`crate::FixedPool::deallocate_unchecked`].
    #[inline]
    pub unsafe fn deallocate_unchecked(&self, block: NonNull<u8>) {
        let index = self.grid.index_of(block.addr().get()) as u32;
        self.links.take_back_unchecked(index);
        self.links.give(list_of_this_thread(), &[index]);
    }

    /// A block, and whether it is fresh.
    #[inline]
    fn take_one(&self) -> Option<(NonNull<u8>, bool)> {
        let mut batch = [0];
        if self.links.take(list_of_this_thread(), &mut batch) == 0 {
            return None;
        }
        let [index] = batch;
        // SAFETY: the list holds blocks of the grid.
        Some((unsafe { self.grid.block(index as usize) }, self.links.hand_out(index)))
    }

    /// Makes a block zero, if it is not known to be.
    ///
    /// # Safety
    /// - The block was just handed out to the caller.
    #[inline(always)]
    pub(crate) unsafe fn clear(&self, block: NonNull<u8>, is_fresh: bool) {
        if !(is_fresh && self.is_zeroed) {
            // SAFETY: the caller's promise; a block is that long.
            unsafe { block.write_bytes(0, self.grid.shape.block_bytes()) };
        }
    }

    #[cold]
    pub(crate) fn ask_fallback(&self) -> Result<NonNull<u8>, Error> {
        self.fallback.allocate(self.grid.shape.layout()).ok_or(self.exhausted())
    }

    #[cold]
    pub(crate) fn ask_fallback_zeroed(&self) -> Result<NonNull<u8>, Error> {
        self.fallback.allocate_zeroed(self.grid.shape.layout()).ok_or(self.exhausted())
    }

    fn exhausted(&self) -> Error {
        Error::Exhausted { count: self.grid.shape.count(), block_bytes: self.grid.shape.block_bytes() }
    }

    /// What is not a block in use is the fallback's, or an error.
    ///
    /// # Safety
    /// As [`SharedPool::deallocate`].
    #[cold]
    pub(crate) unsafe fn refuse(&self, block: NonNull<u8>) -> Result<(), Error> {
        let address = block.addr().get();
        // SAFETY: the same obligation.
        if !self.grid.contains(address) && unsafe { self.fallback.deallocate(block, self.grid.shape.layout()) } {
            return Ok(());
        }
        Err(self.grid.diagnose(address, self.links.n_carved()))
    }
}
