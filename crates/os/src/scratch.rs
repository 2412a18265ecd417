//! Memory straight from the kernel: for text and rows that are too long for a thread's stack, and for tables that last as long as the process.
#![allow(unsafe_code)]
//!
//! # Safety
//! The mapping is new, so no other code has it; zero is a valid text, and rows are written before they are read; no code uses
//! either once it is unmapped.

use crate::kernel;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use core::{ptr, slice};
use freestone_base::text::FixedText;

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
    let bytes = size_of::<FixedText<N>>();
    let at = kernel::map(bytes)?;
    // SAFETY: the memory is mapped, aligned to an OS page, zero, and this function's alone; a text of zeros is an empty one.
    let result = write(unsafe { &mut *at.cast::<FixedText<N>>() });
    // SAFETY: the mapping was made above, and the reference to it is gone.
    unsafe { kernel::unmap(at, bytes) };
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
    let bytes = n.checked_mul(size_of::<T>())?;
    let at = kernel::map(bytes)?;
    let first = at.cast::<MaybeUninit<T>>();
    // SAFETY: the mapping has room for `n` rows, is aligned to an OS page, and is this function's alone; rows may be uninitialised.
    let rows = unsafe { slice::from_raw_parts_mut(first, n) };
    rows.iter_mut().for_each(|row| _ = row.write(T::default()));
    // SAFETY: every row was written just now.
    let result = fill(unsafe { slice::from_raw_parts_mut(first.cast::<T>(), n) });
    // SAFETY: the mapping was made above, and the reference to it is gone.
    unsafe { kernel::unmap(at, bytes) };
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
    kernel::map(bytes)
}

/// `N` words that are zero at first, and mapped when they are first wanted.
pub(crate) struct LateWords<const N: usize>(AtomicPtr<[AtomicU64; N]>);

impl<const N: usize> LateWords<N> {
    /// They are not mapped.
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The words, if they are mapped.
    pub(crate) fn get(&self) -> Option<&[AtomicU64; N]> {
        // SAFETY: null, or a mapping as long as the words, aligned to an OS page, which was zero at first and is never unmapped.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The words, mapped if they are not yet; `None` without address space for them.
    pub(crate) fn get_mapped(&self) -> Option<&[AtomicU64; N]> {
        if self.get().is_none() {
            let mapped = map_for_good(size_of::<[AtomicU64; N]>())?.cast();
            // Of two threads that map them at once, one has mapped for nothing.
            let _ = self.0.compare_exchange(ptr::null_mut(), mapped, Ordering::Release, Ordering::Relaxed);
        }
        self.get()
    }
}
