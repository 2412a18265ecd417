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
use crate::error::{FreestoneError, OK};
use crate::last_error::LastError;
use crate::sized::SizedStruct;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};
use freestone_base::align;
#[cfg(target_has_atomic = "64")]
use freestone_pool::SharedPool;
use freestone_pool::{Error, FixedPool, Shape};

/// `freestone_pool_shape_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreestonePoolShape {
    size: usize,
    block_size: usize,
    count: usize,
    align: usize,
    shared: c_int,
}

// SAFETY: it is `repr(C)`, starts with a `usize`, and consists of integers.
unsafe impl SizedStruct for FreestonePoolShape {
    const LEAST: usize = size_of::<Self>();
}

/// Either kind of pool.
pub enum Blocks {
    /// Behind a cell, because the C interface has only shared references to a [`Pool`]: callers ensure that one thread uses it.
    OfOneThread(UnsafeCell<FixedPool<'static>>),
    /// For any number of threads.
    #[cfg(target_has_atomic = "64")]
    Shared(SharedPool<'static>),
}

/// Gives the memory of a pool back to where it came from.
pub type Release = unsafe fn(*mut u8);

/// What a handle points to.
pub struct Pool {
    blocks: Blocks,
    n_magazines: AtomicUsize,
    last_error: LastError,
    /// Nothing, if the memory is the caller's.
    release: Option<Release>,
}

/// Either kind of pool, borrowed for one call.
pub(super) enum Borrowed<'a> {
    OfOneThread(&'a mut FixedPool<'static>),
    #[cfg(target_has_atomic = "64")]
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
            #[cfg(target_has_atomic = "64")]
            Blocks::Shared(pool) => Borrowed::Shared(pool),
        }
    }

    /// Its blocks, for a call that no other one is beside.
    pub(super) fn blocks_mut(&mut self) -> &mut Blocks {
        &mut self.blocks
    }

    /// The pool that magazines are of; `None` if it is not shared.
    #[cfg(target_has_atomic = "64")]
    #[must_use]
    pub fn shared(&self) -> Option<&SharedPool<'static>> {
        match &self.blocks {
            Blocks::OfOneThread(_) => None,
            Blocks::Shared(pool) => Some(pool),
        }
    }

    /// How many magazines there are: while there is one, the pool is not deleted.
    #[must_use]
    pub fn n_magazines(&self) -> &AtomicUsize {
        &self.n_magazines
    }

    /// The refusal of calls that need the pool to have no magazines, if it has some.
    pub(super) fn magazines_exist(&self) -> Option<Refusal> {
        let n_magazines = self.n_magazines.load(Ordering::Acquire);
        (n_magazines > 0).then_some(Refusal::MagazinesExist { n_magazines })
    }

    /// How its memory is given back when it ends.
    pub(super) fn release(&self) -> Option<Release> {
        self.release
    }

    /// Stores why a call was refused. Returns the code.
    pub(super) fn refuse(&self, refusal: Refusal) -> c_int {
        self.last_error.refuse(refusal.to_c())
    }

    /// The code of a result; a refusal is stored.
    pub fn code(&self, result: Result<(), Error>) -> c_int {
        result.map_or_else(|error| self.refuse(Refusal::Of(error)), |()| OK)
    }

    /// The block; or null, with the refusal stored.
    pub fn block(&self, taken: Result<NonNull<u8>, Error>) -> *mut c_void {
        taken.map_or_else(
            |error| {
                self.refuse(Refusal::Of(error));
                ptr::null_mut()
            },
            |block| block.as_ptr().cast(),
        )
    }

    /// The last refusal.
    pub(super) fn last_error(&self) -> FreestoneError {
        self.last_error.get()
    }
}

/// The least alignment of a pool's memory: what `malloc` gives.
const LEAST_ALIGN: usize = 16;

/// The layout of a pool's memory.
#[derive(Clone, Copy)]
pub struct Plan {
    shape: Shape,
    is_shared: bool,
    align: usize,
    region: usize,
    bytes: usize,
}

impl Plan {
    /// Where the parts of such a pool are.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn new(wanted: FreestonePoolShape) -> Result<Self, Refusal> {
        let FreestonePoolShape { size: _, block_size, count, align, shared } = wanted;
        let shape = match align {
            0 => Shape::new(block_size, count),
            _ => Shape::aligned(block_size, count, align),
        };
        let shape = shape.map_err(Refusal::Of)?;
        let is_shared = shared != 0;
        let blocks = if is_shared { shared_bytes(shape)? } else { shape.region_bytes() };
        let align = shape.align().max(LEAST_ALIGN).max(align_of::<Pool>());
        let region = align::checked_up(size_of::<Pool>(), align);
        let too_large = Refusal::Of(Error::TooLarge { block_bytes: block_size, count });
        let region = region.ok_or(too_large)?;
        // No memory is longer than the largest distance.
        let bytes = region.checked_add(blocks).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(too_large)?;
        Ok(Self { shape, is_shared, align, region, bytes })
    }

    /// What the memory's start is a multiple of.
    #[must_use]
    pub fn align(&self) -> usize {
        self.align
    }

    /// Bytes of the memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes the pool. With `release` the memory is given back by that when the pool ends.
    ///
    /// # Errors
    /// Why the memory does not suit; not, if it is as large and as aligned as the plan says.
    ///
    /// # Safety
    /// - The `self.bytes()` at `memory` are aligned to `self.align()` and the pool's alone until it is destroyed. With `release` they are zero, and
    ///   it may be called with their start.
    pub unsafe fn carry_out(self, memory: NonNull<u8>, release: Option<Release>) -> Result<NonNull<Pool>, Refusal> {
        let bytes = self.bytes - self.region;
        // SAFETY: the region follows the handle, within the memory.
        let region = unsafe { memory.byte_add(self.region) };
        // SAFETY: `bytes` at `region` are the pool's alone, and zero with `release`.
        let blocks = unsafe { self.blocks(region, bytes, release.is_some()) };
        let blocks = blocks.map_err(Refusal::Of)?;
        let pool = memory.cast::<Pool>();
        let made = Pool { blocks, n_magazines: AtomicUsize::new(0), last_error: LastError::new(), release };
        // SAFETY: the memory begins with room for the handle, aligned at least as it needs (see `Plan::new`).
        unsafe { pool.write(made) };
        Ok(pool)
    }

    /// The blocks, of either kind.
    ///
    /// # Safety
    /// - The `bytes` at `region` are the pool's alone, and zero if `is_zero`.
    unsafe fn blocks(self, region: NonNull<u8>, bytes: usize, is_zero: bool) -> Result<Blocks, Error> {
        match (self.is_shared, is_zero) {
            #[cfg(target_has_atomic = "64")]
            // SAFETY: the region is the pool's alone, and zero (this function's contract).
            (true, true) => unsafe { SharedPool::new_zeroed_at(self.shape, region, bytes) }.map(Blocks::Shared),
            #[cfg(target_has_atomic = "64")]
            // SAFETY: the region is the pool's alone.
            (true, false) => unsafe { SharedPool::new_at(self.shape, region, bytes) }.map(Blocks::Shared),
            // SAFETY: the region is the pool's alone, and zero.
            (_, true) => unsafe { FixedPool::new_zeroed_at(self.shape, region, bytes) }.map(of_one_thread),
            // SAFETY: the region is the pool's alone.
            (_, false) => unsafe { FixedPool::new_at(self.shape, region, bytes) }.map(of_one_thread),
        }
    }
}

fn of_one_thread(pool: FixedPool<'static>) -> Blocks {
    Blocks::OfOneThread(UnsafeCell::new(pool))
}

/// Bytes of a shared pool's blocks and bookkeeping.
#[cfg(target_has_atomic = "64")]
fn shared_bytes(shape: Shape) -> Result<usize, Refusal> {
    if shape.count() > SharedPool::MOST_BLOCKS {
        return Err(Refusal::Of(Error::TooLarge { block_bytes: shape.block_bytes(), count: shape.count() }));
    }
    Ok(shape.shared_region_bytes())
}

/// A processor without atomic operations of 64 bits has no shared pools.
#[cfg(not(target_has_atomic = "64"))]
fn shared_bytes(_: Shape) -> Result<usize, Refusal> {
    Err(Refusal::NoAtomics)
}
