//! Where a pool lies in its memory, and making it there.
#![allow(unsafe_code)]
//!
//! ```text
//! memory: | Pool | up to the alignment | blocks ... | bookkeeping |
//! ```
//!
//! # Safety
//! The memory is the caller's promise.

use super::error::Refusal;
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

/// The cell is for the pool of one thread, whose caller promises that it is one thread's.
pub(super) enum Blocks {
    OfOneThread(UnsafeCell<FixedPool<'static>>),
    Shared(SharedPool<'static>),
}

impl Blocks {
    fn of_one_thread(pool: FixedPool<'static>) -> Self {
        Self::OfOneThread(UnsafeCell::new(pool))
    }
}

/// What a handle points to.
pub struct Pool {
    pub(super) blocks: Blocks,
    pub(super) n_magazines: AtomicUsize,
    /// Whether the memory came from the process's allocator.
    pub(super) is_owner: bool,
}

impl Pool {
    /// Why nobody may have the pool to himself now, if a magazine is in the way.
    pub(super) fn magazine_out(&self) -> Option<Refusal> {
        let n_magazines = self.n_magazines.load(Ordering::Acquire);
        (n_magazines > 0).then_some(Refusal::MagazineOut { n_magazines })
    }
}

/// The least alignment of a pool's memory: what `malloc` gives.
const LEAST_ALIGN: usize = 16;

/// Where things lie in a pool's memory.
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
    /// - The `bytes` at `memory` are the pool's until it is deleted, aligned, and zero if `is_owner`.
    pub(super) unsafe fn carry_out(self, memory: NonNull<u8>, is_owner: bool) -> Result<NonNull<Pool>, Error> {
        let bytes = self.bytes - self.region;
        // SAFETY: the caller's promise; the region follows the handle.
        let blocks = unsafe {
            let region = memory.byte_add(self.region);
            match (self.is_shared, is_owner) {
                (true, true) => Blocks::Shared(SharedPool::new_zeroed_at(self.shape, region, bytes)?),
                (true, false) => Blocks::Shared(SharedPool::new_at(self.shape, region, bytes)?),
                (false, true) => Blocks::of_one_thread(FixedPool::new_zeroed_at(self.shape, region, bytes)?),
                (false, false) => Blocks::of_one_thread(FixedPool::new_at(self.shape, region, bytes)?),
            }
        };
        let pool = memory.cast::<Pool>();
        // SAFETY: the handle lies at the head, aligned.
        unsafe { pool.write(Pool { blocks, n_magazines: AtomicUsize::new(0), is_owner }) };
        Ok(pool)
    }
}
