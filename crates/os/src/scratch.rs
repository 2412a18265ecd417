//! Memory straight from the kernel: for text and rows that are too long for a thread's stack, and for tables that last as long as the process.
#![allow(unsafe_code)]
//!
//! # Safety
//! The mapping is new, so no other code has it; zero is a valid text, and rows are written before they are read; no code uses
//! either once it is unmapped.

use core::mem::MaybeUninit;
use core::{ptr, slice};
use freestone_base::ptr as address;
use freestone_base::text::FixedText;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Calls `write` with an empty text of up to `N` bytes; `None` if there is no memory for it. Takes no lock, and may be called in a signal handler.
///
/// ```
/// use core::fmt::Write;
///
/// let len = freestone_os::with_long_text::<10_000, _>(|text| {
///     let _ = write!(text, "{:9999}", 1);
///     text.as_bytes().len()
/// });
/// assert_eq!(len, Some(9999));
/// ```
pub fn with_long_text<const N: usize, R>(write: impl FnOnce(&mut FixedText<N>) -> R) -> Option<R> {
    let (bytes, access) = (size_of::<FixedText<N>>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the memory is mapped, aligned to an OS page, zero, and this function's alone; a text of zeros is an empty one.
    let result = write(unsafe { &mut *at.cast::<FixedText<N>>() });
    // SAFETY: the mapping was made above, and the reference to it is gone.
    let _ = unsafe { munmap(at, bytes) };
    Some(result)
}

/// Calls `fill` with `n` rows of default values in a mapping that lasts as long as the call; `None` if there is no memory for it. Takes no lock.
///
/// ```
/// let sum = freestone_os::with_rows(1000, |rows: &mut [u64]| {
///     rows.iter_mut().zip(1..).for_each(|(row, number)| *row = number);
///     rows.iter().sum::<u64>()
/// });
/// assert_eq!(sum, Some(500_500));
/// ```
pub fn with_rows<T: Copy + Default, R>(n: usize, fill: impl FnOnce(&mut [T]) -> R) -> Option<R> {
    if n == 0 {
        return Some(fill(&mut []));
    }
    let (bytes, access) = (n.checked_mul(size_of::<T>())?, ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }.ok()?;
    let first = at.cast::<MaybeUninit<T>>();
    // SAFETY: the mapping has room for `n` rows, is aligned to an OS page, and is this function's alone; rows may be uninitialised.
    let rows = unsafe { slice::from_raw_parts_mut(first, n) };
    rows.iter_mut().for_each(|row| _ = row.write(T::default()));
    // SAFETY: every row was written just now.
    let result = fill(unsafe { slice::from_raw_parts_mut(first.cast::<T>(), n) });
    // SAFETY: the mapping was made above, and the reference to it is gone.
    let _ = unsafe { munmap(at, bytes) };
    Some(result)
}

/// Maps `bytes` that read as zero, where the kernel likes, for as long as the process lives; `None` without address space for them. Only what is
/// written gets memory.
///
/// ```
/// let table = freestone_os::map_for_good(1 << 20).expect("a mebibyte");
/// assert!(table.addr() % 4096 == 0);
/// ```
#[must_use]
pub fn map_for_good(bytes: usize) -> Option<*mut u8> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags) }.ok()?;
    address::expose(at);
    Some(at.cast())
}
