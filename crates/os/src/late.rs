//! Tables that are mapped when they are first wanted, and last as long as the process.
#![allow(unsafe_code)]
//!
//! # Safety
//! The mapping is as long as the table, aligned to an OS page, zero at first (which [`Zeroed`] tables may be), and never unmapped; its address is published
//! after it is made.

use crate::scratch::map_for_good;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

/// What may begin as zero bytes.
///
/// # Safety
/// Zero bytes are a value of the type.
pub unsafe trait Zeroed {}

// SAFETY: zero is a number.
unsafe impl Zeroed for AtomicU8 {}
// SAFETY: zero is a number.
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: it has an atomic of the kind above, and nothing else.
#[cfg(shuttle)]
unsafe impl Zeroed for freestone_base::sync::AtomicU8 {}
// SAFETY: each of its values may be zero bytes.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

/// A table that is zero at first, and mapped when it is first wanted: a static takes 8 bytes of a process that never wants it.
///
/// ```
/// use core::sync::atomic::{AtomicU64, Ordering};
/// use freestone_os::Late;
///
/// static COUNTS: Late<[AtomicU64; 1000]> = Late::new();
///
/// assert!(COUNTS.get().is_none());
/// let counts = COUNTS.get_mapped().expect("8,000 bytes");
/// assert_eq!(counts[999].fetch_add(1, Ordering::Relaxed), 0);
/// ```
#[derive(Debug)]
pub struct Late<T>(AtomicPtr<T>);

impl<T: Zeroed + Sync> Late<T> {
    /// It is not mapped.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Where the table's address is, for a tracer; 0 is there before it is mapped.
    ///
    /// ```
    /// use freestone_os::Late;
    ///
    /// static NUMBERS: Late<[core::sync::atomic::AtomicU8; 10]> = Late::new();
    ///
    /// assert!(!NUMBERS.place().is_null());
    /// ```
    #[must_use]
    pub fn place(&self) -> *const usize {
        self.0.as_ptr().cast_const().cast()
    }

    /// The table, if it is mapped.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or a mapping of the table (module header).
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The table, mapped if it is not yet; `None` without address space for it. Takes no lock.
    pub fn get_mapped(&self) -> Option<&T> {
        if self.get().is_none() {
            let mapped = map_for_good(size_of::<T>())?.cast();
            // Of two threads that map it at once, one has mapped for nothing.
            let _ = self.0.compare_exchange(ptr::null_mut(), mapped, Ordering::Release, Ordering::Relaxed);
        }
        self.get()
    }
}

impl<T: Zeroed + Sync> Default for Late<T> {
    fn default() -> Self {
        Self::new()
    }
}
