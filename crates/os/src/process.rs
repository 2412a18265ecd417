//! Facts about the process, read from what the kernel put in memory before it started, and its end.
#![allow(unsafe_code)]
//! # Safety
//! The C library's `getauxval` and `environ` are read; both are valid from the program's first instruction on, and
//! nothing here writes to them.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Whether the process runs with more rights than its caller (setuid, file capabilities): it then trusts no environment.
#[must_use]
pub fn is_secure() -> bool {
    // SAFETY: getauxval takes any key and touches only the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Size of an OS page in bytes, as the kernel told the process at its start.
#[inline]
#[must_use]
pub fn os_page_bytes() -> usize {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    match BYTES.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: as above.
            let told = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
            let bytes = if told.is_power_of_two() { told } else { 4096 };
            BYTES.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// Calls `visit` with each `KEY=VALUE` of the environment, as bytes.
pub fn for_each_environment(mut visit: impl FnMut(&[u8])) {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library keeps `environ` null or pointing to a null-terminated array of C strings.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            visit(CStr::from_ptr(*entry).to_bytes());
            entry = entry.add(1);
        }
    }
}

/// Ends the process at once with SIGABRT.
pub fn abort() -> ! {
    // SAFETY: abort may be called from anywhere and does not return.
    unsafe { libc::abort() }
}

/// Sets the C library's `errno` of this thread.
pub fn set_errno(errno: crate::Errno) {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = errno.0 }
}

/// This process's number.
#[must_use]
pub fn id() -> i32 {
    // SAFETY: takes nothing, touches nothing.
    unsafe { libc::getpid() }
}

/// Lets other threads run.
pub fn yield_now() {
    #[cfg(not(shuttle))]
    rustix::thread::sched_yield();
    #[cfg(shuttle)]
    freestone_base::sync::scheduled::let_others_run();
}

/// Gives this thread a name, for those who look at the process from outside.
pub fn name_thread(name: &CStr) {
    // A thread without a name works as well.
    let _ = rustix::thread::set_name(name);
}

/// The C library's `errno` of this thread.
#[must_use]
pub fn errno() -> crate::Errno {
    // SAFETY: the location is this thread's own.
    crate::Errno(unsafe { *libc::__errno_location() })
}

/// The address of this thread's `errno`: no other living thread has it, and a forked child's thread keeps it.
#[cfg(not(shuttle))]
pub(crate) fn errno_address() -> usize {
    // SAFETY: the function has no conditions; only the address is used.
    unsafe { libc::__errno_location() }.addr()
}
