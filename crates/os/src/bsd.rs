//! macOS, iOS and FreeBSD, through their C libraries.
#![allow(unsafe_code)]
//!
//! Written from the documentation and headers, and compiled; never run.
//!
//! | | macOS, iOS | FreeBSD |
//! |---|---|---|
//! | commit | `mmap` at an address as a hint, and unmapped again if it is elsewhere | `mmap` with `MAP_FIXED \| MAP_EXCL`, and as on macOS if that fails |
//! | purge | `madvise(MADV_FREE_REUSABLE)`: the memory no longer counts for the process, and may keep its contents | `madvise(MADV_FREE)` |
//! | wait | `__ulock_wait`, `__ulock_wake` | `_umtx_op` |
//!
//! # Safety
//! Every mapping is made where nothing else is mapped, so committing cannot replace memory of the program. The other calls change memory that was
//! committed here, by the contract of [`Os`].

use crate::{Errno, GuardBy, Os, Prefault, clock, process};
use core::ptr;
use freestone_base::{align, ptr as address};

pub(crate) mod process_facts;
pub(crate) mod threads;
#[cfg(not(shuttle))]
mod waiting;
#[cfg(not(shuttle))]
pub(crate) use waiting::{this_thread, wait, wake};

/// The kernel this process runs on.
#[derive(Debug)]
pub struct Bsd;

/// Size of the address range: nothing in it is mapped before it is needed. An iOS process has 64 GiB or less.
const RANGE_BYTES: usize = if cfg!(target_os = "ios") { 1 << 35 } else { 1 << 42 };

/// Ranges that are proposed before a smaller one is tried.
const ATTEMPTS: u32 = 2;

/// What `mmap` maps: private memory of zeros.
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANON;

/// What makes the kernel refuse a range in which something is mapped, where it can.
#[cfg(target_os = "freebsd")]
const EXACTLY: i32 = libc::MAP_FIXED | libc::MAP_EXCL;
#[cfg(not(target_os = "freebsd"))]
const EXACTLY: i32 = 0;

#[cfg(target_vendor = "apple")]
const GIVE_BACK: i32 = libc::MADV_FREE_REUSABLE;
#[cfg(target_os = "freebsd")]
const GIVE_BACK: i32 = libc::MADV_FREE;

/// Result of a call that returns 0 for success, and otherwise sets `errno`, which is left as it was before.
fn keeping_errno(call: impl FnOnce() -> i32) -> Result<(), Errno> {
    let before = process::errno();
    let result = call();
    let errno = process::errno();
    process::set_errno(before);
    if result == 0 { Ok(()) } else { Err(errno) }
}

/// Maps memory at `at`, if that is not null, or anywhere.
fn map_at(at: *mut u8, bytes: usize, access: i32, flags: i32) -> Result<*mut u8, Errno> {
    let mut got = ptr::null_mut();
    keeping_errno(|| {
        // SAFETY: the flags make the kernel place the new mapping where nothing is mapped, or refuse.
        got = unsafe { libc::mmap(at.cast(), bytes, access, PRIVATE | flags, -1, 0) };
        if got == libc::MAP_FAILED { -1 } else { 0 }
    })?;
    address::expose(got);
    Ok(got.cast())
}

// SAFETY: `commit` maps anonymous private memory, which the kernel zeroes, exactly where it was asked to.
unsafe impl Os for Bsd {
    fn os_page_bytes(&self) -> usize {
        process::os_page_bytes()
    }

    fn range_bytes_wanted(&self) -> usize {
        RANGE_BYTES
    }

    fn propose_range(&self, bytes: usize, attempt: u32) -> Option<*mut u8> {
        if attempt >= ATTEMPTS {
            return None;
        }
        // The kernel finds unused address space, which is given up again.
        let gap_bytes = bytes.checked_add(freestone_base::units::PAGE_BYTES)?;
        let got = map_at(ptr::null_mut(), gap_bytes, libc::PROT_NONE, 0).ok()?;
        // SAFETY: the mapping was made above, and no other code has its address.
        unsafe { libc::munmap(got.cast(), gap_bytes) };
        Some(address::from_exposed(align::up(got.addr(), freestone_base::units::PAGE_BYTES)))
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, _lazily: bool) -> Result<(), Errno> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let mut got = map_at(at, bytes, access, EXACTLY);
        if EXACTLY != 0 && got.is_err() {
            // With `MAP_EXCL` the kernel has no error of its own for a range in which something is mapped: it says `ENOMEM` of that, too. With the address as a
            // hint it finds another place then.
            got = map_at(at, bytes, access, 0);
        }
        let got = got?;
        if got == at {
            return Ok(());
        }
        // SAFETY: the call above made this mapping, and no other code has its address.
        unsafe { libc::munmap(got.cast(), bytes) };
        Err(Errno::EXIST)
    }

    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: no code uses the range any more.
        keeping_errno(|| unsafe { libc::munmap(at.cast(), bytes) })
    }

    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the contents of the range are not needed.
        keeping_errno(|| unsafe { libc::madvise(at.cast(), bytes, GIVE_BACK) })
    }

    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the contents of the range are not needed.
        keeping_errno(|| unsafe { libc::madvise(at.cast(), bytes, libc::MADV_FREE) })
    }

    fn purge_zeroes(&self) -> bool {
        false
    }

    unsafe fn prefault(&self, at: *mut u8, bytes: usize, how: Prefault) -> Result<(), Errno> {
        if how == Prefault::Populate {
            return Err(Errno::INVAL);
        }
        if how == Prefault::WillNeed {
            // SAFETY: the advice changes neither contents nor access rights.
            return keeping_errno(|| unsafe { libc::madvise(at.cast(), bytes, libc::MADV_WILLNEED) });
        }
        for offset in (0..bytes).step_by(process::os_page_bytes()) {
            // SAFETY: the byte is in the range, which is ready: no code uses it, and it reads as zero already.
            unsafe { at.wrapping_add(offset).write_volatile(0) };
        }
        Ok(())
    }

    unsafe fn guard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        if by == GuardBy::Marker {
            return Err(Errno::INVAL);
        }
        // SAFETY: no code uses the range, which is committed.
        keeping_errno(|| unsafe { libc::mprotect(at.cast(), bytes, libc::PROT_NONE) })
    }

    unsafe fn unguard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        if by == GuardBy::Marker {
            return Err(Errno::INVAL);
        }
        // SAFETY: the range is committed, and becomes accessible.
        keeping_errno(|| unsafe { libc::mprotect(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) })
    }

    fn is_resident(&self, at: *mut u8) -> bool {
        let mut answer = 0;
        // SAFETY: the call is about one OS page, for which it writes one byte of `answer`; it takes any address.
        let asked = keeping_errno(|| unsafe { libc::mincore(at.cast(), 1, &raw mut answer) });
        asked.is_ok() && answer & 1 == 1
    }

    fn random(&self) -> u64 {
        let mut bytes = [0_u8; 8];
        // SAFETY: there is room for as many bytes.
        unsafe { libc::arc4random_buf(bytes.as_mut_ptr().cast(), bytes.len()) };
        u64::from_ne_bytes(bytes)
    }

    fn now_ms(&self) -> u64 {
        clock::monotonic_us() / 1000
    }
}

/// Maps `bytes` that read as zero, where the kernel likes. Only what is written gets memory.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    map_at(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, 0).ok()
}

/// Unmaps what [`map`] mapped.
///
/// # Safety
/// - `map` returned `at` for as many bytes, and no code uses the memory any more.
pub(crate) unsafe fn unmap(at: *mut u8, bytes: usize) {
    // SAFETY: the range is one mapping that no code uses (this function's contract).
    let _ = keeping_errno(|| unsafe { libc::munmap(at.cast(), bytes) });
}

/// Writes text to standard error with one call. Errors are ignored.
pub(crate) fn write_error(text: &[u8]) {
    let _ = keeping_errno(|| {
        // SAFETY: the call reads the text; a descriptor that is closed makes it fail.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        0
    });
}
