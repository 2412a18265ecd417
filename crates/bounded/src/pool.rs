//! Pools of blocks of one size, for C.
#![allow(unsafe_code)]
//!
//! A `freestone_pool_t` is opaque: a [`Pool`] at the start of the pool's own memory. A call that is refused returns null or a code, and changes
//! nothing but the pool's last error. libfreestone has two things besides: pools in memory of the process's allocator, and magazines.
//!
//! # Safety
//! Every function's contract begins with that of a **live handle**: `freestone_pool_new_at` or `freestone_pool_new` returned it,
//! `freestone_pool_delete` has not ended it, and, unless the pool is shared, no other thread is in a call on it. Each `error` is null or
//! points to a writable `freestone_error_t`, each `shape` null or a `freestone_pool_shape_t` with as many bytes as its member `size` says.

pub mod place;
pub mod refusal;

use crate::error::{FreestoneError, OK};
use crate::message;
use crate::sized::{self, SizedStruct};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_base::align;
use freestone_pool::Error;
use place::{Blocks, Borrowed, FreestonePoolShape, Plan, Pool};
use refusal::Refusal;

/// `freestone_pool_stats_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreestonePoolStats {
    size: usize,
    n_used: usize,
    n_free: usize,
    n_fresh: usize,
    block_bytes: usize,
    spacing_bytes: usize,
}

// SAFETY: it is `repr(C)`, starts with a `usize`, and consists of integers.
unsafe impl SizedStruct for FreestonePoolStats {
    const LEAST: usize = size_of::<usize>();
}

/// The plan for a shape of the caller's.
///
/// # Safety
/// - `shape` is as the module header says.
///
/// # Errors
/// Why there can be no such pool.
pub unsafe fn plan(shape: *const FreestonePoolShape) -> Result<Plan, FreestoneError> {
    // SAFETY: `shape` is null or has as many bytes as it says (this function's contract).
    let shape = unsafe { sized::read(shape) }?;
    Plan::new(shape).map_err(Refusal::to_c)
}

/// Stores the bytes of memory that a pool of this shape needs in `*bytes`. Returns a code, and the reason in `*error`.
///
/// # Safety
/// - `bytes` points to a writable number; `shape` and `error` are as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_bytes(
    shape: *const FreestonePoolShape,
    bytes: *mut usize,
    error: *mut FreestoneError,
) -> c_int {
    // SAFETY: `shape` is as the module header says.
    match unsafe { plan(shape) } {
        Ok(plan) => {
            // SAFETY: `bytes` points to a writable number (this function's contract).
            unsafe { bytes.write(plan.bytes()) };
            OK
        }
        // SAFETY: `error` is null or writable.
        Err(refusal) => unsafe { refusal.store(error) },
    }
}

/// Creates a pool in the `bytes` at `memory`. Null, and the reason in `*error`, if they are misaligned or too few.
///
/// # Safety
/// - The `bytes` at `memory` are the pool's alone until it is destroyed.
/// - `shape` and `error` are as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_new_at(
    memory: *mut c_void,
    bytes: usize,
    shape: *const FreestonePoolShape,
    error: *mut FreestoneError,
) -> *mut Pool {
    // SAFETY: `shape` is as the module header says.
    let plan = unsafe { plan(shape) };
    // SAFETY: the memory is the pool's alone (this function's contract).
    match plan.and_then(|plan| unsafe { create_at(memory.cast(), bytes, plan) }.map_err(Refusal::to_c)) {
        Ok(pool) => pool.as_ptr(),
        Err(refusal) => {
            // SAFETY: `error` is null or writable.
            unsafe { refusal.store(error) };
            ptr::null_mut()
        }
    }
}

/// A pool in memory that the caller gave.
///
/// # Safety
/// - The `bytes` at `memory` are the pool's alone until it is destroyed.
unsafe fn create_at(memory: *mut u8, bytes: usize, plan: Plan) -> Result<NonNull<Pool>, Refusal> {
    let (address, align) = (memory.addr(), plan.align());
    let aligned = NonNull::new(memory).filter(|_| align::is_aligned(address, align));
    let start = aligned.ok_or(Refusal::Of(Error::RegionMisaligned { address, align }))?;
    if bytes < plan.bytes() {
        return Err(Refusal::Of(Error::RegionTooSmall { bytes, least: plan.bytes() }));
    }
    // SAFETY: the memory is aligned and large enough (checked above), and the pool's alone (this function's contract).
    unsafe { plan.carry_out(start, None) }
}

/// Evaluates `$answer` with `$pool` bound to a pool of either kind.
macro_rules! with_pool {
    ($blocks:expr, |$pool:ident| $answer:expr) => {
        match $blocks {
            Borrowed::OfOneThread($pool) => $answer,
            #[cfg(target_has_atomic = "64")]
            Borrowed::Shared($pool) => $answer,
        }
    };
}

/// Ends a pool, unless a block is in use or a magazine exists. Returns a code; null does nothing.
///
/// # Safety
/// - `pool` is null or a live handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_delete(pool: *mut Pool) -> c_int {
    if pool.is_null() {
        return OK;
    }
    // SAFETY: the handle is live.
    if let Some(refusal) = unsafe { &*pool }.magazines_exist() {
        // SAFETY: the handle is live.
        return unsafe { &*pool }.refuse(refusal);
    }
    // SAFETY: the handle is live, and no other thread uses it.
    let blocks = unsafe { Pool::blocks(pool) };
    let idle = with_pool!(blocks, |blocks| blocks.check_idle());
    // SAFETY: the handle is live.
    let code = unsafe { &*pool }.code(idle);
    // SAFETY: the handle is live.
    if let Some(release) = unsafe { &*pool }.release().filter(|_| code == OK) {
        // SAFETY: the pool lies at the start of the memory that is released, and no block of the pool is in use.
        unsafe { release(pool.cast()) };
    }
    code
}

/// Allocates a block. Null, with the error stored, if none is left or the bookkeeping was overwritten.
///
/// # Safety
/// - `pool` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_malloc(pool: *mut Pool) -> *mut c_void {
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    let taken = with_pool!(blocks, |blocks| blocks.allocate());
    // SAFETY: the handle is live.
    unsafe { &*pool }.block(taken)
}

/// Allocates a block of zeros. Null as for [`freestone_pool_malloc`].
///
/// # Safety
/// - `pool` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_calloc(pool: *mut Pool) -> *mut c_void {
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    let taken = with_pool!(blocks, |blocks| blocks.allocate_zeroed());
    // SAFETY: the handle is live.
    unsafe { &*pool }.block(taken)
}

/// Frees a block in use; refuses any other pointer. Returns a code; null does nothing.
///
/// # Safety
/// - `pool` is a live handle; no code uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_free(pool: *mut Pool, block: *mut c_void) -> c_int {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return OK };
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    // SAFETY: no code uses the block (this function's contract); the pool refuses what is no block of its own.
    let freed = with_pool!(blocks, |blocks| unsafe { blocks.deallocate(block) });
    // SAFETY: the handle is live.
    unsafe { &*pool }.code(freed)
}

/// Bytes of a block that may be used; 0 if it is not a block in use.
///
/// # Safety
/// - `pool` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_usable_size(pool: *const Pool, block: *const c_void) -> usize {
    let Some(block) = NonNull::new(block.cast_mut().cast::<u8>()) else { return 0 };
    // SAFETY: the handle is live.
    let blocks = unsafe { Pool::blocks(pool) };
    with_pool!(blocks, |blocks| blocks.usable_size(block)).unwrap_or(0)
}

/// Fills the first `stats->size` bytes of `*stats`. Returns a code.
///
/// # Safety
/// - `pool` is a live handle.
/// - `stats` is null or points to as many writable bytes as its member `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_stats(pool: *const Pool, stats: *mut FreestonePoolStats) -> c_int {
    let all = |size| {
        // SAFETY: the handle is live.
        let blocks = unsafe { Pool::blocks(pool) };
        let now = with_pool!(blocks, |blocks| blocks.stats());
        FreestonePoolStats {
            size,
            n_used: now.n_used,
            n_free: now.n_free,
            n_fresh: now.n_fresh,
            block_bytes: now.block_bytes,
            spacing_bytes: now.spacing_bytes,
        }
    };
    // SAFETY: the structure has as many writable bytes as it says (this function's contract).
    unsafe { sized::fill(stats, all) }
}

/// Checks every invariant of a pool. Returns a code.
///
/// # Safety
/// - `pool` is a live handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_check(pool: *mut Pool) -> c_int {
    // SAFETY: the handle is live.
    if let Some(refusal) = unsafe { &*pool }.magazines_exist() {
        // SAFETY: as above.
        return unsafe { &*pool }.refuse(refusal);
    }
    // SAFETY: the handle is live, no other thread uses it, and no magazine refers to it.
    let checked = match unsafe { &mut *pool }.blocks_mut() {
        Blocks::OfOneThread(blocks) => blocks.get_mut().check(),
        #[cfg(target_has_atomic = "64")]
        Blocks::Shared(blocks) => blocks.check(),
    };
    // SAFETY: the handle is live.
    unsafe { &*pool }.code(checked)
}

/// The error of the last call on the pool, or on one of its magazines, that was refused; all members are zero if none was.
///
/// # Safety
/// - `pool` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_last_error(pool: *const Pool) -> FreestoneError {
    // SAFETY: the handle is live.
    unsafe { &*pool }.last_error()
}

/// Writes the message of an error of a pool, as `freestone_error_text` does for every error.
///
/// # Safety
/// - `error` points to a `freestone_error_t`.
/// - `buffer` points to `size` writable bytes; it may be null if `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_error_text(
    error: *const FreestoneError,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    // SAFETY: this function's contract is that of `message::write`.
    unsafe { message::write(error, (buffer, size), refusal::describe) }
}
