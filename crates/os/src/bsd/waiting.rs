//! Waiting for a word in the kernel.
#![allow(unsafe_code)]
//!
//! macOS 14.4 has a public name for what `__ulock_wait` does (os_sync_wait_on_address). The latter, of 10.12, is used, because a program that names
//! the former does not start on an older system.
//!
//! # Safety
//! The kernel reads the word, which lives while the call lasts, and otherwise uses its address only.

use super::keeping_errno;
use super::process;
use core::ffi::{c_int, c_void};
use core::ptr;
use freestone_base::sync::AtomicU32;

/// A number that no other living thread has, and that the thread keeps in a forked child.
pub(crate) fn this_thread() -> usize {
    process::errno_address()
}

#[cfg(target_vendor = "apple")]
mod kernel {
    use super::*;

    const UL_COMPARE_AND_WAIT: u32 = 1;
    const ULF_WAKE_ALL: u32 = 0x100;

    unsafe extern "C" {
        fn __ulock_wait(operation: u32, word: *mut c_void, expected: u64, timeout_us: u32) -> c_int;
        fn __ulock_wake(operation: u32, word: *mut c_void, value: u64) -> c_int;
    }

    pub(super) fn wait(word: *mut c_void, expected: u32, ms: Option<u32>) -> c_int {
        // 0 waits without a limit.
        let timeout_us = ms.map_or(0, |ms| ms.saturating_mul(1000).max(1));
        // SAFETY: the word has four bytes, and lives while the call lasts.
        unsafe { __ulock_wait(UL_COMPARE_AND_WAIT, word, u64::from(expected), timeout_us) }
    }

    pub(super) fn wake(word: *mut c_void, all: bool) -> c_int {
        let operation = UL_COMPARE_AND_WAIT | if all { ULF_WAKE_ALL } else { 0 };
        // SAFETY: the address is not accessed.
        unsafe { __ulock_wake(operation, word, 0) }
    }
}

#[cfg(target_os = "freebsd")]
mod kernel {
    use super::*;

    const UMTX_OP_WAIT_UINT_PRIVATE: c_int = 15;
    const UMTX_OP_WAKE_PRIVATE: c_int = 16;

    unsafe extern "C" {
        fn _umtx_op(
            word: *mut c_void,
            operation: c_int,
            value: libc::c_ulong,
            size: *mut c_void,
            time: *mut c_void,
        ) -> c_int;
    }

    pub(super) fn wait(word: *mut c_void, expected: u32, ms: Option<u32>) -> c_int {
        let mut timeout = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let (size, time) = match ms {
            None => (ptr::null_mut(), ptr::null_mut()),
            Some(ms) => {
                timeout.tv_sec = (ms / 1000).into();
                timeout.tv_nsec = (ms % 1000 * 1_000_000).into();
                // In the place of a pointer the call has the size of the time.
                let size = ptr::without_provenance_mut(size_of::<libc::timespec>());
                (size, (&raw mut timeout).cast())
            }
        };
        // SAFETY: the word has four bytes, and it and the time live while the call lasts.
        unsafe { _umtx_op(word, UMTX_OP_WAIT_UINT_PRIVATE, expected.into(), size, time) }
    }

    pub(super) fn wake(word: *mut c_void, all: bool) -> c_int {
        let most = if all { c_int::MAX } else { 1 };
        // SAFETY: the address is not accessed.
        unsafe { _umtx_op(word, UMTX_OP_WAKE_PRIVATE, most as libc::c_ulong, ptr::null_mut(), ptr::null_mut()) }
    }
}

/// The address of a word as the kernel takes it.
fn place(word: &AtomicU32) -> *mut c_void {
    ptr::from_ref(word).cast_mut().cast()
}

/// Returns when `word` may have changed from `expected`, or after `ms` milliseconds if that is given; may return early.
pub(crate) fn wait(word: &AtomicU32, expected: u32, ms: Option<u32>) {
    // The caller reads the word again in every case.
    let _ = keeping_errno(|| kernel::wait(place(word), expected, ms));
}

/// Wakes threads that wait for `word` to change: one, or all.
pub(crate) fn wake(word: &AtomicU32, all: bool) {
    let _ = keeping_errno(|| kernel::wake(place(word), all));
}
