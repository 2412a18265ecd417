//! Where a pool lies in its memory, and how it is made there.
#![allow(unsafe_code)]
//!
//! ```text
//! memory: | Pool | up to the alignment | blocks ... | bookkeeping |
//! ```
//!
//! # Safety
//! [`Plan::carry_out`] states the conditions on the memory; all else is arithmetic.

use super::refusal::Refusal;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use freestone_base::align;
use freestone_pool::{Error, FixedPool, Shape, SharedPool};

/// `freestone_pool_shape_t` of `freestone.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreestonePoolShape {
    block_size: usize,
    count: usize,
    align: usize,
    shared: c_int,
}

/// Either kind of pool.
pub(super) enum Blocks {
    /// Behind a cell, because the C interface has only shared references to a [`Pool`]: callers ensure that one thread uses it.
    OfOneThread(UnsafeCell<FixedPool<'static>>),
    Shared(SharedPool<'static>),
}

/// What a handle points to.
pub struct Pool {
    pub(super) blocks: Blocks,
    pub(super) n_magazines: AtomicUsize,
    /// Whether the memory came from the process's allocator.
    pub(super) is_owner: bool,
}

/// Either kind of pool, borrowed for one call.
pub(super) enum Borrowed<'a> {
    OfOneThread(&'a mut FixedPool<'static>),
    Shared(&'a SharedPool<'static>),
}

impl Pool {
    /// The pool behind a handle.
    ///
    /// # Safety
    /// - `handle` is live (see [`crate::pool`]) for as long as the reference is used.
    pub(super) unsafe fn blocks<'a>(handle: *const Self) -> Borrowed<'a> {
        // SAFETY: the handle is live, so a pool was written there.
        match unsafe { &(*handle).blocks } {
            // SAFETY: a pool that is not shared is in this one call.
            Blocks::OfOneThread(pool) => Borrowed::OfOneThread(unsafe { &mut *pool.get() }),
            Blocks::Shared(pool) => Borrowed::Shared(pool),
        }
    }

    /// The refusal of calls that need the pool to have no magazines, if it has some.
    pub(super) fn magazines_exist(&self) -> Option<Refusal> {
        let n_magazines = self.n_magazines.load(Ordering::Acquire);
        (n_magazines > 0).then_some(Refusal::MagazinesExist { n_magazines })
    }
}

/// The least alignment of a pool's memory: what `malloc` gives.
const LEAST_ALIGN: usize = 16;

/// The layout of a pool's memory.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    shape: Shape,
    is_shared: bool,
    pub(super) align: usize,
    region: usize,
    pub(super) bytes: usize,
}

impl Plan {
    pub(super) fn new(wanted: FreestonePoolShape) -> Result<Self, Error> {
        let FreestonePoolShape { block_size, count, align, shared } = wanted;
        let shape = match align {
            0 => Shape::new(block_size, count)?,
            _ => Shape::aligned(block_size, count, align)?,
        };
        let is_shared = shared != 0;
        let blocks = if is_shared { shape.shared_region_bytes() } else { shape.region_bytes() };
        let align = shape.align().max(LEAST_ALIGN).max(align_of::<Pool>());
        let region = align::checked_up(size_of::<Pool>(), align);
        let too_large = Error::TooLarge { block_bytes: block_size, count };
        let region = region.ok_or(too_large)?;
        let bytes = region.checked_add(blocks).ok_or(too_large)?;
        Ok(Self { shape, is_shared, align, region, bytes })
    }

    /// Makes the pool.
    ///
    /// # Safety
    /// - The `self.bytes` at `memory` are aligned to `self.align`, the pool's alone until it is destroyed, and zero if `is_owner`.
    pub(super) unsafe fn carry_out(self, memory: NonNull<u8>, is_owner: bool) -> Result<NonNull<Pool>, Error> {
        let bytes = self.bytes - self.region;
        // SAFETY: the region follows the handle, within the memory.
        let region = unsafe { memory.byte_add(self.region) };
        // SAFETY, of all four: `bytes` at `region` are the pool's alone, and zero where that is claimed.
        let blocks = match (self.is_shared, is_owner) {
            // SAFETY: see above.
            (true, true) => Blocks::Shared(unsafe { SharedPool::new_zeroed_at(self.shape, region, bytes) }?),
            // SAFETY: see above.
            (true, false) => Blocks::Shared(unsafe { SharedPool::new_at(self.shape, region, bytes) }?),
            (false, true) => {
                // SAFETY: see above.
                let pool = unsafe { FixedPool::new_zeroed_at(self.shape, region, bytes) }?;
                Blocks::OfOneThread(UnsafeCell::new(pool))
            }
            (false, false) => {
                // SAFETY: see above.
                let pool = unsafe { FixedPool::new_at(self.shape, region, bytes) }?;
                Blocks::OfOneThread(UnsafeCell::new(pool))
            }
        };
        let pool = memory.cast::<Pool>();
        // SAFETY: the memory begins with room for the handle, aligned at least as it needs (see `Plan::new`).
        unsafe { pool.write(Pool { blocks, n_magazines: AtomicUsize::new(0), is_owner }) };
        Ok(pool)
    }
}
