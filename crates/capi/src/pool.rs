//! Pools of blocks of one size, for C.
#![allow(unsafe_code)]
//!
//! A `freestone_pool_t` is opaque: a [`Pool`] at the start of the pool's own memory, which the caller gave or the process's allocator. A
//! pool over memory that the caller gave takes no other.
//!
//! # Safety
//! Every function's contract begins with that of a **live handle**: `freestone_pool_new` or `freestone_pool_new_at` returned it,
//! `freestone_pool_delete` has not ended it, and, unless the pool is shared, no other thread is in a call on it. Each `error` is null or
//! points to a writable `freestone_error_t`.

pub mod magazine;
pub mod place;
pub(crate) mod refusal;

use crate::error::{FreestoneError, OK};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_base::align;
use freestone_os::{Errno, process};
use freestone_pool::Error;
use heap::door;
use place::{Blocks, Borrowed, FreestonePoolShape, Plan, Pool};
use refusal::Refusal;

/// `freestone_pool_stats_t` of `freestone.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreestonePoolStats {
    n_used: usize,
    n_free: usize,
    n_fresh: usize,
    block_bytes: usize,
    spacing_bytes: usize,
}

/// Stores the refusal in `*error`, sets `errno` and returns null.
///
/// # Safety
/// - `error` is null or points to a writable `freestone_error_t`.
unsafe fn refused<T>(error: *mut FreestoneError, refusal: Refusal) -> *mut T {
    // SAFETY: `error` is null or writable (this function's contract).
    unsafe { refusal.to_c().store(error) };
    process::set_errno(if refusal.is_out_of_memory() { Errno::NOMEM } else { Errno::INVAL });
    ptr::null_mut()
}

/// Stores a refusal in `*error`. Returns its code.
///
/// # Safety
/// - `error` is null or points to a writable `freestone_error_t`.
unsafe fn code(error: *mut FreestoneError, result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => OK,
        // SAFETY: `error` is null or writable (this function's contract).
        Err(refusal) => unsafe { Refusal::Of(refusal).to_c().store(error) },
    }
}

/// The block; or null, with `errno` set.
fn block_or_null(taken: Result<NonNull<u8>, Error>) -> *mut c_void {
    match taken {
        Ok(block) => block.as_ptr().cast(),
        // SAFETY: nothing is stored through null.
        Err(error) => unsafe { refused(ptr::null_mut(), Refusal::Of(error)) },
    }
}

/// Bytes of memory that a pool of this shape needs. 0, and the reason in `*error`, if there can be no such pool.
///
/// # Safety
/// - `shape` points to a `freestone_pool_shape_t`; `error` is as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_bytes(shape: *const FreestonePoolShape, error: *mut FreestoneError) -> usize {
    // SAFETY: `shape` points to a structure (this function's contract), which is plain data.
    match Plan::new(unsafe { shape.read() }) {
        Ok(plan) => plan.bytes,
        Err(refusal) => {
            // SAFETY: `error` is null or writable.
            unsafe { refused::<Pool>(error, Refusal::Of(refusal)) };
            0
        }
    }
}

/// Creates a pool in memory of its own. Null, `errno` and the reason in `*error` if that is refused.
///
/// # Safety
/// - `shape` points to a `freestone_pool_shape_t`; `error` is as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_new(shape: *const FreestonePoolShape, error: *mut FreestoneError) -> *mut Pool {
    // SAFETY: `shape` points to a structure (this function's contract), which is plain data.
    match create(unsafe { shape.read() }) {
        Ok(pool) => pool.as_ptr(),
        // SAFETY: `error` is null or writable.
        Err(refusal) => unsafe { refused(error, refusal) },
    }
}

/// A pool in a block of the process's allocator.
fn create(shape: FreestonePoolShape) -> Result<NonNull<Pool>, Refusal> {
    let plan = Plan::new(shape).map_err(Refusal::Of)?;
    // SAFETY: the alignment of a plan is a power of two.
    let memory = NonNull::new(unsafe { door::allocate_zeroed(plan.bytes, plan.align) });
    let memory = memory.ok_or(Refusal::NoMemory { bytes: plan.bytes })?;
    // SAFETY: the block was just allocated: zero, aligned and as large as the plan says, and no other code has its address.
    unsafe { plan.carry_out(memory, true) }.map_err(|refusal| {
        // SAFETY: the block was allocated above, and no pool is in it.
        unsafe { door::free(memory.as_ptr()) };
        Refusal::Of(refusal)
    })
}

/// Creates a pool in the `bytes` at `memory`. Null, `EINVAL` and the reason in `*error` if they are misaligned or too few.
///
/// # Safety
/// - The `bytes` at `memory` are the pool's alone until it is destroyed.
/// - `shape` points to a `freestone_pool_shape_t`; `error` is as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_new_at(
    memory: *mut c_void,
    bytes: usize,
    shape: *const FreestonePoolShape,
    error: *mut FreestoneError,
) -> *mut Pool {
    // SAFETY: `shape` points to a structure (this function's contract), which is plain data.
    let shape = unsafe { shape.read() };
    // SAFETY: the memory is the pool's alone (this function's contract).
    match unsafe { create_at(memory.cast(), bytes, shape) } {
        Ok(pool) => pool.as_ptr(),
        // SAFETY: `error` is null or writable.
        Err(refusal) => unsafe { refused(error, Refusal::Of(refusal)) },
    }
}

/// A pool in memory that the caller gave.
///
/// # Safety
/// - The `bytes` at `memory` are the pool's alone until it is destroyed.
unsafe fn create_at(memory: *mut u8, bytes: usize, shape: FreestonePoolShape) -> Result<NonNull<Pool>, Error> {
    let plan = Plan::new(shape)?;
    let aligned = NonNull::new(memory).filter(|memory| align::is_aligned(memory.addr().get(), plan.align));
    let start = aligned.ok_or(Error::RegionMisaligned { address: memory.addr(), align: plan.align })?;
    if bytes < plan.bytes {
        return Err(Error::RegionTooSmall { bytes, least: plan.bytes });
    }
    // SAFETY: the memory is aligned and large enough (checked above), and the pool's alone (this function's contract).
    unsafe { plan.carry_out(start, false) }
}

/// Evaluates `$answer` with `$pool` bound to a pool of either kind.
macro_rules! with_pool {
    ($blocks:expr, |$pool:ident| $answer:expr) => {
        match $blocks {
            Borrowed::OfOneThread($pool) => $answer,
            Borrowed::Shared($pool) => $answer,
        }
    };
}

/// Ends a pool, unless a block is in use or a magazine exists. Returns a code; null does nothing.
///
/// # Safety
/// - `pool` is null or a live handle that no other thread uses; `error` is as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_delete(pool: *mut Pool, error: *mut FreestoneError) -> c_int {
    if pool.is_null() {
        return OK;
    }
    // SAFETY: the handle is live.
    if let Some(refusal) = unsafe { &*pool }.magazines_exist() {
        // SAFETY: `error` is null or writable.
        return unsafe { refusal.to_c().store(error) };
    }
    // SAFETY: the handle is live, and no other thread uses it.
    let blocks = unsafe { Pool::blocks(pool) };
    let idle = with_pool!(blocks, |blocks| blocks.check_idle());
    // SAFETY: `error` is null or writable.
    let code = unsafe { code(error, idle) };
    // SAFETY: the handle is live.
    if code == OK && unsafe { (*pool).is_owner } {
        // SAFETY: the pool lies at the start of a block that `create` allocated, and no block of the pool is in use.
        unsafe { door::free(pool.cast()) };
    }
    code
}

/// Allocates a block. Null and `ENOMEM` if none is left, `EINVAL` if the bookkeeping was overwritten.
///
/// # Safety
/// - `pool` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_malloc(pool: *mut Pool) -> *mut c_void {
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    block_or_null(with_pool!(blocks, |blocks| blocks.allocate()))
}

/// Allocates a block of zeroes. Null as for [`freestone_pool_malloc`].
///
/// # Safety
/// - `pool` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_calloc(pool: *mut Pool) -> *mut c_void {
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    block_or_null(with_pool!(blocks, |blocks| blocks.allocate_zeroed()))
}

/// Frees a block in use; refuses any other pointer. Returns a code; null does nothing.
///
/// # Safety
/// - `pool` is a live handle; no code uses the block any more; `error` is as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_free(pool: *mut Pool, block: *mut c_void, error: *mut FreestoneError) -> c_int {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return OK };
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    // SAFETY: no code uses the block (this function's contract); the pool refuses what is no block of its own.
    let freed = with_pool!(blocks, |blocks| unsafe { blocks.deallocate(block) });
    // SAFETY: `error` is null or writable.
    unsafe { code(error, freed) }
}

/// Bytes of a block that may be used; 0 if it is not a block in use.
///
/// # Safety
/// - `pool` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_usable_size(pool: *mut Pool, block: *const c_void) -> usize {
    let Some(block) = NonNull::new(block.cast_mut().cast::<u8>()) else { return 0 };
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    with_pool!(blocks, |blocks| blocks.usable_size(block)).unwrap_or(0)
}

/// Counts the blocks.
///
/// # Safety
/// - `pool` is a live handle; `stats` points to a writable `freestone_pool_stats_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_stats(pool: *mut Pool, stats: *mut FreestonePoolStats) {
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    let now = with_pool!(blocks, |blocks| blocks.stats());
    let counts = FreestonePoolStats {
        n_used: now.n_used,
        n_free: now.n_free,
        n_fresh: now.n_fresh,
        block_bytes: now.block_bytes,
        spacing_bytes: now.spacing_bytes,
    };
    // SAFETY: `stats` is writable (this function's contract).
    unsafe { stats.write(counts) };
}

/// Checks every invariant of a pool. Returns a code.
///
/// # Safety
/// - `pool` is a live handle that no other thread uses; `error` is as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_check(pool: *mut Pool, error: *mut FreestoneError) -> c_int {
    // SAFETY: the handle is live, no other thread uses it, and a magazine's reference is only to the shared pool and its own count, which
    // the look below refuses beside.
    let pool = unsafe { &mut *pool };
    if let Some(refusal) = pool.magazines_exist() {
        // SAFETY: `error` is null or writable.
        return unsafe { refusal.to_c().store(error) };
    }
    let result = match &mut pool.blocks {
        Blocks::OfOneThread(pool) => pool.get_mut().check(),
        Blocks::Shared(pool) => pool.check(),
    };
    // SAFETY: `error` is null or writable.
    unsafe { code(error, result) }
}
