//! Windows 8 and later: reserving address space, committing and decommitting memory in it, and waiting for a word.
#![allow(unsafe_code)]
//!
//! | state | how |
//! |---|---|
//! | reserved | `VirtualAlloc` with `MEM_RESERVE`: all of an address range at once, when it is proposed |
//! | ready, dirty | `MEM_COMMIT`, which counts against the system's limit, whether the memory is written or not |
//! | reserved again | `VirtualFree` with `MEM_DECOMMIT` |
//! | clean | `MEM_RESET`, and `VirtualUnlock` of what was never locked, which takes the pages out of the working set at once |
//! | guarded | `VirtualProtect` with `PAGE_NOACCESS` |
//!
//! Purged memory may keep its contents, so [`Os::purge_zeroes`] is `false`. It stays committed: to decommit it and to commit it again would make it zero,
//! but the second call may fail, and then memory that the heap takes for clean faults.
//!
//! # Safety
//! The functions of the system are declared as its documentation has them. Only memory inside a range that was reserved here is committed,
//! decommitted, reset or protected, by the contract of [`Os`].

use crate::{Errno, GuardBy, Os, Prefault};
use core::ffi::c_void;
use core::ptr;
use freestone_base::ptr as address;
use freestone_base::sync::AtomicU32;

pub mod clock;
pub mod closable;
mod exit_hook;
pub mod process;
pub(crate) mod threads;
pub use exit_hook::ExitHook;

/// The system that this process runs on.
///
/// ```
/// use freestone_os::{Os, System};
///
/// let at = System.propose_range(1 << 20, 0).expect("1 MiB of address space");
/// // SAFETY: a part of a range that was proposed to this code alone.
/// unsafe {
///     System.commit(at, 1 << 16, false).expect("64 KiB of memory");
///     at.write(1);
///     System.purge(at, 1 << 16).expect("the part is committed");
///     System.release(at, 1 << 16).expect("the part is committed");
/// }
/// ```
#[derive(Debug)]
pub struct Windows;

/// Size of the address range. Reserved address space takes no memory of Windows 8.1 and later; wine keeps a byte for each OS page of it.
const RANGE_BYTES: usize = 1 << 38;

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_DECOMMIT: u32 = 0x4000;
const MEM_RELEASE: u32 = 0x8000;
const MEM_RESET: u32 = 0x8_0000;
const PAGE_NOACCESS: u32 = 0x01;
const PAGE_READWRITE: u32 = 0x04;
const INFINITE: u32 = u32::MAX;
/// The handle's number of standard error.
const STD_ERROR_HANDLE: u32 = -12_i32 as u32;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn VirtualAlloc(at: *mut c_void, bytes: usize, kind: u32, access: u32) -> *mut c_void;
    fn VirtualFree(at: *mut c_void, bytes: usize, kind: u32) -> i32;
    fn VirtualProtect(at: *mut c_void, bytes: usize, access: u32, before: *mut u32) -> i32;
    fn VirtualUnlock(at: *mut c_void, bytes: usize) -> i32;
    fn GetStdHandle(number: u32) -> *mut c_void;
    fn WriteFile(file: *mut c_void, bytes: *const u8, n: u32, written: *mut u32, overlapped: *mut c_void) -> i32;
    fn GetCurrentThreadId() -> u32;
}

#[link(name = "synchronization")]
unsafe extern "system" {
    fn WaitOnAddress(word: *const c_void, expected: *const c_void, bytes: usize, ms: u32) -> i32;
    fn WakeByAddressSingle(word: *const c_void);
    fn WakeByAddressAll(word: *const c_void);
}

/// Success of a call that returns whether it succeeded.
fn done(result: i32) -> Result<(), Errno> {
    if result != 0 { Ok(()) } else { Err(Errno::NOMEM) }
}

/// Changes the access rights of memory that is committed.
///
/// # Safety
/// - The range is committed, and no code uses it against the new rights.
unsafe fn protect(at: *mut u8, bytes: usize, by: GuardBy, access: u32) -> Result<(), Errno> {
    if by == GuardBy::Marker {
        return Err(Errno::INVAL);
    }
    let mut before = 0;
    // SAFETY: the range is committed, and its rights may change (this function's contract).
    done(unsafe { VirtualProtect(at.cast(), bytes, access, &raw mut before) })
}

// SAFETY: `commit` commits memory that the system zeroes, where this process reserved address space for the heap alone.
unsafe impl Os for Windows {
    fn os_page_bytes(&self) -> usize {
        process::os_page_bytes()
    }

    fn range_bytes_wanted(&self) -> usize {
        RANGE_BYTES
    }

    fn propose_range(&self, bytes: usize, attempt: u32) -> Option<*mut u8> {
        if attempt > 0 {
            return None;
        }
        // SAFETY: the system places the reservation where nothing is, at a multiple of 64 KiB.
        let at = unsafe { VirtualAlloc(ptr::null_mut(), bytes, MEM_RESERVE, PAGE_NOACCESS) };
        if at.is_null() {
            return None;
        }
        address::expose(at);
        Some(at.cast())
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, _lazily: bool) -> Result<(), Errno> {
        // SAFETY: the range is a part of one that `propose_range` reserved.
        let got = unsafe { VirtualAlloc(at.cast(), bytes, MEM_COMMIT, PAGE_READWRITE) };
        if got.is_null() { Err(Errno::NOMEM) } else { Ok(()) }
    }

    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: no code uses the range, which stays reserved.
        done(unsafe { VirtualFree(at.cast(), bytes, MEM_DECOMMIT) })
    }

    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the contents of the range are not needed.
        unsafe { self.purge_lazily(at, bytes) }?;
        // It fails, because the range is not locked, and takes the pages out of the working set all the same.
        // SAFETY: neither contents nor access rights change.
        unsafe { VirtualUnlock(at.cast(), bytes) };
        Ok(())
    }

    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the contents of the range, which is committed, are not needed.
        let got = unsafe { VirtualAlloc(at.cast(), bytes, MEM_RESET, PAGE_READWRITE) };
        if got.is_null() { Err(Errno::INVAL) } else { Ok(()) }
    }

    fn purge_zeroes(&self) -> bool {
        false
    }

    unsafe fn prefault(&self, at: *mut u8, bytes: usize, how: Prefault) -> Result<(), Errno> {
        if how != Prefault::Touch {
            return Err(Errno::INVAL);
        }
        for offset in (0..bytes).step_by(process::os_page_bytes()) {
            // SAFETY: the byte is in the range, which is ready: no code uses it, and it reads as zero already.
            unsafe { at.wrapping_add(offset).write_volatile(0) };
        }
        Ok(())
    }

    unsafe fn guard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        // SAFETY: no code uses the range, which is committed.
        unsafe { protect(at, bytes, by, PAGE_NOACCESS) }
    }

    unsafe fn unguard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        // SAFETY: the range is committed, and becomes accessible.
        unsafe { protect(at, bytes, by, PAGE_READWRITE) }
    }

    fn random(&self) -> u64 {
        random()
    }

    fn now_ms(&self) -> u64 {
        clock::monotonic_ms()
    }
}

/// A random number: of the system, or, if it has none, made from clocks and addresses.
fn random() -> u64 {
    // The generator of the system.
    #[link(name = "advapi32")]
    unsafe extern "system" {
        #[link_name = "SystemFunction036"]
        fn random_bytes(bytes: *mut c_void, n: u32) -> u8;
    }
    let mut bytes = [0_u8; 8];
    let here = ptr::from_ref(&bytes).addr() as u64;
    // SAFETY: there is room for as many bytes.
    if unsafe { random_bytes(bytes.as_mut_ptr().cast(), 8) } != 0 {
        return u64::from_ne_bytes(bytes);
    }
    (here ^ clock::since_1970_ns()).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ clock::monotonic_us()
}

/// Memory of `bytes` that reads as zero.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    // SAFETY: the system places the memory where nothing is.
    let at = unsafe { VirtualAlloc(ptr::null_mut(), bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
    if at.is_null() {
        return None;
    }
    address::expose(at);
    Some(at.cast())
}

/// Frees what [`map`] returned.
///
/// # Safety
/// - `map` returned `at`, and no code uses the memory any more.
pub(crate) unsafe fn unmap(at: *mut u8, _bytes: usize) {
    // SAFETY: the reservation is freed as it was made (this function's contract).
    unsafe { VirtualFree(at.cast(), 0, MEM_RELEASE) };
}

/// Writes text to standard error with one call. Errors are ignored.
pub(crate) fn write_error(text: &[u8]) {
    let mut written = 0;
    let n = u32::try_from(text.len()).unwrap_or(u32::MAX);
    // SAFETY: the number is that of standard error.
    let file = unsafe { GetStdHandle(STD_ERROR_HANDLE) };
    // SAFETY: the text has `n` bytes; a handle that is none makes the call fail.
    unsafe { WriteFile(file, text.as_ptr(), n, &raw mut written, ptr::null_mut()) };
}

/// Returns when `word` may have changed from `expected`, or after `ms` milliseconds if that is given; may return early.
pub(crate) fn wait(word: &AtomicU32, expected: u32, ms: Option<u32>) {
    let errno = process::errno();
    // SAFETY: both are words of four bytes, which live while the call lasts.
    unsafe { WaitOnAddress(ptr::from_ref(word).cast(), (&raw const expected).cast(), 4, ms.unwrap_or(INFINITE)) };
    process::set_errno(errno);
}

/// Wakes threads that wait for `word` to change: one, or all.
pub(crate) fn wake(word: &AtomicU32, all: bool) {
    let word = ptr::from_ref(word).cast();
    if all {
        // SAFETY: the address is not accessed.
        unsafe { WakeByAddressAll(word) };
    } else {
        // SAFETY: as above.
        unsafe { WakeByAddressSingle(word) };
    }
}

/// Wakes one thread that waits for the word at this address, whether the word is still there or not.
pub(crate) fn wake_at(word: *const AtomicU32) {
    // SAFETY: the address is not accessed.
    unsafe { WakeByAddressSingle(word.cast()) };
}

/// A number that no other living thread has.
pub(crate) fn this_thread() -> usize {
    // SAFETY: the call has no arguments.
    unsafe { GetCurrentThreadId() as usize }
}
