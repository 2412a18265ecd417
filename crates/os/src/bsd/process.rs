//! Facts about the process and the calling thread, and the end of the process.
#![allow(unsafe_code)]
//!
//! # Safety
//! The functions of the C library may be called at any time; nothing here writes to the environment.

use crate::Errno;
use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::__error as errno_location;

/// Whether the process has more rights than the one that started it. It must not trust its environment then.
#[must_use]
pub fn is_secure() -> bool {
    unsafe extern "C" {
        fn issetugid() -> c_int;
    }
    // SAFETY: the call has no arguments.
    unsafe { issetugid() != 0 }
}

/// Size of an OS page in bytes.
#[inline]
#[must_use]
pub fn os_page_bytes() -> usize {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    match BYTES.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: the call takes a number.
            let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
            let bytes = if told.is_power_of_two() { told } else { 4096 };
            BYTES.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// The environment: an array of C strings that ends in null.
fn environment() -> *const *const c_char {
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

/// Calls `visit` with each `KEY=VALUE` of the environment, as bytes.
pub fn for_each_environment(mut visit: impl FnMut(&[u8])) {
    let mut entry = environment();
    while !entry.is_null() {
        // SAFETY: the environment is an array that ends in null, and this loop ends there.
        let string = unsafe { *entry };
        if string.is_null() {
            return;
        }
        // SAFETY: every entry before the null is a C string.
        visit(unsafe { CStr::from_ptr(string) }.to_bytes());
        entry = entry.wrapping_add(1);
    }
}

/// Ends the process at once with SIGABRT.
pub fn abort() -> ! {
    // SAFETY: abort may be called from anywhere and does not return.
    unsafe { libc::abort() }
}

/// Sets the C library's `errno` of this thread.
pub fn set_errno(errno: Errno) {
    // SAFETY: the function may be called at any time.
    let location = unsafe { errno_location() };
    // SAFETY: the location is this thread's own.
    unsafe { *location = errno.0 }
}

/// The C library's `errno` of this thread.
#[must_use]
pub fn errno() -> Errno {
    // SAFETY: the function may be called at any time.
    let location = unsafe { errno_location() };
    // SAFETY: the location is this thread's own.
    Errno(unsafe { *location })
}

/// The address of this thread's `errno`: unique among the living threads, and the same in a forked child.
#[cfg(not(shuttle))]
pub(crate) fn errno_address() -> usize {
    // SAFETY: the function may be called at any time, and the memory is not accessed.
    unsafe { errno_location() }.addr()
}

/// This process's number.
#[must_use]
pub fn id() -> i32 {
    // SAFETY: the call has no arguments.
    unsafe { libc::getpid() }
}

/// Whether there is a process with the number `id`, whosever it is.
#[must_use]
pub fn is_running(id: i32) -> bool {
    let before = errno();
    // SAFETY: signal 0 is sent to no process; the call only asks whether there is one.
    let is_running = id > 0 && (unsafe { libc::kill(id, 0) } == 0 || errno().0 != libc::ESRCH);
    set_errno(before);
    is_running
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

/// A function that the C library calls around a fork.
pub type ForkHandler = extern "C" fn();

/// Has `before` called in the thread that forks, and after the fork `in_parent` in that thread and `in_child` in its copy. `false` if the C library
/// cannot.
pub fn at_fork(before: ForkHandler, in_parent: ForkHandler, in_child: ForkHandler) -> bool {
    unsafe extern "C" {
        fn pthread_atfork(
            before: Option<ForkHandler>,
            parent: Option<ForkHandler>,
            child: Option<ForkHandler>,
        ) -> c_int;
    }
    // SAFETY: the handlers are functions of the type asked for, and exist as long as the object that has them in it is loaded.
    unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) == 0 }
}
