//! Facts about the process and the calling thread, and the end of the process.
#![allow(unsafe_code)]
//!
//! # Safety
//! The functions of the C library that are called here may be called at any time; nothing here writes to the environment.

use crate::Errno;
pub use crate::kernel::process_facts::{
    USER_SIGNALS, command_line, handle_signal, is_secure, peak_resident_bytes, thread_id,
};
use crate::kernel::process_facts::{environment, errno_location, told_page_bytes};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Size of an OS page in bytes.
///
/// ```
/// assert!(freestone_os::process::os_page_bytes().is_power_of_two());
/// ```
#[inline]
#[must_use]
pub fn os_page_bytes() -> usize {
    match PAGE_BYTES.load(Ordering::Relaxed) {
        0 => find_page_bytes(),
        bytes => bytes,
    }
}

/// What [`os_page_bytes`] returns; 0 until it is asked for.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

#[cold]
#[inline(never)]
fn find_page_bytes() -> usize {
    let told = told_page_bytes();
    let bytes = if told.is_power_of_two() { told } else { 4096 };
    PAGE_BYTES.store(bytes, Ordering::Relaxed);
    bytes
}

/// Calls `visit` with each `KEY=VALUE` of the environment, as bytes.
///
/// ```
/// let mut n = 0;
/// freestone_os::process::for_each_environment(|entry| n += usize::from(entry.starts_with(b"PATH=")));
/// assert!(n <= 1);
/// ```
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

/// This process's number.
#[must_use]
pub fn id() -> i32 {
    // SAFETY: getpid has no arguments and touches no memory.
    unsafe { libc::getpid() }
}

/// Whether there is a process with the number `id`, whosever it is.
///
/// ```
/// use freestone_os::process;
///
/// assert!(process::is_running(process::id()) && !process::is_running(i32::MAX));
/// ```
#[must_use]
pub fn is_running(id: i32) -> bool {
    let before = errno();
    // SAFETY: signal 0 is sent to no process; the call only asks whether there is one.
    let is_running = id > 0 && (unsafe { libc::kill(id, 0) } == 0 || errno().0 != libc::ESRCH);
    set_errno(before);
    is_running
}

/// A function that the C library calls around a fork.
pub type ForkHandler = extern "C" fn();

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    fn __register_atfork(
        before: Option<ForkHandler>,
        parent: Option<ForkHandler>,
        child: Option<ForkHandler>,
        object: *const u8,
    ) -> c_int;
}

#[cfg(not(target_env = "gnu"))]
unsafe extern "C" {
    fn pthread_atfork(before: Option<ForkHandler>, parent: Option<ForkHandler>, child: Option<ForkHandler>) -> c_int;
}

/// Has `before` called in the thread that forks, and after the fork `in_parent` in that thread and `in_child` in its copy. `false` if the C library
/// cannot.
pub fn at_fork(before: ForkHandler, in_parent: ForkHandler, in_child: ForkHandler) -> bool {
    // With `pthread_atfork` glibc forgets an object's handlers when the process ends: a thread that is within `fork` then would not come to `in_parent`. This
    // is what `pthread_atfork` calls, here for no object.
    #[cfg(target_env = "gnu")]
    // SAFETY: the handlers are functions of the type asked for, and the object that has them in it stays loaded (`pin`).
    let error = unsafe { __register_atfork(Some(before), Some(in_parent), Some(in_child), core::ptr::null()) };
    #[cfg(not(target_env = "gnu"))]
    // SAFETY: the handlers are functions of the type asked for, and exist as long as the object that has them in it is loaded.
    let error = unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    error == 0
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
