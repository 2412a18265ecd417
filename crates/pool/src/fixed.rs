//! The pool of one thread: a bit for each block, and a frontier.
//!
//! ```text
//! | used | free | free | used | never carved ....... | groups |
//!                             ^ n_carved
//! ```
//!
//! Free blocks are found by their bits ([`Groups`]), so nothing but their user touches them. Blocks behind the frontier have never been
//! written. The frontier moves only when no block is free, so `n_carved` is also the most blocks that were ever in use at once.
//!
//! Invariants ([`FixedPool::check`]): those of the groups; bits are set below the frontier only.
//! Cost: O(1), some fifteen instructions a call, checks included. Which thread: one at a time (`&mut self`).
//!
//! # Safety
//! The region is the pool's alone while it lives.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{Fallback, NoFallback};
use crate::grid::Grid;
use crate::groups::Groups;
use crate::shape::Shape;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Equal blocks over memory it is given, for one thread at a time.
///
/// ```
/// use core::mem::MaybeUninit;
/// use freestone_pool::{Error, FixedPool, Shape};
///
/// #[repr(align(16))]
/// struct Memory([MaybeUninit<u8>; SHAPE.region_bytes()]);
/// const SHAPE: Shape = match Shape::new(48, 100) {
///     Ok(shape) => shape,
///     Err(_) => panic!("no such pool"),
/// };
/// let mut memory = Memory([MaybeUninit::uninit(); SHAPE.region_bytes()]);
///
/// let mut pool = FixedPool::new(SHAPE, &mut memory.0)?;
/// let block = pool.allocate_zeroed()?;
/// // SAFETY: 48 zero bytes; nobody uses the block after it is given back.
/// unsafe {
///     assert_eq!(block.read(), 0);
///     pool.deallocate(block)?;
///     assert!(matches!(pool.deallocate(block), Err(Error::DoubleFree { .. })));
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct FixedPool<'m, F = NoFallback> {
    pub(crate) grid: Grid,
    pub(crate) groups: Groups,
    /// The frontier: blocks before it have been handed out at least once.
    pub(crate) n_carved: usize,
    /// Whether memory behind the frontier is known to be zero.
    is_zeroed: bool,
    fallback: F,
    memory: PhantomData<&'m mut [MaybeUninit<u8>]>,
}

// SAFETY: the pool has the only access to its region, and nothing in it belongs to a thread.
unsafe impl<F: Send> Send for FixedPool<'_, F> {}

impl<'m> FixedPool<'m> {
    /// A pool in `region`, of which it uses [`Shape::region_bytes`]. Nothing is written yet.
    ///
    /// # Errors
    /// A region misaligned or too small.
    pub fn new(shape: Shape, region: &'m mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        let bytes = region.len();
        // SAFETY: the exclusive borrow outlives the pool.
        unsafe { Self::new_at(shape, NonNull::from(region).cast(), bytes) }
    }

    /// A pool in the `bytes` at `start`: for memory that is no Rust slice.
    ///
    /// # Errors
    /// As [`FixedPool::new`].
    ///
    /// # Safety
    /// - The memory is valid for reads and writes for `'m`, and nothing else touches it, but for blocks in use, until the pool is gone.
    pub unsafe fn new_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        let grid = Grid::new(shape, start, bytes, shape.region_bytes())?;
        Ok(Self {
            groups: Groups::at(grid.bookkeeping()),
            grid,
            n_carved: 0,
            is_zeroed: false,
            fallback: NoFallback,
            memory: PhantomData,
        })
    }

    /// A pool in the `bytes` at `start`, all of them zero, as an operating system gives them:
    /// [`FixedPool::allocate_zeroed`] need not clear a block the first time.
    ///
    /// # Errors
    /// As [`FixedPool::new`].
    ///
    /// # Safety
    /// - As [`FixedPool::new_at`], and the memory is zero.
    pub unsafe fn new_zeroed_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        // SAFETY: the same obligation.
        let pool = unsafe { Self::new_at(shape, start, bytes) }?;
        Ok(Self { is_zeroed: true, ..pool })
    }

    /// The same pool with something behind it for when no block is left.
    pub fn with_fallback<F: Fallback>(self, fallback: F) -> FixedPool<'m, F> {
        let Self { grid, groups, n_carved, is_zeroed, fallback: NoFallback, memory } = self;
        FixedPool { grid, groups, n_carved, is_zeroed, fallback, memory }
    }
}

impl<F: Fallback> FixedPool<'_, F> {
    /// Hands out a block. Its contents are whatever they are.
    ///
    /// # Errors
    /// No block is left, nor does the fallback have one; or the bookkeeping was written over.
    ///
    /// # Complexity
    /// O(1).
    #[inline]
    pub fn allocate(&mut self) -> Result<NonNull<u8>, Error> {
        match self.pop() {
            Some(block) => Ok(block),
            None => self.allocate_fresh(),
        }
    }

    /// Hands out a block of zeroes: clears [`Shape::block_bytes`], or nothing if the block is known to be zero.
    ///
    /// # Errors
    /// As [`FixedPool::allocate`].
    #[inline]
    pub fn allocate_zeroed(&mut self) -> Result<NonNull<u8>, Error> {
        match self.pop() {
            Some(block) => {
                // SAFETY: the block is the caller's from here on, and that long.
                unsafe { block.write_bytes(0, self.grid.shape.block_bytes()) };
                Ok(block)
            }
            None => self.allocate_fresh_zeroed(),
        }
    }

    /// Takes a block back.
    ///
    /// # Errors
    /// The address is no block of this pool (and not of its fallback, as far as that can tell), inside a block, of a free one, or of
    /// one that was never handed out. The error names the block, and the pool is as it was.
    ///
    /// # Safety
    /// - Nothing uses the block afterwards.
    /// - If there is a fallback and the address is not in this pool, the block is the fallback's, unless that can tell.
    ///
    /// # Complexity
    /// O(1).
    #[inline]
    pub unsafe fn deallocate(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        let index = self.grid.index_of(block.addr().get());
        // SAFETY: below the frontier every group was begun.
        if index < self.n_carved && unsafe { self.groups.put(index) } {
            return Ok(());
        }
        // SAFETY: the same obligation.
        unsafe { self.refuse(block) }
    }

    /// As [`FixedPool::deallocate`], without any check.
    ///
    /// # Safety
    /// - The block is one that this pool, not its fallback, handed out and has not taken back, and nothing uses it afterwards.
    #[inline]
    pub unsafe fn deallocate_unchecked(&mut self, block: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.groups.put_unchecked(self.grid.index_of(block.addr().get())) };
    }

    /// Takes a free block; none if there is none below the frontier.
    #[inline(always)]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let index = self.groups.take()?;
        if index >= self.n_carved {
            return None;
        }
        // SAFETY: the block lies below the frontier.
        Some(unsafe { self.grid.block(index) })
    }

    /// Moves the frontier by one block; none if it is at the end.
    fn carve(&mut self) -> Option<NonNull<u8>> {
        let index = self.n_carved;
        if index == self.grid.shape.count() {
            return None;
        }
        // SAFETY: the index is below the count.
        unsafe {
            self.groups.begin(index);
            self.n_carved += 1;
            Some(self.grid.block(index))
        }
    }

    /// An error if the list of free blocks was written over; nothing if it is empty.
    fn check_list(&self) -> Result<(), Error> {
        if self.groups.is_lost() { Err(Error::Damaged { block: self.grid.address(0) }) } else { Ok(()) }
    }

    #[cold]
    fn allocate_fresh(&mut self) -> Result<NonNull<u8>, Error> {
        self.check_list()?;
        let block = self.carve().or_else(|| self.fallback.allocate(self.grid.shape.layout()));
        block.ok_or(self.exhausted())
    }

    #[cold]
    fn allocate_fresh_zeroed(&mut self) -> Result<NonNull<u8>, Error> {
        self.check_list()?;
        let Some(block) = self.carve() else {
            return self.fallback.allocate_zeroed(self.grid.shape.layout()).ok_or(self.exhausted());
        };
        if !self.is_zeroed {
            // SAFETY: the block is the caller's from here on, and that long.
            unsafe { block.write_bytes(0, self.grid.shape.block_bytes()) };
        }
        Ok(block)
    }

    fn exhausted(&self) -> Error {
        Error::Exhausted { count: self.grid.shape.count(), block_bytes: self.grid.shape.block_bytes() }
    }

    /// What is not a block in use is the fallback's, or an error.
    ///
    /// # Safety
    /// As [`FixedPool::deallocate`].
    #[cold]
    unsafe fn refuse(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        let address = block.addr().get();
        // SAFETY: the same obligation.
        if !self.grid.contains(address) && unsafe { self.fallback.deallocate(block, self.grid.shape.layout()) } {
            return Ok(());
        }
        Err(self.grid.diagnose(address, self.n_carved))
    }
}
