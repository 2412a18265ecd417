//! The allocator that serves a pool's requests when it has no block left. It is chosen by type, so a pool without one has no branch for it.
//!
//! # Safety
//! The trait is unsafe to implement, because the pool hands out the fallback's blocks as its own.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::grid::Grid;
use crate::shape::Shape;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

/// Has `fallback` serve a request, for which a pool of this shape has no block.
#[cold]
pub(crate) fn ask(fallback: &impl Fallback, shape: Shape) -> Result<NonNull<u8>, Error> {
    fallback.allocate(shape.layout()).ok_or(shape.exhausted())
}

/// Frees a block that is not one of the grid's in use: passes it to `fallback`, or reports what is wrong with it. The first `n_carved` blocks of
/// the grid have been handed out at least once.
///
/// # Safety
/// - If the block is not in the grid, it is the fallback's, unless that can tell; nothing uses it.
#[cold]
pub(crate) unsafe fn give_back(
    fallback: &impl Fallback,
    grid: Grid,
    n_carved: usize,
    block: NonNull<u8>,
) -> Result<(), Error> {
    let address = block.addr().get();
    // SAFETY: the block is the fallback's, unless that can tell, and nothing uses it.
    if !grid.contains(address) && unsafe { fallback.deallocate(block, grid.shape.layout()) } {
        return Ok(());
    }
    Err(grid.diagnose(address, n_carved))
}

/// An allocator that serves requests when a pool has no block left.
///
/// ```
/// # use freestone_pool::{Error, FixedPool, Shape};
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
/// # let shape = Shape::new(64, 16)?;
/// use core::alloc::Layout;
/// use core::ptr::NonNull;
/// use freestone_pool::Fallback;
/// use std::alloc::{GlobalAlloc, System};
///
/// /// The system's allocator, for pools of small blocks.
/// struct Small;
/// // SAFETY: the blocks are those of `System`, which knows no pool.
/// unsafe impl Fallback for Small {
///     fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
///         // SAFETY: a pool's layout has 1 byte or more.
///         if layout.size() <= 64 { NonNull::new(unsafe { System.alloc(layout) }) } else { None }
///     }
///     fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
///         // SAFETY: as above.
///         if layout.size() <= 64 { NonNull::new(unsafe { System.alloc_zeroed(layout) }) } else { None }
///     }
///     unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) -> bool {
///         // SAFETY: the block was allocated here with this layout.
///         unsafe { System.dealloc(block.as_ptr(), layout) };
///         true
///     }
/// }
/// let mut pool = FixedPool::new(shape, &mut memory.0)?.with_fallback(Small);
/// let blocks: Vec<_> = (0..17).map(|_| pool.allocate()).collect::<Result<_, _>>()?;
/// assert!(!pool.contains(blocks[16]), "the pool has 16 blocks");
/// # // SAFETY: each block is freed once and not used afterwards.
/// # blocks.into_iter().try_for_each(|block| unsafe { pool.deallocate(block) })?;
/// # Ok::<(), freestone_pool::Error>(())
/// ```
///
/// # Safety
/// - A block that it returns is aligned as the layout says and, until it is freed, valid for the layout's size and not handed out again, while the
///   fallback is neither moved nor borrowed exclusively.
/// - The bytes of a block of [`Fallback::allocate_zeroed`] are zero.
pub unsafe trait Fallback {
    /// Allocates a block; `None` if there is no memory.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Allocates a block of zeros; `None` if there is no memory.
    fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees a block that lies outside the pool. Returns `false` if the block is known not to be this fallback's: the pool
    /// then reports the address as foreign.
    ///
    /// # Safety
    /// - The block was allocated from this fallback with this layout and nothing uses it, or the implementation can tell that it was not.
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) -> bool;
}

/// No fallback: [`Error::Exhausted`](crate::Error::Exhausted) is returned when no block is left.
///
/// ```
/// # use freestone_pool::{Error, FixedPool, Shape};
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
/// # let shape = Shape::new(64, 16)?;
/// use freestone_pool::NoFallback;
///
/// let mut pool: FixedPool<'_, NoFallback> = FixedPool::new(shape, &mut memory.0)?;
/// assert_eq!((0..20).filter(|_| pool.allocate().is_ok()).count(), 16);
/// # Ok::<(), freestone_pool::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFallback;

// SAFETY: it never returns a block.
unsafe impl Fallback for NoFallback {
    fn allocate(&self, _layout: Layout) -> Option<NonNull<u8>> {
        None
    }
    fn allocate_zeroed(&self, _layout: Layout) -> Option<NonNull<u8>> {
        None
    }
    unsafe fn deallocate(&self, _block: NonNull<u8>, _layout: Layout) -> bool {
        false
    }
}

/// A heap as the fallback. It cannot tell its own blocks from foreign ones, so the pool cannot report a foreign pointer.
///
/// A heap whose memory is part of itself, such as an array, can serve a [`SharedPool`](crate::SharedPool) or a [`Local`](crate::Local) that stays where it is; each
/// call of a [`FixedPool`](crate::FixedPool) borrows its fallback exclusively.
///
/// ```
/// # use freestone_pool::{Error, FixedPool, Shape};
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
/// # let shape = Shape::new(64, 16)?;
/// use freestone_pool::HeapFallback;
/// use std::alloc::System;
///
/// let mut pool = FixedPool::new(shape, &mut memory.0)?.with_fallback(HeapFallback(System));
/// let blocks: Vec<_> = (0..20).map(|_| pool.allocate()).collect::<Result<_, _>>()?;
/// assert_eq!(blocks.iter().filter(|&&block| pool.contains(block)).count(), 16, "the others are from the heap");
/// // SAFETY: each block is freed once and not used afterwards.
/// blocks.into_iter().try_for_each(|block| unsafe { pool.deallocate(block) })?;
/// # Ok::<(), freestone_pool::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapFallback<A>(pub A);

// SAFETY: `GlobalAlloc` promises blocks of the layout's size and alignment, zero where zeros are requested.
unsafe impl<A: GlobalAlloc> Fallback for HeapFallback<A> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: a pool's layout has 1 byte or more.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }
    fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: a pool's layout has 1 byte or more.
        NonNull::new(unsafe { self.0.alloc_zeroed(layout) })
    }
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: a heap cannot tell foreign blocks, so the block was allocated from it with this layout: the trait's contract.
        unsafe { self.0.dealloc(block.as_ptr(), layout) };
        true
    }
}
