//! What a thread does first and last under rpmalloc.
//!
//! A thread's start routine travels in a package of two words from the creating thread to the created one, which frees it. The
//! heap is given back by a key's destructor, so that `pthread_exit` and cancellation are covered.
//!
//! # Safety
//! The package is written before the thread exists and read once by it.

use crate::{Start, peer_functions};
use core::ffi::{c_int, c_void};
use std::sync::OnceLock;

unsafe extern "C" {
    fn rpmalloc_thread_initialize();
    fn rpmalloc_thread_finalize(release_caches: c_int);
    fn pthread_key_create(key: *mut u32, destructor: extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
}

#[repr(C)]
struct Package {
    start: Start,
    argument: *mut c_void,
}

/// A package for [`run_packed`].
///
/// # Safety
/// The package must be handed to one thread, or freed.
pub unsafe fn pack(start: Start, argument: *mut c_void) -> *mut c_void {
    // SAFETY: two words always fit; rpmalloc's blocks are 16-byte aligned.
    unsafe {
        let package = peer_functions::rpmalloc(size_of::<Package>()).cast::<Package>();
        package.write(Package { start, argument });
        package.cast()
    }
}

/// The start routine of every thread.
pub extern "C" fn run_packed(package: *mut c_void) -> *mut c_void {
    // SAFETY: `pack` wrote it and only this thread reads it.
    let Package { start, argument } = unsafe { package.cast::<Package>().read() };
    // SAFETY: the package came from rpmalloc; the key was created; any non-null value makes its destructor run.
    unsafe {
        rpmalloc_thread_initialize();
        peer_functions::rpfree(package);
        pthread_setspecific(key(), core::ptr::dangling());
    }
    start(argument)
}

extern "C" fn end_thread(_value: *mut c_void) {
    // SAFETY: called on the ending thread, once.
    unsafe { rpmalloc_thread_finalize(1) }
}

fn key() -> u32 {
    static KEY: OnceLock<u32> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` can be written.
        unsafe { pthread_key_create(&raw mut key, end_thread) };
        key
    })
}
