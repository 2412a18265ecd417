//! The pool of one thread: a bit per block, and a high-water mark.
//!
//! ```text
//! | used | free | free | used | never used ......... | groups |
//!                             ^ n_carved, the high-water mark
//! ```
//!
//! Free blocks are found by their bits ([`Groups`]), so the pool touches no block, except to clear it. Blocks above the high-water mark have
//! never been written. The mark moves only when no block is free, so `n_carved` is also the greatest number of blocks that were ever in use
//! at once.
//!
//! Invariants ([`FixedPool::check`]): those of the groups; bits are set only below the high-water mark.
//! Cost: O(1), some fifteen instructions per call, checks included. Threads: one at a time (`&mut self`).
//!
//! Long because: every public method has its example.
//!
//! # Safety
//! Only the pool uses the region while the pool exists: the contract of the constructors.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{self, Fallback, NoFallback};
use crate::grid::Grid;
use crate::groups::Groups;
use crate::shape::Shape;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Blocks of one size over memory that it is given, for one thread at a time.
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
/// // SAFETY: the block has 48 bytes, and nothing uses it after it is freed. The second call is refused.
/// unsafe {
///     assert_eq!(block.read(), 0);
///     pool.deallocate(block)?;
///     assert!(matches!(pool.deallocate(block), Err(Error::DoubleFree { .. })));
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct FixedPool<'m, F = NoFallback> {
    pub(crate) blocks: Blocks<'m>,
    pub(crate) fallback: F,
}

/// The pool's own blocks. The fallback is beside them, so that it can be called while they are not borrowed.
pub(crate) struct Blocks<'m> {
    pub(crate) grid: Grid,
    pub(crate) groups: Groups,
    /// The high-water mark: the blocks below it have been handed out at least once.
    pub(crate) n_carved: usize,
    /// Whether the blocks above the high-water mark are known to be zero.
    is_zeroed: bool,
    memory: PhantomData<&'m mut [MaybeUninit<u8>]>,
}

// SAFETY: the pool has exclusive access to its region, and nothing in it depends on the thread.
unsafe impl Send for Blocks<'_> {}

impl<'m> FixedPool<'m> {
    /// Makes a pool in `region`, of which it uses [`Shape::region_bytes`]. Writes nothing yet.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let mut pool = FixedPool::new(shape, &mut memory.0)?;
    /// assert!(pool.allocate().is_ok());
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::RegionMisaligned`] (the region must start at a multiple of [`Shape::align`]), [`Error::RegionTooSmall`].
    pub fn new(shape: Shape, region: &'m mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        let bytes = region.len();
        // SAFETY: the slice is borrowed exclusively, for longer than the pool lives.
        unsafe { Self::new_at(shape, NonNull::from(region).cast(), bytes) }
    }

    /// Makes a pool in the `bytes` bytes at `start`: for memory that is no Rust slice.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// use core::ptr::NonNull;
    ///
    /// let start = NonNull::from(&mut memory.0).cast();
    /// // SAFETY: only the pool uses the memory.
    /// let mut pool = unsafe { FixedPool::new_at(shape, start, shape.region_bytes())? };
    /// assert_eq!(pool.allocate()?, start);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FixedPool::new`].
    ///
    /// # Safety
    /// - The memory is valid for reads and writes for `'m`, and until the pool is gone nothing else accesses it, except the owners of blocks.
    pub unsafe fn new_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        let grid = Grid::new(shape, start, bytes, shape.region_bytes())?;
        let groups = Groups::at(grid.bookkeeping());
        let blocks = Blocks { grid, groups, n_carved: 0, is_zeroed: false, memory: PhantomData };
        Ok(Self { blocks, fallback: NoFallback })
    }

    /// Makes a pool in the `bytes` bytes at `start`, all of which are zero, as memory from an operating system is.
    /// [`FixedPool::allocate_zeroed`] then does not clear a block that was never used.
    ///
    /// ```
    /// use freestone_pool::{FixedPool, Shape};
    /// use std::alloc::{Layout, alloc_zeroed};
    ///
    /// let shape = Shape::new(64, 16)?;
    /// let layout = Layout::from_size_align(shape.region_bytes(), shape.align()).expect("a layout");
    /// // SAFETY: the layout has more than 0 bytes.
    /// let start = core::ptr::NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
    /// // SAFETY: only the pool uses the memory, all of which is zero.
    /// let mut pool = unsafe { FixedPool::new_zeroed_at(shape, start, layout.size())? };
    /// // SAFETY: the block has 64 bytes.
    /// assert_eq!(unsafe { pool.allocate_zeroed()?.cast::<[u8; 64]>().read() }, [0; 64]);
    /// # // SAFETY: the pool is not used any more.
    /// # unsafe { std::alloc::dealloc(start.as_ptr(), layout) };
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FixedPool::new`].
    ///
    /// # Safety
    /// - As [`FixedPool::new_at`], and the memory is zero.
    pub unsafe fn new_zeroed_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        // SAFETY: the memory is valid and the pool's alone: this function's contract.
        let Self { blocks, fallback } = unsafe { Self::new_at(shape, start, bytes) }?;
        Ok(Self { blocks: Blocks { is_zeroed: true, ..blocks }, fallback })
    }

    /// Adds a fallback, which serves requests when no block is left. Each call of a `FixedPool` borrows the fallback exclusively; one whose blocks lie in
    /// itself can serve a [`Local`](crate::Local).
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// use freestone_pool::HeapFallback;
    ///
    /// let mut pool = FixedPool::new(shape, &mut memory.0)?.with_fallback(HeapFallback(std::alloc::System));
    /// let blocks: Vec<_> = (0..17).map(|_| pool.allocate()).collect::<Result<_, _>>()?;
    /// assert!(!pool.contains(blocks[16]), "the pool has 16 blocks");
    /// # // SAFETY: each block is freed once and not used afterwards.
    /// # blocks.into_iter().try_for_each(|block| unsafe { pool.deallocate(block) })?;
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub fn with_fallback<F: Fallback>(self, fallback: F) -> FixedPool<'m, F> {
        let Self { blocks, fallback: NoFallback } = self;
        FixedPool { blocks, fallback }
    }
}

impl<F: Fallback> FixedPool<'_, F> {
    /// Allocates a block. Its contents are undefined.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let mut pool = FixedPool::new(shape, &mut memory.0)?;
    /// for _ in 0..16 {
    ///     pool.allocate()?;
    /// }
    /// assert_eq!(pool.allocate(), Err(Error::Exhausted { count: 16, block_bytes: 64 }));
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Exhausted`]: no block is left, and the fallback has none.
    /// - [`Error::Damaged`]: the bookkeeping was overwritten.
    ///
    /// # Complexity
    /// O(1).
    #[inline]
    pub fn allocate(&mut self) -> Result<NonNull<u8>, Error> {
        match self.blocks.pop() {
            Some(block) => Ok(block),
            None => self.allocate_fresh(),
        }
    }

    /// Allocates a block of zeros: clears [`Shape::block_bytes`] bytes, or nothing if the block is known to be zero.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let mut pool = FixedPool::new(shape, &mut memory.0)?;
    /// let block = pool.allocate_zeroed()?;
    /// // SAFETY: the block has 64 bytes, all zero.
    /// assert_eq!(unsafe { block.read() }, 0);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FixedPool::allocate`].
    #[inline]
    pub fn allocate_zeroed(&mut self) -> Result<NonNull<u8>, Error> {
        match self.blocks.pop() {
            Some(block) => {
                // SAFETY: the block was just taken from the free ones, and has that many bytes.
                unsafe { block.write_bytes(0, self.blocks.grid.shape.block_bytes()) };
                Ok(block)
            }
            None => self.allocate_fresh_zeroed(),
        }
    }

    /// Frees a block.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let mut pool = FixedPool::new(shape, &mut memory.0)?;
    /// let block = pool.allocate()?;
    /// // SAFETY: the block is not used afterwards.
    /// unsafe {
    ///     assert!(matches!(pool.deallocate(block.add(8)), Err(Error::Interior { .. })));
    ///     pool.deallocate(block)?;
    ///     assert!(matches!(pool.deallocate(block), Err(Error::DoubleFree { .. })));
    /// }
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// The pool is unchanged after each, and each names the block.
    /// - [`Error::Foreign`]: the address is not in this pool, and the fallback reports that it is not one of its blocks.
    /// - [`Error::Interior`]: the address is inside a block.
    /// - [`Error::DoubleFree`], [`Error::NeverAllocated`]: the block is not in use.
    ///
    /// # Safety
    /// - Nothing uses the block afterwards.
    /// - If there is a fallback and the address is not in this pool, the block was allocated from the fallback, unless that can tell.
    ///
    /// # Complexity
    /// O(1).
    #[inline]
    pub unsafe fn deallocate(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        if self.blocks.put(block) {
            return Ok(());
        }
        // SAFETY: nothing uses the block any more, and a block outside the pool is the fallback's: this function's contract.
        unsafe { fallback::give_back(&self.fallback, self.blocks.grid, self.blocks.n_carved, block) }
    }

    /// Frees a block as [`FixedPool::deallocate`] does, without any check.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let mut pool = FixedPool::new(shape, &mut memory.0)?;
    /// let block = pool.allocate()?;
    /// // SAFETY: the block was allocated from the pool just now, and is not used afterwards.
    /// unsafe { pool.deallocate_unchecked(block) };
    /// assert_eq!(pool.stats().n_used, 0);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Safety
    /// - The block was allocated from this pool, not its fallback, was not freed since, and nothing uses it afterwards.
    #[inline]
    pub unsafe fn deallocate_unchecked(&mut self, block: NonNull<u8>) {
        // SAFETY: the block is in use, so it is below the high-water mark, and its group was begun.
        unsafe { self.blocks.groups.put_unchecked(self.blocks.grid.index_of(block.addr().get())) };
    }

    #[cold]
    fn allocate_fresh(&mut self) -> Result<NonNull<u8>, Error> {
        match self.blocks.take_fresh()? {
            Some(block) => Ok(block),
            None => fallback::ask(&self.fallback, self.blocks.grid.shape),
        }
    }

    #[cold]
    fn allocate_fresh_zeroed(&mut self) -> Result<NonNull<u8>, Error> {
        let shape = self.blocks.grid.shape;
        let Some(block) = self.blocks.take_fresh()? else {
            return self.fallback.allocate_zeroed(shape.layout()).ok_or(shape.exhausted());
        };
        if !self.blocks.is_zeroed {
            // SAFETY: the block was just taken, and has that many bytes.
            unsafe { block.write_bytes(0, shape.block_bytes()) };
        }
        Ok(block)
    }
}

impl Blocks<'_> {
    /// Makes a block that is in use free; returns `false` and changes nothing if it is not one of these in use.
    #[inline(always)]
    pub(crate) fn put(&mut self, block: NonNull<u8>) -> bool {
        let index = self.grid.index_of(block.addr().get());
        // SAFETY: the group of every block below the high-water mark was begun.
        index < self.n_carved && unsafe { self.groups.put(index) }
    }

    /// Takes a free block from below the high-water mark; `None` if there is none.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<NonNull<u8>> {
        let index = self.groups.take()?;
        if index >= self.n_carved {
            return None;
        }
        // SAFETY: the index is below the high-water mark, so below the count.
        Some(unsafe { self.grid.block(index) })
    }

    /// Takes the next block that was never used, and moves the high-water mark; `None` if all blocks have been used.
    fn carve(&mut self) -> Option<NonNull<u8>> {
        let index = self.n_carved;
        if index == self.grid.shape.count() {
            return None;
        }
        // SAFETY: the index is below the count, so there is a group for it; blocks are begun in order.
        unsafe { self.groups.begin(index) };
        self.n_carved += 1;
        // SAFETY: the index is below the count.
        Some(unsafe { self.grid.block(index) })
    }

    /// Takes a block that was never used; `None` if all blocks have been used. Fails if the list of groups was overwritten. Called when no block
    /// could be taken from that.
    pub(crate) fn take_fresh(&mut self) -> Result<Option<NonNull<u8>>, Error> {
        if self.groups.is_lost() {
            return Err(Error::Damaged { block: self.grid.address(0) });
        }
        Ok(self.carve())
    }
}
