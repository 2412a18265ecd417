//! One thread's store of free blocks in front of a shared pool.
//!
//! ```text
//! slots: | oldest | ... | newest |   |   |        empty: half a load is fetched; full: the older half goes back
//! ```
//!
//! So a thread that allocates and frees in turn goes to a shared list at most once in `N / 2` calls, with one exchange for the batch.
//!
//! Invariant: the blocks in `slots[..len]` are kept by this magazine alone. Dropping it puts them on its list.
//! Cost: `allocate` a load and a store of the block's link; `deallocate` one uncontended exchange of it, which is what catches a second
//! free also by another thread.
//!
//! # Safety
//! As [`crate::SharedPool`].
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{Fallback, NoFallback};
use crate::shared::SharedPool;
use core::ptr::NonNull;

/// Up to `N` free blocks for one thread; while they are here no other thread can get them.
pub struct Magazine<'p, 'm, F = NoFallback, const N: usize = 64> {
    pool: &'p SharedPool<'m, F>,
    /// The list it is filled from and emptied to.
    list: usize,
    len: usize,
    slots: [u32; N],
}

impl<'p, 'm, F: Fallback, const N: usize> Magazine<'p, 'm, F, N> {
    /// An empty magazine in front of `pool`. `N`, a power of two of 2 or more, is chosen by the type; [`SharedPool::magazine`] makes one of 64.
    #[must_use]
    pub fn new(pool: &'p SharedPool<'m, F>) -> Self {
        const { assert!(N.is_power_of_two() && N >= 2, "a magazine is filled and emptied by halves") };
        Self { pool, list: pool.links.list_of_magazine(), len: 0, slots: [0; N] }
    }

    /// As [`SharedPool::allocate`].
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

    /// As [`SharedPool::allocate_zeroed`].
    ///
    /// # Errors
    /// As [`SharedPool::allocate`].
    #[inline]
    pub fn allocate_zeroed(&mut self) -> Result<NonNull<u8>, Error> {
        match self.take_one() {
            Some((block, is_fresh)) => {
                if let Some(&next) = self.slots.get(self.len.wrapping_sub(1)) {
                    self.pool.grid.fetch_ahead(next as usize);
                }
                // SAFETY: the block was just handed out.
                unsafe { self.pool.clear(block, is_fresh) };
                Ok(block)
            }
            None => self.pool.ask_fallback_zeroed(),
        }
    }

    /// As [`SharedPool::deallocate`].
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
            // SAFETY: the same obligation.
            return unsafe { self.pool.refuse(block) };
        }
        self.keep(index as u32);
        Ok(())
    }

    /// As [`SharedPool::deallocate_unchecked`].
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
    /// Gives all free blocks back to the pool, for other threads.
    pub fn flush(&mut self) {
        if let Some(kept) = self.slots.get(..self.len) {
            self.pool.links.give(self.list, kept);
            self.len = 0;
        }
    }

    /// A block, and whether it is fresh.
    #[inline(always)]
    fn take_one(&mut self) -> Option<(NonNull<u8>, bool)> {
        if self.len == 0 {
            self.refill();
        }
        let last = self.len.wrapping_sub(1);
        let index = *self.slots.get(last)?;
        self.len = last;
        // SAFETY: a magazine holds blocks of its pool.
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
            // The best block to hand out next comes last.
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

impl<F, const N: usize> Drop for Magazine<'_, '_, F, N> {
    fn drop(&mut self) {
        self.flush();
    }
}
