//! How the kernel schedules the background thread.
#![allow(unsafe_code)]
//!
//! # Safety
//! The calls get local structures of the sizes that they expect. They change `errno`, so only the background thread calls this.

use core::mem::{self, MaybeUninit};

/// Gives the calling thread the ordinary scheduling policy, and the niceness and processors of the process's first thread, whatever it has
/// inherited from the thread that started it. A setting that the kernel refuses stays as it is.
pub fn like_the_first_thread() {
    // SAFETY: getpid has no arguments and touches no memory.
    let first = unsafe { libc::getpid() };
    // SAFETY: a `sched_param` is a structure of integers; zeros are one without priority.
    let parameter: libc::sched_param = unsafe { mem::zeroed() };
    // A system call, because musl's function does nothing.
    // SAFETY: the call reads one `sched_param`.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const parameter) };
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
