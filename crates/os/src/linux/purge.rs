//! Giving memory back, one range or many with a call, and finding out what the kernel does with it.
#![allow(unsafe_code)]
//!
//! For `Os::purge`, `Os::purge_first` and `Os::purge_zeroes`. Both questions are put to the kernel with an OS page of the library's own.
//!
//! # Safety
//! As for [`Os::purge`](crate::Os::purge): the contents of what is purged are not needed.

use crate::linux::answer::Answer;
use crate::{Errno, MemoryRange, process};
use core::ffi::{c_int, c_long};
use core::ptr;
use core::slice;
use freestone_base::sync::{AtomicUsize, Ordering};
use rustix::mm::{Advice, madvise};

/// Names the calling thread to `process_madvise`, and so the memory of its process, without a descriptor of it (Linux 6.15). No descriptor has this number.
const PIDFD_SELF_THREAD: c_int = -10_000;

/// Whether purged memory reads as zero: under some emulators `madvise` succeeds and does nothing.
static ZEROES: Answer = Answer::new();

/// Whether the kernel purges several ranges with one call.
static TAKES_MANY: Answer = Answer::new();

/// The largest OS page that a kernel has.
const OS_PAGE_MOST: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 65536 };

/// What purging is tried on: OS pages of the library's own, because what is purged may have guards, and where address space is used up nothing can be
/// mapped.
#[cfg_attr(target_arch = "x86_64", repr(align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(align(65536)))]
struct Probe([AtomicUsize; OS_PAGE_MOST / size_of::<usize>()]);

static PROBE: Probe = Probe([const { AtomicUsize::new(0) }; OS_PAGE_MOST / size_of::<usize>()]);

impl Probe {
    /// One OS page of it.
    fn range(&self) -> Option<MemoryRange> {
        let bytes = process::os_page_bytes();
        (bytes <= OS_PAGE_MOST).then(|| MemoryRange { start: ptr::from_ref(self).cast_mut().cast(), bytes })
    }
}

/// Whether purged memory reads as zero; not before [`one`] was called and the kernel answered.
pub(crate) fn zeroes() -> bool {
    ZEROES.get() == Some(true)
}

/// Purges a range.
///
/// # Safety
/// - The range is committed and made of whole OS pages, and its contents are not needed.
pub(crate) unsafe fn one(range: MemoryRange) -> Result<(), Errno> {
    if ZEROES.get().is_none() {
        try_one(&ZEROES);
    }
    // SAFETY: the contents of the range are not needed (this function's contract).
    unsafe { madvise(range.start.cast(), range.bytes, Advice::LinuxDontNeed) }.map_err(Errno::from)
}

/// Purges the first ranges, as many as the kernel takes with one call. Returns how many; none only if it refused the first.
///
/// # Safety
/// - As for [`one`], for each range.
pub(crate) unsafe fn first(ranges: &[MemoryRange]) -> usize {
    let Some((&first, others)) = ranges.split_first() else { return 0 };
    let at_once = !others.is_empty() && ZEROES.get().is_some() && TAKES_MANY.get().unwrap_or_else(try_many);
    // SAFETY: the contents of the ranges are not needed (this function's contract).
    let n = if at_once { unsafe { many(ranges) } } else { 0 };
    // SAFETY: as above.
    if n > 0 || unsafe { one(first) }.is_err() {
        return n;
    }
    if at_once {
        // A filter that came meanwhile refuses the call.
        TAKES_MANY.set(false);
    }
    1
}

/// Purges ranges with one call. Returns how many the kernel took, from the first on. The program's `errno` stays as it is.
///
/// # Safety
/// - As for [`one`], for each range.
unsafe fn many(ranges: &[MemoryRange]) -> usize {
    let (errno, no_flags) = (process::errno(), 0_usize);
    // SAFETY: ranges have the layout of `struct iovec`, the kernel only reads them, and their contents are not needed (this function's contract).
    let taken: c_long = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            PIDFD_SELF_THREAD,
            ranges.as_ptr(),
            ranges.len(),
            libc::MADV_DONTNEED,
            no_flags,
        )
    };
    process::set_errno(errno);
    let mut left = usize::try_from(taken).unwrap_or(0);
    // Only whole ranges count.
    ranges
        .iter()
        .take_while(|range| match left.checked_sub(range.bytes) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .count()
}

/// Finds out whether the kernel purges several ranges with one call. Miri has no such call.
#[cold]
fn try_many() -> bool {
    let takes = !cfg!(miri)
        && PROBE.range().is_some_and(|probe| {
            // SAFETY: the page has nothing but what threads write that try purging, who expect that it vanishes.
            unsafe { many(slice::from_ref(&probe)) == 1 }
        });
    TAKES_MANY.set(takes);
    takes
}

/// Finds out whether purged memory reads as zero. If another thread tries that at the same moment, or the kernel refuses, the next purge tries again.
#[cold]
fn try_one(zeroes: &Answer) {
    let Some(probe) = PROBE.range() else { return };
    let [word, ..] = &PROBE.0;
    // No other thread that is here writes this address.
    let mark = ptr::from_ref(&probe).addr();
    word.store(mark, Ordering::Relaxed);
    // SAFETY: the page has nothing but what threads in this function write, who expect that it vanishes.
    if unsafe { madvise(probe.start.cast(), probe.bytes, Advice::LinuxDontNeed) }.is_ok() {
        match word.load(Ordering::Relaxed) {
            0 => zeroes.set(true),
            left if left == mark => zeroes.set(false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
