//! What these systems alone say of the process and the calling thread.
#![allow(unsafe_code)]
//!
//! # Safety
//! The functions of the C library may be called at any time; nothing here writes to the environment.

use core::ffi::{c_char, c_int};
use core::mem::MaybeUninit;
pub(crate) use libc::__error as errno_location;

/// Whether the process has more rights than the one that started it. It must not trust its environment then.
#[must_use]
pub fn is_secure() -> bool {
    unsafe extern "C" {
        fn issetugid() -> c_int;
    }
    // SAFETY: the call has no arguments.
    unsafe { issetugid() != 0 }
}

/// Size of an OS page in bytes, as the system says.
pub(crate) fn told_page_bytes() -> usize {
    // SAFETY: the call takes a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// The environment: an array of C strings that ends in null.
pub(crate) fn environment() -> *const *const c_char {
    #[cfg(target_vendor = "apple")]
    {
        unsafe extern "C" {
            fn _NSGetEnviron() -> *const *const *const c_char;
        }
        // SAFETY: the call has no arguments.
        let place = unsafe { _NSGetEnviron() };
        // SAFETY: it returns the address of the program's `environ`.
        unsafe { *place }
    }
    #[cfg(not(target_vendor = "apple"))]
    {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        // SAFETY: the C library has set `environ` before any code of the program runs.
        unsafe { environ }
    }
}

/// The peak of the process's resident memory in bytes; `None` if the kernel does not say.
#[must_use]
pub fn peak_resident_bytes() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: there is room for the structure.
    let is_known = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } == 0;
    // SAFETY: the structure is one of integers, of which zeros and what the call has written are valid.
    let peak = unsafe { usage.assume_init() }.ru_maxrss as u64;
    // In kibibytes, but for Apple's kernels.
    is_known.then(|| peak * if cfg!(target_vendor = "apple") { 1 } else { 1024 })
}

/// An unknown command line.
pub fn command_line(_buffer: &mut [u8]) -> &[u8] {
    &[]
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn thread_id() -> i32 {
    #[cfg(target_vendor = "apple")]
    {
        let mut number = 0;
        // SAFETY: 0 stands for the calling thread, and there is a place for the number.
        unsafe { libc::pthread_threadid_np(0 as libc::pthread_t, &raw mut number) };
        number as i32
    }
    #[cfg(not(target_vendor = "apple"))]
    {
        // SAFETY: the call has no arguments.
        unsafe { libc::pthread_getthreadid_np() }
    }
}

/// The numbers of the two signals that are the program's to use, if there were any here.
pub const USER_SIGNALS: [c_int; 2] = [1, 2];

/// Has nothing called: no signal is served here.
pub fn handle_signal(_number: i32, _handler: extern "C" fn(c_int)) -> bool {
    false
}
