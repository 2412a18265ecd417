//! How the background thread is called and scheduled.
#![allow(unsafe_code)]
//!
//! # Safety
//! System calls get structures of integers, of which every value is valid.

use crate::process;
use core::ffi::{CStr, c_int};
use core::mem::{self, MaybeUninit};

/// The ordinary policy, which not every C library's headers name.
const SCHED_OTHER: c_int = 0;

/// Names the calling thread, for debuggers and tools like `top`. A kernel that refuses leaves it without a name.
pub fn set_name(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

/// Gives the calling thread the ordinary scheduling policy, and the niceness and processors of the process's first thread, whatever it has
/// inherited from the thread that started it. A setting that the kernel refuses stays as it is. Changes `errno`, so only the background
/// thread calls this.
pub fn schedule_like_the_first() {
    let first = process::id();
    // SAFETY: a `sched_param` is a structure of integers; zeros are one without priority.
    let parameter: libc::sched_param = unsafe { mem::zeroed() };
    // A system call, because musl's function does nothing.
    // SAFETY: the call reads one `sched_param`.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, SCHED_OTHER, &raw const parameter) };
    // SAFETY: getpriority takes numbers and touches no memory but `errno`.
    let niceness = unsafe { libc::getpriority(libc::PRIO_PROCESS, first as libc::id_t) };
    // SAFETY: setpriority takes numbers and touches no memory but `errno`.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
    let mut processors = MaybeUninit::<libc::cpu_set_t>::zeroed();
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: the call writes at most `bytes` to `processors`, which has so many.
    if unsafe { libc::sched_getaffinity(first, bytes, processors.as_mut_ptr()) } == 0 {
        // SAFETY: the call reads `bytes` of `processors`, which is zero where the call above has not written.
        unsafe { libc::sched_setaffinity(0, bytes, processors.as_ptr()) };
    }
}
