//! The pool for many threads: blocks as in [`FixedPool`](crate::FixedPool), with lock-free lists of the free ones.
//!
//! ```text
//! | block 0 | block 1 | ... | links, 4 bytes a block | heads of the lists |
//!    magazine of thread 1 ◀── a batch ──▶ list ┈┈┈┈ list ◀── a batch ──▶ magazine of thread 2
//! ```
//!
//! A thread that allocates much uses a [`Magazine`](crate::Magazine): most of its calls then touch no cache line that another thread writes.
//! Without one, each call changes the head of a list. Threads use different lists, and take from the others when theirs is empty.
//!
//! Threads: any thread may call any method that takes `&self`, and free any block, with a magazine or without.
//! Cost: a call without contention is bounded; under contention some thread always makes progress. A block contains no bookkeeping,
//! so a write after free damages no list.
//!
//! Long because: every public method has its example.
//!
//! # Safety
//! Only the pool uses the region while the pool exists: the contract of the constructors. The links are accessed only as atomics.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{self, Fallback, NoFallback};
use crate::grid::Grid;
use crate::links::{Head, Links, MOST_BLOCKS, N_LISTS, list_of_this_thread};
use crate::shape::Shape;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use freestone_base::sync::AtomicU32;

/// Blocks of one size over memory that it is given, for any number of threads, without a lock.
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
///             // SAFETY: nothing uses the block any more.
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

// SAFETY: nothing in the pool depends on the thread.
unsafe impl<F: Send> Send for SharedPool<'_, F> {}
// SAFETY: links and heads are atomics, which hand each block to one caller; the grid only computes addresses.
unsafe impl<F: Sync> Sync for SharedPool<'_, F> {}

impl<'m> SharedPool<'m> {
    /// The most blocks of a shared pool.
    ///
    /// ```
    /// use freestone_pool::SharedPool;
    ///
    /// assert_eq!(SharedPool::MOST_BLOCKS, (1 << 32) - 3);
    /// ```
    pub const MOST_BLOCKS: usize = MOST_BLOCKS;

    /// Makes a pool in `region`, of which it uses [`Shape::shared_region_bytes`]. Writes the links, 4 bytes per block, and the heads
    /// of the lists, but not the blocks.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = freestone_pool::SharedPool::new(shape, &mut memory.0)?;
    /// let block = pool.allocate()?;
    /// std::thread::scope(|scope| {
    ///     let address = block.addr();
    ///     scope.spawn(move || assert!(address.get() % 16 == 0));
    /// });
    /// // SAFETY: the block is not used afterwards.
    /// unsafe { pool.deallocate(block)? };
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::RegionMisaligned`] (the region must start at a multiple of [`Shape::align`]), [`Error::RegionTooSmall`];
    /// [`Error::TooLarge`] if there are more blocks than 32 bits can number.
    pub fn new(shape: Shape, region: &'m mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        let bytes = region.len();
        // SAFETY: the slice is borrowed exclusively, for longer than the pool lives.
        unsafe { Self::new_at(shape, NonNull::from(region).cast(), bytes) }
    }

    /// Makes a pool in the `bytes` bytes at `start`: for memory that is no Rust slice.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// use core::ptr::NonNull;
    ///
    /// let start = NonNull::from(&mut memory.0).cast();
    /// // SAFETY: only the pool uses the memory.
    /// let pool = unsafe { SharedPool::new_at(shape, start, shape.shared_region_bytes())? };
    /// assert!(pool.contains(pool.allocate()?));
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SharedPool::new`].
    ///
    /// # Safety
    /// - The memory is valid for reads and writes for `'m`, and until the pool is gone nothing else accesses it, except the owners of blocks.
    pub unsafe fn new_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        let grid = Self::grid(shape, start, bytes)?;
        let links = grid.bookkeeping().cast::<AtomicU32>();
        for index in 0..shape.count() {
            // SAFETY: the region has a link for each block.
            let link = unsafe { links.add(index) };
            // SAFETY: the link is the pool's alone, and the spacing of the blocks in front of it keeps it aligned.
            unsafe { link.write(AtomicU32::new(0)) };
        }
        // SAFETY: a link of 0 was just written for each block; the region is the pool's alone for `'m`: this function's contract.
        Ok(unsafe { Self::over(grid, false) })
    }

    /// Makes a pool in the `bytes` bytes at `start`, all of which are zero, as memory from an operating system is. Writes the heads of the
    /// lists and nothing else. [`SharedPool::allocate_zeroed`] then does not clear a block that was never used.
    ///
    /// ```
    /// use freestone_pool::{Shape, SharedPool};
    /// use std::alloc::{Layout, alloc_zeroed};
    ///
    /// let shape = Shape::new(64, 16)?;
    /// let layout = Layout::from_size_align(shape.shared_region_bytes(), shape.align()).expect("a layout");
    /// // SAFETY: the layout has more than 0 bytes.
    /// let start = core::ptr::NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
    /// // SAFETY: only the pool uses the memory, all of which is zero.
    /// let pool = unsafe { SharedPool::new_zeroed_at(shape, start, layout.size())? };
    /// // SAFETY: the block has 64 bytes.
    /// assert_eq!(unsafe { pool.allocate_zeroed()?.cast::<[u8; 64]>().read() }, [0; 64]);
    /// # // SAFETY: the pool is not used any more.
    /// # unsafe { std::alloc::dealloc(start.as_ptr(), layout) };
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SharedPool::new`].
    ///
    /// # Safety
    /// - As [`SharedPool::new_at`], and the memory is zero.
    #[cfg(not(loom))]
    pub unsafe fn new_zeroed_at(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        let grid = Self::grid(shape, start, bytes)?;
        // SAFETY: the memory is zero, and zero bytes are links of value 0; the region is the pool's alone for `'m`.
        Ok(unsafe { Self::over(grid, true) })
    }

    fn grid(shape: Shape, start: NonNull<u8>, bytes: usize) -> Result<Grid, Error> {
        if shape.count() > MOST_BLOCKS {
            return Err(Error::TooLarge { block_bytes: shape.block_bytes(), count: shape.count() });
        }
        Grid::new(shape, start, bytes, shape.shared_region_bytes())
    }

    /// The pool over `grid`, with empty lists.
    ///
    /// # Safety
    /// - Behind the grid's blocks there is a link of 0 for each block, and then [`HEADS_BYTES`](crate::links::HEADS_BYTES) bytes.
    /// - Only the pool uses that memory for `'m`.
    unsafe fn over(grid: Grid, is_zeroed: bool) -> Self {
        let first = grid.bookkeeping().cast::<AtomicU32>();
        // SAFETY: there is a link for each block; the spacing of the blocks in front of the first one keeps them aligned.
        let links = unsafe { core::slice::from_raw_parts(first.as_ptr(), grid.shape.count()) };
        // SAFETY: the memory goes on behind the links.
        let behind = unsafe { first.add(grid.shape.count()) }.cast::<u8>();
        // SAFETY: `HEADS_BYTES` are enough for the heads wherever they can be aligned.
        let heads = unsafe { behind.byte_add(behind.align_offset(align_of::<Head>())) }.cast::<[Head; N_LISTS]>();
        // SAFETY: the heads are aligned and have room, and are the pool's alone.
        unsafe { heads.write(core::array::from_fn(|_| Head::empty())) };
        // SAFETY: the heads were just written, and stay for `'m`; nothing but the pool accesses them.
        let heads = unsafe { heads.as_ref() };
        Self { grid, links: Links::new(links, heads), is_zeroed, fallback: NoFallback, memory: PhantomData }
    }

    /// Adds a fallback, which serves requests when no block is left.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// use freestone_pool::HeapFallback;
    ///
    /// let pool = SharedPool::new(shape, &mut memory.0)?.with_fallback(HeapFallback(std::alloc::System));
    /// let blocks: Vec<_> = (0..17).map(|_| pool.allocate()).collect::<Result<_, _>>()?;
    /// assert!(!pool.contains(blocks[16]), "the pool has 16 blocks");
    /// # // SAFETY: each block is freed once and not used afterwards.
    /// # blocks.into_iter().try_for_each(|block| unsafe { pool.deallocate(block) })?;
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub fn with_fallback<F: Fallback>(self, fallback: F) -> SharedPool<'m, F> {
        let Self { grid, links, is_zeroed, fallback: NoFallback, memory } = self;
        SharedPool { grid, links, is_zeroed, fallback, memory }
    }
}

impl<F: Fallback> SharedPool<'_, F> {
    /// Allocates a block. Its contents are undefined.
    ///
    /// ```
    /// # use freestone_pool::{Error, SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// let blocks: Vec<_> = (0..16).map(|_| pool.allocate()).collect::<Result<_, _>>()?;
    /// assert_eq!(pool.allocate(), Err(Error::Exhausted { count: 16, block_bytes: 64 }));
    /// assert_eq!(pool.stats().n_used, blocks.len());
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Exhausted`]: no block is left, and the fallback has none. Free blocks in other threads' magazines are not used, nor are those behind a
    /// link that was overwritten ([`SharedPool::check`] finds it).
    #[inline]
    pub fn allocate(&self) -> Result<NonNull<u8>, Error> {
        match self.take_one() {
            Some((block, _)) => Ok(block),
            None => self.ask_fallback(),
        }
    }

    /// Allocates a block of zeros: clears [`Shape::block_bytes`] bytes, or nothing if the block is known to be zero.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// let block = pool.allocate_zeroed()?;
    /// // SAFETY: the block has 64 bytes, all zero.
    /// assert_eq!(unsafe { block.cast::<[u8; 64]>().read() }, [0; 64]);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SharedPool::allocate`].
    #[inline]
    pub fn allocate_zeroed(&self) -> Result<NonNull<u8>, Error> {
        match self.take_one() {
            Some((block, is_fresh)) => {
                // SAFETY: the block was just handed out, to this call alone.
                unsafe { self.clear(block, is_fresh) };
                Ok(block)
            }
            None => self.ask_fallback_zeroed(),
        }
    }

    /// Frees a block, on any thread.
    ///
    /// ```
    /// # use freestone_pool::{Error, SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// let block = pool.allocate()?;
    /// // SAFETY: the block is not used afterwards.
    /// unsafe {
    ///     pool.deallocate(block)?;
    ///     assert!(matches!(pool.deallocate(block), Err(Error::DoubleFree { .. })));
    /// }
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FixedPool::deallocate`](crate::FixedPool::deallocate). If two threads free one block at the same time, one is refused.
    ///
    /// # Safety
    /// As [`FixedPool::deallocate`](crate::FixedPool::deallocate).
    #[inline]
    pub unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        let index = self.grid.index_of(block.addr().get());
        if !self.links.take_back(index) {
            // SAFETY: nothing uses the block any more, and a block outside the pool is the fallback's: this function's contract.
            return unsafe { self.refuse(block) };
        }
        self.links.give(list_of_this_thread(), &[index as u32]);
        Ok(())
    }

    /// Frees a block as [`SharedPool::deallocate`] does, without any check.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let pool = SharedPool::new(shape, &mut memory.0)?;
    /// let block = pool.allocate()?;
    /// // SAFETY: the block was allocated from the pool just now, and is not used afterwards.
    /// unsafe { pool.deallocate_unchecked(block) };
    /// assert_eq!(pool.stats().n_used, 0);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`FixedPool::deallocate_unchecked`](crate::FixedPool::deallocate_unchecked).
    #[inline]
    pub unsafe fn deallocate_unchecked(&self, block: NonNull<u8>) {
        let index = self.grid.index_of(block.addr().get()) as u32;
        self.links.take_back_unchecked(index);
        self.links.give(list_of_this_thread(), &[index]);
    }

    /// Takes a block and marks it as in use; also returns whether it was never used before.
    #[inline]
    fn take_one(&self) -> Option<(NonNull<u8>, bool)> {
        let mut batch = [0];
        if self.links.take(list_of_this_thread(), &mut batch) == 0 {
            return None;
        }
        let [index] = batch;
        // SAFETY: the lists hold indices of blocks, which are below the count.
        Some((unsafe { self.grid.block(index as usize) }, self.links.hand_out(index)))
    }

    /// Clears a block, unless it is known to be zero.
    ///
    /// # Safety
    /// - `block` is a block of this pool that was just handed out to the caller.
    #[inline(always)]
    pub(crate) unsafe fn clear(&self, block: NonNull<u8>, is_fresh: bool) {
        if !(is_fresh && self.is_zeroed) {
            // SAFETY: a block of this pool has that many bytes, and this one is the caller's alone.
            unsafe { block.write_bytes(0, self.grid.shape.block_bytes()) };
        }
    }

    #[cold]
    pub(crate) fn ask_fallback(&self) -> Result<NonNull<u8>, Error> {
        fallback::ask(&self.fallback, self.grid.shape)
    }

    #[cold]
    pub(crate) fn ask_fallback_zeroed(&self) -> Result<NonNull<u8>, Error> {
        self.fallback.allocate_zeroed(self.grid.shape.layout()).ok_or(self.grid.shape.exhausted())
    }

    /// Frees a block that is not one of this pool's in use: passes it to the fallback, or reports what is wrong with it.
    ///
    /// # Safety
    /// - As [`SharedPool::deallocate`]: if the block is not in this pool, it is the fallback's, unless that can tell; nothing uses it.
    #[cold]
    pub(crate) unsafe fn refuse(&self, block: NonNull<u8>) -> Result<(), Error> {
        // SAFETY: if the block is not in this pool, it is the fallback's, unless that can tell, and nothing uses it.
        unsafe { fallback::give_back(&self.fallback, self.grid, self.links.n_carved(), block) }
    }
}
