//! Memory straight from the kernel: for text and rows that are too long for a thread's stack, and for tables that last as long as the process.
#![allow(unsafe_code)]
//!
//! # Safety
//! The mapping is new, so no other code has it; zero is a valid text, and rows are written before they are read; no code uses
//! either once it is unmapped.

use crate::kernel;
use core::mem::MaybeUninit;
use core::slice;
use freestone_base::text::FixedText;

/// Calls `write` with an empty text of up to `N` bytes; `None` if there is no memory for it. Takes no lock, and may be called in a signal handler.
///
/// ```
/// let len = freestone_os::with_long_text::<10_000, _>(|text| {
///     let _ = write!(text, "{:9999}", 1);
///     text.as_bytes().len()
/// });
/// assert_eq!(len, Some(9999));
/// ```
pub fn with_long_text<const N: usize, R>(write: impl FnOnce(&mut FixedText<N>) -> R) -> Option<R> {
    let bytes = size_of::<FixedText<N>>();
    let lent = Lent { at: kernel::map(bytes)?, bytes };
    // SAFETY: the memory is mapped, aligned to an OS page, zero, and this function's alone; a text of zeros is an empty one.
    Some(write(unsafe { &mut *lent.at.cast::<FixedText<N>>() }))
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
    const { assert!(align_of::<T>() <= 4096, "a mapping is aligned to an OS page") };
    if n == 0 {
        return Some(fill(&mut []));
    }
    let bytes = n.checked_mul(size_of::<T>())?;
    let lent = Lent { at: kernel::map(bytes)?, bytes };
    let first = lent.at.cast::<MaybeUninit<T>>();
    // SAFETY: the mapping has room for `n` rows, is aligned to an OS page, and is this function's alone; rows may be uninitialised.
    let rows = unsafe { slice::from_raw_parts_mut(first, n) };
    rows.iter_mut().for_each(|row| _ = row.write(T::default()));
    // SAFETY: every row was written just now.
    Some(fill(unsafe { slice::from_raw_parts_mut(first.cast::<T>(), n) }))
}

/// Calls `fill` with `n` words of zero in a mapping that lasts as long as the call; `None` if there is no address space for it. Only words that are written
/// get memory. Takes no lock.
///
/// ```
/// let is_set = freestone_os::with_zeros(1 << 27, |words| {
///     words[1 << 26] = 1;
///     words[1 << 26] == 1 && words[1 << 25] == 0
/// });
/// assert_eq!(is_set, Some(true));
/// ```
pub fn with_zeros<R>(n: usize, fill: impl FnOnce(&mut [u64]) -> R) -> Option<R> {
    if n == 0 {
        return Some(fill(&mut []));
    }
    let bytes = n.checked_mul(size_of::<u64>())?;
    let lent = Lent { at: kernel::map(bytes)?, bytes };
    // SAFETY: the mapping has room for `n` words, is aligned to an OS page, reads as zero, and is this function's alone.
    Some(fill(unsafe { slice::from_raw_parts_mut(lent.at.cast::<u64>(), n) }))
}

/// A mapping that lasts as long as a call, also if that panics.
struct Lent {
    at: *mut u8,
    bytes: usize,
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: the mapping was made for this call alone, and the references to it are gone.
        unsafe { kernel::unmap(self.at, self.bytes) };
    }
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
    kernel::map(bytes)
}

#[cfg(all(test, door = "linux", not(miri)))]
mod tests;
