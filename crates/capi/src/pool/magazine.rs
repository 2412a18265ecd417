//! Magazines of shared pools for C.
#![allow(unsafe_code)]
//!
//! A `freestone_magazine_t` is opaque: a [`CMagazine`] in a block of the process's own allocator.
//!
//! # Safety
//! Handles are those `freestone_magazine_new` returned and `freestone_magazine_delete` has not taken; each is used by one thread at a time,
//! and its pool outlives it (`freestone_pool_delete` sees to that). C callers promise that.

use super::error::{FreestonePoolError, OK, Refusal};
use super::place::{Blocks, Pool};
use super::{handed_out, outcome, refused};
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use freestone_pool::Magazine;
use heap::door;

/// What a handle points to.
pub struct CMagazine {
    magazine: Magazine<'static, 'static>,
    n_magazines: &'static AtomicUsize,
}

/// An empty magazine of a shared pool; null, errno and the reason in `*error` if there can be none.
///
/// # Safety
/// - See the module header; `error` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_new(pool: *mut Pool, error: *mut FreestonePoolError) -> *mut CMagazine {
    // SAFETY: the caller's promise, for all of the body; the pool is not deleted while a magazine is out.
    unsafe {
        let pool: &'static Pool = &*pool;
        let Blocks::Shared(blocks) = &pool.blocks else { return refused(error, Refusal::NotShared) };
        let bytes = size_of::<CMagazine>();
        let Some(place) = NonNull::new(door::allocate(bytes).cast::<CMagazine>()) else {
            return refused(error, Refusal::NoMemory { bytes });
        };
        pool.n_magazines.fetch_add(1, Ordering::Relaxed);
        place.write(CMagazine { magazine: blocks.magazine(), n_magazines: &pool.n_magazines });
        place.as_ptr()
    }
}

/// Gives a magazine's free blocks back to its pool, and ends it; null is nothing.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_delete(magazine: *mut CMagazine) {
    if magazine.is_null() {
        return;
    }
    // SAFETY: the caller's promise; the pool may end as soon as the count is down.
    unsafe {
        let n_magazines = (*magazine).n_magazines;
        magazine.drop_in_place();
        n_magazines.fetch_sub(1, Ordering::Release);
        door::free(magazine.cast());
    }
}

/// As `freestone_pool_allocate`, from a magazine.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_allocate(magazine: *mut CMagazine) -> *mut c_void {
    // SAFETY: the caller's promise.
    handed_out(unsafe { (*magazine).magazine.allocate() })
}

/// As `freestone_pool_allocate_zeroed`, from a magazine.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_allocate_zeroed(magazine: *mut CMagazine) -> *mut c_void {
    // SAFETY: the caller's promise.
    handed_out(unsafe { (*magazine).magazine.allocate_zeroed() })
}

/// As `freestone_pool_free`, into a magazine.
///
/// # Safety
/// - See the module header; `error` may be null; nothing uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_magazine_free(
    magazine: *mut CMagazine,
    block: *mut c_void,
    error: *mut FreestonePoolError,
) -> c_int {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return OK };
    // SAFETY: the caller's promise.
    unsafe { outcome(error, (*magazine).magazine.deallocate(block)) }
}
