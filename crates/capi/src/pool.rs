//! Pools of equal blocks for C.
#![allow(unsafe_code)]
//!
//! A `freestone_pool_t` is opaque: a [`Pool`] at the head of the pool's own memory, which is the caller's or a block of the process's
//! allocator. So a pool over memory the caller gives takes no other.
//!
//! # Safety
//! Handles are those `freestone_pool_new` or `freestone_pool_new_at` returned and `freestone_pool_delete` has not taken; a pool that is not
//! shared is used by one thread at a time. C callers promise that. Structures passed by pointer are theirs, and whole.

pub mod error;
pub mod magazine;
pub mod place;

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use error::{FreestonePoolError, OK, Refusal};
use freestone_base::align;
use freestone_os::{Errno, process};
use freestone_pool::Error;
use heap::door;
use place::{Blocks, FreestonePoolShape, Plan, Pool};

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

/// Fills `*error`, if there is one, sets errno and returns null.
///
/// # Safety
/// - `error` is null or can be written.
unsafe fn refused<T>(error: *mut FreestonePoolError, refusal: Refusal) -> *mut T {
    // SAFETY: the caller's promise.
    unsafe { refusal.report(error) };
    process::set_errno(if refusal.is_want_of_memory() { Errno::NOMEM } else { Errno::INVAL });
    ptr::null_mut()
}

/// Fills `*error`, if there is one, and returns the code.
///
/// # Safety
/// - `error` is null or can be written.
unsafe fn outcome(error: *mut FreestonePoolError, result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => OK,
        // SAFETY: the caller's promise.
        Err(refusal) => unsafe { Refusal::Of(refusal).report(error) },
    }
}

/// A block, or null and the errno that says why there is none.
fn handed_out(taken: Result<NonNull<u8>, Error>) -> *mut c_void {
    match taken {
        Ok(block) => block.as_ptr().cast(),
        // SAFETY: null takes no report.
        Err(error) => unsafe { refused(ptr::null_mut(), Refusal::Of(error)) },
    }
}

/// Bytes of memory a pool of this shape needs; 0 and the reason in `*error` if there is no such pool.
///
/// # Safety
/// - See the module header; `error` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_bytes(
    shape: *const FreestonePoolShape,
    error: *mut FreestonePoolError,
) -> usize {
    // SAFETY: the caller's promise.
    match Plan::new(unsafe { *shape }) {
        Ok(plan) => plan.bytes,
        Err(refusal) => {
            // SAFETY: the caller's promise.
            unsafe { refused::<Pool>(error, Refusal::Of(refusal)) };
            0
        }
    }
}

/// A pool in memory of its own; null, errno and the reason in `*error` if there can be none.
///
/// # Safety
/// - See the module header; `error` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_new(
    shape: *const FreestonePoolShape,
    error: *mut FreestonePoolError,
) -> *mut Pool {
    // SAFETY: the caller's promise, for all of the body; the block is zero, aligned, large enough, and the pool's.
    unsafe {
        let plan = match Plan::new(*shape) {
            Ok(plan) => plan,
            Err(refusal) => return refused(error, Refusal::Of(refusal)),
        };
        // The alignment of a plan is a power of two.
        let Some(memory) = NonNull::new(door::allocate_zeroed(plan.bytes, plan.align)) else {
            return refused(error, Refusal::NoMemory { bytes: plan.bytes });
        };
        match plan.carry_out(memory, true) {
            Ok(pool) => pool.as_ptr(),
            Err(refusal) => {
                door::free(memory.as_ptr());
                refused(error, Refusal::Of(refusal))
            }
        }
    }
}

/// A pool in the `bytes` at `memory`; null, `EINVAL` and the reason in `*error` if they do not suit.
///
/// # Safety
/// - See the module header; `error` may be null. The memory is the pool's until it is deleted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_new_at(
    memory: *mut c_void,
    bytes: usize,
    shape: *const FreestonePoolShape,
    error: *mut FreestonePoolError,
) -> *mut Pool {
    // SAFETY: the caller's promise, for all of the body.
    unsafe {
        let made = Plan::new(*shape).and_then(|plan| {
            let misaligned = Error::RegionMisaligned { address: memory.addr(), align: plan.align };
            let memory =
                NonNull::new(memory.cast::<u8>()).filter(|memory| align::is_aligned(memory.addr().get(), plan.align));
            let memory = memory.ok_or(misaligned)?;
            if bytes < plan.bytes {
                return Err(Error::RegionTooSmall { bytes, least: plan.bytes });
            }
            plan.carry_out(memory, false)
        });
        match made {
            Ok(pool) => pool.as_ptr(),
            Err(refusal) => refused(error, Refusal::Of(refusal)),
        }
    }
}

/// Asks either kind of pool the same.
///
/// # Safety
/// - The pool behind `$handle` is live, and used by this thread alone if it is not shared.
macro_rules! ask {
    ($handle:expr, |$pool:ident| $answer:expr) => {
        match &(*$handle).blocks {
            Blocks::OfOneThread(pool) => {
                let $pool = &mut *pool.get();
                $answer
            }
            Blocks::Shared($pool) => $answer,
        }
    };
}

/// Ends a pool, unless a block or a magazine is out. A code; null is nothing.
///
/// # Safety
/// - See the module header; `error` may be null; no other thread uses the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_delete(pool: *mut Pool, error: *mut FreestonePoolError) -> c_int {
    if pool.is_null() {
        return OK;
    }
    // SAFETY: the caller's promise, for all of the body.
    unsafe {
        if let Some(refusal) = (*pool).magazine_out() {
            return refusal.report(error);
        }
        let code = outcome(error, ask!(pool, |blocks| blocks.check_idle()));
        if code == OK && (*pool).is_owner {
            door::free(pool.cast());
        }
        code
    }
}

/// A block; null and `ENOMEM` if none is left, `EINVAL` if the bookkeeping was written over.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_allocate(pool: *mut Pool) -> *mut c_void {
    // SAFETY: the caller's promise.
    handed_out(unsafe { ask!(pool, |blocks| blocks.allocate()) })
}

/// A block of zeroes; null as [`freestone_pool_allocate`].
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_allocate_zeroed(pool: *mut Pool) -> *mut c_void {
    // SAFETY: the caller's promise.
    handed_out(unsafe { ask!(pool, |blocks| blocks.allocate_zeroed()) })
}

/// Takes a block back, unless it is none in use. A code; null is nothing.
///
/// # Safety
/// - See the module header; `error` may be null; nothing uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_free(
    pool: *mut Pool,
    block: *mut c_void,
    error: *mut FreestonePoolError,
) -> c_int {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return OK };
    // SAFETY: the caller's promise.
    unsafe { outcome(error, ask!(pool, |blocks| blocks.deallocate(block))) }
}

/// Bytes of a block in use that may be used; 0 if it is none.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_usable_size(pool: *mut Pool, block: *const c_void) -> usize {
    let Some(block) = NonNull::new(block.cast_mut().cast::<u8>()) else { return 0 };
    // SAFETY: the caller's promise.
    unsafe { ask!(pool, |blocks| blocks.usable_size(block)) }.unwrap_or(0)
}

/// Counts the blocks.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_stats(pool: *mut Pool, stats: *mut FreestonePoolStats) {
    // SAFETY: the caller's promise.
    unsafe {
        let now = ask!(pool, |blocks| blocks.stats());
        stats.write(FreestonePoolStats {
            n_used: now.n_used,
            n_free: now.n_free,
            n_fresh: now.n_fresh,
            block_bytes: now.block_bytes,
            spacing_bytes: now.spacing_bytes,
        });
    }
}

/// Checks every invariant of a pool. A code.
///
/// # Safety
/// - See the module header; `error` may be null; no other thread uses the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_check(pool: *mut Pool, error: *mut FreestonePoolError) -> c_int {
    // SAFETY: the caller's promise, for all of the body; without magazines nobody else borrows the pool.
    unsafe {
        if let Some(refusal) = (*pool).magazine_out() {
            return refusal.report(error);
        }
        let result = match &mut (*pool).blocks {
            Blocks::OfOneThread(pool) => pool.get_mut().check(),
            Blocks::Shared(pool) => pool.check(),
        };
        outcome(error, result)
    }
}
