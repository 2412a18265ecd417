//! What a thread does first and last under rpmalloc.
//!
//! The creating thread passes the start routine to the new thread in a package of two words, which the new thread frees. The destructor of a
//! key returns the heap, so that `pthread_exit` and cancellation are covered.
//!
//! # Safety
//! A package is written before its thread exists, and read once by that thread.

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
    // SAFETY: rpmalloc returns a 16-byte aligned block of at least two words, which nothing else refers to.
    unsafe {
        let package = peer_functions::rpmalloc(size_of::<Package>()).cast::<Package>();
        package.write(Package { start, argument });
        package.cast()
    }
}

/// The start routine of every thread.
pub extern "C" fn run_packed(package: *mut c_void) -> *mut c_void {
    // SAFETY: `pack` wrote the package, and only the thread that it was passed to reads it.
    let Package { start, argument } = unsafe { package.cast::<Package>().read() };
    // SAFETY: rpmalloc allocated the package, and it is freed once; the key exists, and any value but null makes its destructor run.
    unsafe {
        rpmalloc_thread_initialize();
        peer_functions::rpfree(package);
        pthread_setspecific(key(), core::ptr::dangling());
    }
    start(argument)
}

extern "C" fn end_thread(_value: *mut c_void) {
    // SAFETY: the key's destructor runs on the ending thread, once.
    unsafe { rpmalloc_thread_finalize(1) }
}

fn key() -> u32 {
    static KEY: OnceLock<u32> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is a local that can be written, and the destructor has the signature of one.
        unsafe { pthread_key_create(&raw mut key, end_thread) };
        key
    })
}
