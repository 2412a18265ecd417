//! What Linux alone says of the process and the calling thread.
#![allow(unsafe_code)]
//!
//! # Safety
//! The C library's `getauxval` and `environ` are valid from the program's first instruction on, and nothing here writes to them.

use crate::{file, process};
use core::ffi::{c_char, c_int};
use core::{mem, ptr};
#[cfg(target_os = "android")]
pub(crate) use libc::__errno as errno_location;
#[cfg(not(target_os = "android"))]
pub(crate) use libc::__errno_location as errno_location;
use rustix::fd::BorrowedFd;

/// Whether the process has more rights than the one that started it (setuid, file capabilities). It must not trust its environment then.
#[must_use]
pub fn is_secure() -> bool {
    told_at_start(libc::AT_SECURE) != 0
}

/// Size of an OS page in bytes, from the auxiliary vector.
pub(crate) fn told_page_bytes() -> usize {
    told_at_start(libc::AT_PAGESZ)
}

/// What the kernel told the process when it started, in the auxiliary vector; 0 where it did not, and under Miri.
pub(crate) fn told_at_start(key: libc::c_ulong) -> usize {
    if cfg!(miri) {
        return 0;
    }
    // SAFETY: getauxval takes any key and touches only the auxiliary vector.
    unsafe { libc::getauxval(key) as usize }
}

/// Whether there is a limit of the process's addresses or of its data; `false` if the kernel does not say. The C library's function: rustix takes it that the kernel
/// does, and a filter may refuse that.
pub(crate) fn has_limit_of_mappings() -> bool {
    let is_limited = |resource| {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the call writes one `rlimit`.
        let is_told = unsafe { libc::getrlimit(resource, &raw mut limit) } == 0;
        is_told && limit.rlim_cur != libc::RLIM_INFINITY
    };
    let errno = process::errno();
    let has_limit = is_limited(libc::RLIMIT_AS) || is_limited(libc::RLIMIT_DATA);
    process::set_errno(errno);
    has_limit
}

/// The environment: an array of C strings that ends in null.
pub(crate) fn environment() -> *const *const c_char {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library has set `environ` before any code of the program runs.
    unsafe { environ }
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
