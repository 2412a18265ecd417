//! Magazines of shared pools, for C.
#![allow(unsafe_code)]
//!
//! A `freestone_magazine_t` is opaque: a [`PoolMagazine`] in a block of the process's own allocator. What it refuses, its pool keeps as the last error.
//!
//! # Safety
//! A **live magazine** is one that `freestone_magazine_new` returned and `freestone_magazine_delete` has not ended, and that no other
//! thread is in a call on. Its pool outlives it: `freestone_pool_delete` refuses while it exists.

use crate::failure::refused;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use freestone_bounded::error::{FreestoneError, OK};
use freestone_bounded::pool::place::Pool;
use freestone_bounded::pool::refusal::Refusal;
use freestone_pool::Magazine;
use heap::door;

/// What a `freestone_magazine_t` points to.
pub struct PoolMagazine {
    magazine: Magazine<'static, 'static>,
    pool: &'static Pool,
}

/// Creates an empty magazine of a shared pool. Null, `errno` and the reason in `*error` if that is refused.
///
/// # Safety
/// - `pool` is a live handle; `error` is null or points to a writable `freestone_error_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_new(pool: *mut Pool, error: *mut FreestoneError) -> *mut PoolMagazine {
    // SAFETY: the handle is live, and stays so while the magazine exists: the count below makes `freestone_pool_delete` refuse.
    let pool: &'static Pool = unsafe { &*pool };
    match create(pool) {
        Ok(magazine) => magazine.as_ptr(),
        // SAFETY: `error` is null or writable (this function's contract).
        Err(refusal) => unsafe { refused(error, refusal.to_c()) },
    }
}

fn create(pool: &'static Pool) -> Result<NonNull<PoolMagazine>, Refusal> {
    let blocks = pool.shared().ok_or(Refusal::NotShared)?;
    let bytes = size_of::<PoolMagazine>();
    let place = NonNull::new(door::allocate(bytes).cast::<PoolMagazine>()).ok_or(Refusal::NoMemory { bytes })?;
    pool.n_magazines().fetch_add(1, Ordering::Relaxed);
    // SAFETY: the block was just allocated: large enough, aligned to 16, and no other code has its address.
    unsafe { place.write(PoolMagazine { magazine: blocks.magazine(), pool }) };
    Ok(place)
}

/// Ends a magazine: its free blocks go back to the pool. Null does nothing.
///
/// # Safety
/// - `magazine` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_delete(magazine: *mut PoolMagazine) {
    if magazine.is_null() {
        return;
    }
    // SAFETY: the magazine is live, so its pool is, and with it the count.
    let n_magazines = unsafe { (*magazine).pool }.n_magazines();
    // SAFETY: the magazine is live, and is not used after this.
    unsafe { magazine.drop_in_place() };
    // From here on the pool may end: release makes what the magazine gave back visible to the thread that ends it.
    n_magazines.fetch_sub(1, Ordering::Release);
    // SAFETY: `create` allocated the block, and what was in it has ended.
    unsafe { door::free(magazine.cast()) };
}

/// Allocates a block, as `freestone_pool_malloc`.
///
/// # Safety
/// - `magazine` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_malloc(magazine: *mut PoolMagazine) -> *mut c_void {
    // SAFETY: the magazine is live.
    let magazine = unsafe { &mut *magazine };
    magazine.pool.block(magazine.magazine.allocate())
}

/// Allocates a block of zeros, as `freestone_pool_calloc`.
///
/// # Safety
/// - `magazine` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_calloc(magazine: *mut PoolMagazine) -> *mut c_void {
    // SAFETY: the magazine is live.
    let magazine = unsafe { &mut *magazine };
    magazine.pool.block(magazine.magazine.allocate_zeroed())
}

/// Frees a block, as `freestone_pool_free`.
///
/// # Safety
/// - `magazine` is live; no code uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_free(magazine: *mut PoolMagazine, block: *mut c_void) -> c_int {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return OK };
    // SAFETY: the magazine is live.
    let magazine = unsafe { &mut *magazine };
    // SAFETY: no code uses the block (this function's contract); the pool refuses what is no block of its own.
    let freed = unsafe { magazine.magazine.deallocate(block) };
    magazine.pool.code(freed)
}
