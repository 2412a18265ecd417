//! How the kernel schedules a thread of the allocator.
#![allow(unsafe_code)]
//! # Safety
//! The calls get the calling thread, and structures of their own that are initialised first. They change `errno`: for threads of ours.

use core::mem::{self, MaybeUninit};

/// Gives the calling thread the ordinary policy, and the niceness and processors of the process's first thread, whatever it inherited from
/// the thread that started it. What the kernel refuses stays as it is.
pub fn like_the_first_thread() {
    // SAFETY: see the module header; all zero is a parameter without priority, and a set of no processors.
    unsafe {
        let first = libc::getpid();
        let parameter: libc::sched_param = mem::zeroed();
        // The function of that name does nothing in musl.
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
