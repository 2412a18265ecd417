//! A magazine: one thread's cache of free blocks, a stack in front of a shared pool.
//!
//! ```text
//! slots: | oldest | ... | newest |   |   |        empty: half of it is filled; full: the older half goes back to a list
//! ```
//!
//! A thread that allocates and frees in turn therefore uses a shared list at most once in `N / 2` calls, with one exchange for the batch.
//!
//! Invariant: the blocks in `slots[..len]` are blocks of the pool that are in this magazine alone. Dropping the magazine puts them into its list.
//! Cost: `allocate` takes a load and a store of the block's link, `deallocate` one uncontended exchange of it; the exchange detects a double
//! free, also one by another thread.
//!
//! # Safety
//! The indices in `slots` come from the pool's lists or from links that were in use, so they are below the pool's count.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{Fallback, NoFallback};
use crate::grid::Grid;
use crate::shared::SharedPool;
use core::ptr::NonNull;
use freestone_base::prefetch;

/// Smaller blocks are not prefetched: they are cleared before the lines could arrive.
const LEAST_AHEAD_BYTES: usize = 512;

/// The number of cache lines to prefetch: more gain nothing.
const LINES_AHEAD: usize = 4;

/// Up to `N` free blocks for one thread. Other threads cannot allocate them meanwhile.
///
/// ```
/// use core::mem::MaybeUninit;
/// use freestone_pool::{Error, Magazine, Shape, SharedPool};
///
/// #[repr(align(16))]
/// struct Memory([MaybeUninit<u8>; 8192]);
/// let mut memory = Memory([MaybeUninit::uninit(); 8192]);
///
/// let pool = SharedPool::new(Shape::new(48, 64)?, &mut memory.0)?;
/// let mut magazine: Magazine<'_, '_, _, 16> = Magazine::new(&pool);
/// let block = magazine.allocate()?;
/// // SAFETY: nothing uses the block any more.
/// unsafe { magazine.deallocate(block)? };
/// # Ok::<(), Error>(())
/// ```
pub struct Magazine<'p, 'm, F = NoFallback, const N: usize = 64> {
    pool: &'p SharedPool<'m, F>,
    /// The list that it is filled from and emptied to.
    list: usize,
    len: usize,
    slots: [u32; N],
}

/// Prefetches the beginning of the block that a magazine will hand out next, so that it is in the cache when the block is cleared. The first
/// lines of a page that was not used for a while are the slowest, and the processor's own prefetcher needs them to recognize the
/// pattern. With blocks of 4 KiB that do not fit in the second-level cache, clearing takes a quarter less time. Any index is allowed.
#[inline(always)]
fn fetch_ahead(grid: &Grid, index: usize) {
    if grid.shape.block_bytes() >= LEAST_AHEAD_BYTES {
        let block = core::ptr::without_provenance::<[u8; 64]>(grid.address(index));
        (0..LINES_AHEAD).for_each(|line| prefetch::for_write(block.wrapping_add(line)));
    }
}

impl<'p, 'm, F: Fallback, const N: usize> Magazine<'p, 'm, F, N> {
    /// An empty magazine for `pool`. The type chooses `N`, a power of two, 2 or more; [`SharedPool::magazine`] makes one of 64.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// use freestone_pool::Magazine;
    ///
    /// let mut magazine: Magazine<'_, '_, _, 4> = Magazine::new(&pool);
    /// magazine.allocate()?;
    /// let in_pool = (0..16).filter(|_| pool.allocate().is_ok()).count();
    /// assert_eq!(in_pool, 14, "it is filled by halves: it took two blocks");
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[must_use]
    pub fn new(pool: &'p SharedPool<'m, F>) -> Self {
        const { assert!(N.is_power_of_two() && N >= 2, "a magazine is filled and emptied by halves") };
        Self { pool, list: pool.links.list_of_magazine(), len: 0, slots: [0; N] }
    }

    /// Allocates a block, as [`SharedPool::allocate`] does.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// let mut magazine = pool.magazine();
    /// let block = magazine.allocate()?;
    /// assert_eq!(pool.usable_size(block), Ok(64));
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SharedPool::allocate`].
    #[inline]
    pub fn allocate(&mut self) -> Result<NonNull<u8>, Error> {
        match self.take_one() {
            Some((block, _)) => Ok(block),
            None => self.pool.ask_fallback(),
        }
    }

    /// Allocates a block of zeros, as [`SharedPool::allocate_zeroed`] does.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// let mut magazine = pool.magazine();
    /// let block = magazine.allocate_zeroed()?;
    /// // SAFETY: the block has 64 bytes, all zero.
    /// assert_eq!(unsafe { block.cast::<[u8; 64]>().read() }, [0; 64]);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SharedPool::allocate`].
    #[inline]
    pub fn allocate_zeroed(&mut self) -> Result<NonNull<u8>, Error> {
        match self.take_one() {
            Some((block, is_fresh)) => {
                if let Some(&next) = self.slots.get(self.len.wrapping_sub(1)) {
                    fetch_ahead(&self.pool.grid, next as usize);
                }
                // SAFETY: the block was just handed out, to this call alone.
                unsafe { self.pool.clear(block, is_fresh) };
                Ok(block)
            }
            None => self.pool.ask_fallback_zeroed(),
        }
    }

    /// Frees a block, as [`SharedPool::deallocate`] does: one that any thread allocated, with a magazine or without.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// use freestone_pool::Error;
    ///
    /// let mut magazine = pool.magazine();
    /// let block = pool.allocate()?;
    /// // SAFETY: the block is not used afterwards.
    /// unsafe {
    ///     magazine.deallocate(block)?;
    ///     assert!(matches!(pool.deallocate(block), Err(Error::DoubleFree { .. })));
    /// }
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SharedPool::deallocate`].
    ///
    /// # Safety
    /// As [`SharedPool::deallocate`].
    #[inline]
    pub unsafe fn deallocate(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        let index = self.pool.grid.index_of(block.addr().get());
        if !self.pool.links.take_back(index) {
            // SAFETY: nothing uses the block any more, and a block outside the pool is the fallback's: this function's contract.
            return unsafe { self.pool.refuse(block) };
        }
        self.keep(index as u32);
        Ok(())
    }

    /// Frees a block without any check, as [`SharedPool::deallocate_unchecked`] does.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// let mut magazine = pool.magazine();
    /// let block = magazine.allocate()?;
    /// // SAFETY: the block was allocated from the pool just now, and is not used afterwards.
    /// unsafe { magazine.deallocate_unchecked(block) };
    /// assert_eq!(magazine.allocate()?, block, "the block that was freed last comes first");
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`SharedPool::deallocate_unchecked`].
    #[inline]
    pub unsafe fn deallocate_unchecked(&mut self, block: NonNull<u8>) {
        let index = self.pool.grid.index_of(block.addr().get()) as u32;
        self.pool.links.take_back_unchecked(index);
        self.keep(index);
    }
}

impl<F, const N: usize> Magazine<'_, '_, F, N> {
    /// Returns all free blocks to the pool, so that other threads can allocate them.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = freestone_pool::SharedPool::new(shape, &mut memory.0)?;
    /// let mut magazine = pool.magazine();
    /// let block = magazine.allocate()?;
    /// // SAFETY: the block is not used afterwards.
    /// unsafe { magazine.deallocate(block)? };
    /// magazine.flush();
    /// for _ in 0..16 {
    ///     pool.allocate()?; // all 16 blocks, none of which the magazine keeps
    /// }
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub fn flush(&mut self) {
        if let Some(kept) = self.slots.get(..self.len) {
            self.pool.links.give(self.list, kept);
            self.len = 0;
        }
    }

    /// Takes a block and marks it as in use; also returns whether it was never used before.
    #[inline(always)]
    fn take_one(&mut self) -> Option<(NonNull<u8>, bool)> {
        if self.len == 0 {
            self.refill();
        }
        let last = self.len.wrapping_sub(1);
        let index = *self.slots.get(last)?;
        self.len = last;
        // SAFETY: a magazine has blocks of its pool, so the index is below the count.
        Some((unsafe { self.pool.grid.block(index as usize) }, self.pool.links.hand_out(index)))
    }

    #[inline(always)]
    fn keep(&mut self, index: u32) {
        if self.len == N {
            self.flush_older_half();
        }
        if let Some(slot) = self.slots.get_mut(self.len) {
            *slot = index;
            self.len += 1;
        }
    }

    #[cold]
    fn refill(&mut self) {
        if let Some(half) = self.slots.get_mut(..N / 2) {
            self.len = self.pool.links.take(self.list, half);
            // The best block to hand out next becomes the last.
            self.slots.get_mut(..self.len).into_iter().for_each(<[u32]>::reverse);
        }
    }

    #[cold]
    fn flush_older_half(&mut self) {
        let (older, newer) = self.slots.split_at_mut(N / 2);
        self.pool.links.give(self.list, older);
        older.copy_from_slice(newer);
        self.len = N / 2;
    }
}

impl<'m, F: Fallback> SharedPool<'m, F> {
    /// A magazine of up to 64 free blocks for one thread.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = freestone_pool::SharedPool::new(shape, &mut memory.0)?;
    /// let mut magazine = pool.magazine();
    /// let block = magazine.allocate()?;
    /// // SAFETY: the block is not used afterwards.
    /// unsafe { magazine.deallocate(block)? };
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub fn magazine(&self) -> Magazine<'_, 'm, F> {
        Magazine::new(self)
    }
}

impl<F, const N: usize> Drop for Magazine<'_, '_, F, N> {
    fn drop(&mut self) {
        self.flush();
    }
}
