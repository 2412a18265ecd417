//! Facts about the process and the calling thread, and the end of the process.
#![allow(unsafe_code)]
//!
//! # Safety
//! The C library's `getauxval` and `environ` are valid from the program's first instruction on, and nothing here writes to them.

use crate::file;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::{mem, ptr};
#[cfg(target_os = "android")]
use libc::__errno as errno_location;
#[cfg(not(target_os = "android"))]
use libc::__errno_location as errno_location;
use rustix::fd::BorrowedFd;

/// Whether the process has more rights than the one that started it (setuid, file capabilities). It must not trust its environment then.
#[must_use]
pub fn is_secure() -> bool {
    // SAFETY: getauxval takes any key and touches only the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Size of an OS page in bytes, from the auxiliary vector.
///
/// ```
/// assert!(freestone_os::process::os_page_bytes().is_power_of_two());
/// ```
#[inline]
#[must_use]
pub fn os_page_bytes() -> usize {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    match BYTES.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: getauxval takes any key and touches only the auxiliary vector.
            let told = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
            let bytes = if told.is_power_of_two() { told } else { 4096 };
            BYTES.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// Calls `visit` with each `KEY=VALUE` of the environment, as bytes.
///
/// ```
/// let mut n = 0;
/// freestone_os::process::for_each_environment(|entry| n += usize::from(entry.starts_with(b"PATH=")));
/// assert!(n <= 1);
/// ```
pub fn for_each_environment(mut visit: impl FnMut(&[u8])) {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library has set `environ` before any code of the program runs.
    let mut entry = unsafe { environ };
    while !entry.is_null() {
        // SAFETY: `environ` points to an array that ends in null, and this loop ends there.
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
pub fn set_errno(errno: crate::Errno) {
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

/// The peak of the process's resident memory in bytes; `None` if the kernel does not say.
///
/// ```
/// assert!(freestone_os::process::peak_resident_bytes().is_none_or(|bytes| bytes > 4096));
/// ```
#[must_use]
pub fn peak_resident_bytes() -> Option<u64> {
    let mut buffer = [0; 4096];
    let text = file::read(c"/proc/self/status", &mut buffer).ok()?;
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"VmHWM:"))?;
    Some(file::number(line.strip_suffix(b"kB")?)? * 1024)
}

/// The command line of the process, as much as fits into `buffer`: each argument is followed by a zero byte.
pub fn command_line(buffer: &mut [u8]) -> &[u8] {
    file::read(c"/proc/self/cmdline", buffer).unwrap_or_default()
}

/// The descriptor of this number, for one call; `None` if no descriptor can have it.
pub(crate) fn borrow_descriptor<'a>(number: i32) -> Option<BorrowedFd<'a>> {
    // SAFETY: the number is not -1; if no file is open under it, the kernel says so.
    (number >= 0).then(|| unsafe { BorrowedFd::borrow_raw(number) })
}

/// The numbers of the two signals that are the program's to use.
pub const USER_SIGNALS: [c_int; 2] = [libc::SIGUSR1, libc::SIGUSR2];

/// Has `handler` called for the signal `number` from now on, if the process does with it what the kernel does by default. `false` if it handles or ignores the signal,
/// or there is none of this number. The handler must only do what is safe in a signal handler. A handler that the program installs later replaces it.
pub fn handle_signal(number: i32, handler: extern "C" fn(c_int)) -> bool {
    // SAFETY: every field of the structure is a number, a pointer or a set of bits, of which zero is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the call writes what is installed now to a local structure.
    if unsafe { libc::sigaction(number, ptr::null(), &mut action) } != 0 || action.sa_sigaction != libc::SIG_DFL {
        return false;
    }
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: without `SA_SIGINFO` a handler is a function of a number, as this one is; functions of this library exist as long as the process.
    unsafe { libc::sigaction(number, &action, ptr::null_mut()) == 0 }
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

unsafe extern "C" {
    fn pthread_atfork(before: Option<ForkHandler>, parent: Option<ForkHandler>, child: Option<ForkHandler>) -> c_int;
}

/// A function that the C library calls around a fork.
pub type ForkHandler = extern "C" fn();

/// Has `before` called in the thread that forks, and after the fork `in_parent` in that thread and `in_child` in its copy. `false` if the C library
/// cannot.
pub fn at_fork(before: ForkHandler, in_parent: ForkHandler, in_child: ForkHandler) -> bool {
    // SAFETY: the handlers are functions of the type asked for, and exist as long as the object that has them in it is loaded.
    unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) == 0 }
}

/// The C library's `errno` of this thread.
#[must_use]
pub fn errno() -> crate::Errno {
    // SAFETY: the function may be called at any time.
    let location = unsafe { errno_location() };
    // SAFETY: the location is this thread's own.
    crate::Errno(unsafe { *location })
}

/// The address of this thread's `errno`: unique among the living threads, and the same in a forked child.
#[cfg(not(shuttle))]
pub(crate) fn errno_address() -> usize {
    // SAFETY: the function may be called at any time, and the memory is not accessed.
    unsafe { errno_location() }.addr()
}
