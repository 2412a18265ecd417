//! How the kernel schedules the allocator's own thread.
#![allow(unsafe_code)]
//!
//! # Safety
//! The calls are about the calling thread and the process's first thread, and get structures that were initialised here. They change `errno`, so only
//! the allocator's own threads may call this.

use core::mem::{self, MaybeUninit};

/// Gives the calling thread the ordinary scheduling policy, and the niceness and processors of the process's first thread, whatever it has
/// inherited from the thread that started it. A setting that the kernel refuses stays as it is.
pub fn like_the_first_thread() {
    // SAFETY: every pointer is to a local structure of the size that the call expects; a `sched_param` of zeros has no priority, and a `cpu_set_t` of
    // zeros is the empty set.
    unsafe {
        let first = libc::getpid();
        let parameter: libc::sched_param = mem::zeroed();
        // A system call, because musl's function does nothing.
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const parameter);
        let niceness = libc::getpriority(libc::PRIO_PROCESS, first as libc::id_t);
        libc::setpriority(libc::PRIO_PROCESS, 0, niceness);
        let mut processors = MaybeUninit::<libc::cpu_set_t>::zeroed();
        let bytes = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(first, bytes, processors.as_mut_ptr()) == 0 {
            libc::sched_setaffinity(0, bytes, processors.as_ptr());
        }
    }
}
