//! What is said about threads to the kernel.
#![allow(unsafe_code)]
//!
//! # Safety
//! The C library copies the name.

use core::ffi::CStr;

pub use crate::pthread::count_thread_locals;
pub(crate) use crate::pthread::{Handle, join, start};

/// Names the calling thread, for debuggers.
pub fn set_name(name: &CStr) {
    #[cfg(target_vendor = "apple")]
    // SAFETY: the name is a C string.
    unsafe {
        libc::pthread_setname_np(name.as_ptr())
    };
    #[cfg(target_os = "freebsd")]
    {
        // SAFETY: the call has no arguments.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the thread is this one, and the name is a C string.
        unsafe { libc::pthread_set_name_np(this, name.as_ptr()) };
    }
}

/// Nothing: the thread keeps the priority of the one that started it.
pub fn schedule_like_the_first() {}
