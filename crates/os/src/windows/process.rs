//! Facts about the process and the calling thread, and the end of the process.
#![allow(unsafe_code)]
//!
//! The error number of a thread is the system's: `GetLastError`. The allocator keeps it, and sets it where memory runs out.
//!
//! # Safety
//! The functions of the system are declared as its documentation has them. The block of environment variables is the caller's until it is given back.

use crate::Errno;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetSystemInfo(info: *mut SystemInfo);
    fn GetEnvironmentStringsW() -> *mut u16;
    fn FreeEnvironmentStringsW(block: *mut u16) -> i32;
    fn GetLastError() -> u32;
    fn SetLastError(error: u32);
    fn GetCurrentProcessId() -> u32;
    fn GetCurrentThreadId() -> u32;
    fn GetCurrentProcess() -> *mut c_void;
    fn TerminateProcess(process: *mut c_void, code: u32) -> i32;
    fn OpenProcess(access: u32, inherit: i32, id: u32) -> *mut c_void;
    fn CloseHandle(handle: *mut c_void) -> i32;
    #[link_name = "K32GetProcessMemoryInfo"]
    fn memory_info(process: *mut c_void, counters: *mut MemoryCounters, bytes: u32) -> i32;
}

/// The system's structure SYSTEM_INFO.
#[repr(C)]
#[derive(Default)]
struct SystemInfo {
    architecture: u32,
    page_bytes: u32,
    addresses: [usize; 2],
    processors: usize,
    n_processors: u32,
    rest: [u32; 3],
}

/// The system's structure PROCESS_MEMORY_COUNTERS.
#[repr(C)]
#[derive(Default)]
struct MemoryCounters {
    bytes: u32,
    faults: u32,
    peak_working_set: usize,
    others: [usize; 7],
}

/// What the C runtime ends a process with that aborts.
const ABORTED: u32 = 3;

/// Whether the environment must not be trusted: there are no programs with more rights than those who start them.
#[must_use]
pub fn is_secure() -> bool {
    false
}

/// Size of an OS page in bytes.
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
            let mut info = SystemInfo::default();
            // SAFETY: the structure is a local one.
            unsafe { GetSystemInfo(&raw mut info) };
            let bytes = if info.page_bytes.is_power_of_two() { info.page_bytes as usize } else { 4096 };
            BYTES.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// Bytes of the longest entry of the environment that is looked at.
const ENTRY_BYTES: usize = 2048;

/// Calls `visit` with each `KEY=VALUE` of the environment, as bytes. Entries that are longer than two kilobytes, or not of ASCII alone, are left
/// out.
///
/// ```
/// let mut n = 0;
/// freestone_os::process::for_each_environment(|entry| n += usize::from(entry.to_ascii_uppercase().starts_with(b"PATH=")));
/// assert!(n <= 1);
/// ```
pub fn for_each_environment(mut visit: impl FnMut(&[u8])) {
    // SAFETY: the call has no arguments.
    let block = unsafe { GetEnvironmentStringsW() };
    if block.is_null() {
        return;
    }
    let (mut entry, mut len, mut at) = ([0_u8; ENTRY_BYTES], 0, block);
    loop {
        // SAFETY: the block ends with an empty entry, and this loop ends there.
        let unit = unsafe { at.read() };
        at = at.wrapping_add(1);
        if unit != 0 {
            // What does not fit, or is no ASCII, makes the entry too long to be visited.
            match (entry.get_mut(len), u8::try_from(unit)) {
                (Some(place), Ok(byte)) if byte.is_ascii() => *place = byte,
                _ => len = ENTRY_BYTES,
            }
            len += 1;
            continue;
        }
        if len == 0 {
            break;
        }
        if let Some(whole) = entry.get(..len) {
            visit(whole);
        }
        len = 0;
    }
    // SAFETY: the block is what the system returned above, and is not used any more.
    unsafe { FreeEnvironmentStringsW(block) };
}

/// Ends the process at once, with the exit code that aborted processes have.
pub fn abort() -> ! {
    loop {
        // SAFETY: the call has no arguments.
        let this = unsafe { GetCurrentProcess() };
        // SAFETY: the process ends.
        unsafe { TerminateProcess(this, ABORTED) };
    }
}

/// Sets this thread's last error.
pub fn set_errno(errno: Errno) {
    // SAFETY: the call takes a number.
    unsafe { SetLastError(errno.0 as u32) };
}

/// This thread's last error.
#[must_use]
pub fn errno() -> Errno {
    // SAFETY: the call has no arguments.
    Errno(unsafe { GetLastError() } as i32)
}

/// This process's number.
#[must_use]
pub fn id() -> i32 {
    // SAFETY: the call has no arguments.
    unsafe { GetCurrentProcessId() as i32 }
}

/// Whether there is a process with the number `id` that this one may ask about.
///
/// ```
/// use freestone_os::process;
///
/// assert!(process::is_running(process::id()));
/// ```
#[must_use]
pub fn is_running(id: i32) -> bool {
    const QUERY_LIMITED: u32 = 0x1000;
    // SAFETY: the call takes numbers.
    let handle = unsafe { OpenProcess(QUERY_LIMITED, 0, id as u32) };
    // SAFETY: the handle was opened above, if it is one.
    !handle.is_null() && unsafe { CloseHandle(handle) } != 0
}

/// The peak of the process's resident memory in bytes; `None` if the system does not say.
///
/// ```
/// assert!(freestone_os::process::peak_resident_bytes().is_none_or(|bytes| bytes > 4096));
/// ```
#[must_use]
pub fn peak_resident_bytes() -> Option<u64> {
    let mut counters = MemoryCounters::default();
    // SAFETY: the call has no arguments.
    let this = unsafe { GetCurrentProcess() };
    // SAFETY: the structure is a local one, of as many bytes.
    let is_known = unsafe { memory_info(this, &raw mut counters, size_of::<MemoryCounters>() as u32) } != 0;
    is_known.then_some(counters.peak_working_set as u64)
}

/// An unknown command line.
pub fn command_line(_buffer: &mut [u8]) -> &[u8] {
    &[]
}

/// The system's number of the calling thread.
#[must_use]
pub fn thread_id() -> i32 {
    // SAFETY: the call has no arguments.
    unsafe { GetCurrentThreadId() as i32 }
}

/// The numbers of the two signals that are the program's to use, if there were any here.
pub const USER_SIGNALS: [c_int; 2] = [1, 2];

/// Has nothing called: no signal is served here.
pub fn handle_signal(_number: i32, _handler: extern "C" fn(c_int)) -> bool {
    false
}

/// A function that is called around a fork.
pub type ForkHandler = extern "C" fn();

/// Nothing: nothing forks.
pub fn at_fork(_before: ForkHandler, _in_parent: ForkHandler, _in_child: ForkHandler) -> bool {
    true
}
