//! [`Shortcut`]: the hot paths, for callers that may have to go another way.
#![allow(unsafe_code)]
//!
//! The C++ operators of a process may have to call functions that the program brings along. Whether they do is known when the library is loaded,
//! and must cost nothing afterwards. Each hot path compares with a bound anyway, a size or a class: here the bound is a variable. A closed
//! shortcut has bounds of 0, which nothing is below, so the path is left by the branch that large blocks take.
//!
//! # Safety
//! Only [`Shortcut::new`] and [`Shortcut::close`] set the bounds: what is below one is a small size, or a size class. They are no atomics, for the
//! compiler to compare with them in place; nothing reads them while they are written (the contract of `close`).

use crate::api::free::free_own;
use crate::size_class::{N_CLASSES, SMALL_MAX, class_of};
use crate::thread::current;
use core::cell::UnsafeCell;
use core::ptr;

/// See the module header.
#[derive(Debug)]
pub struct Shortcut {
    /// What sizes have to be below.
    sizes: UnsafeCell<usize>,
    /// What classes have to be below.
    classes: UnsafeCell<usize>,
}

// SAFETY: nothing reads the bounds while they are written (the contract of `close`).
unsafe impl Sync for Shortcut {}

impl Shortcut {
    /// Open.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a shortcut is a static")]
    pub const fn new() -> Self {
        Self { sizes: UnsafeCell::new(SMALL_MAX + 1), classes: UnsafeCell::new(N_CLASSES) }
    }

    /// Closes it for good.
    ///
    /// # Safety
    /// - No other thread uses the shortcut meanwhile.
    pub unsafe fn close(&self) {
        // SAFETY: no other thread reads or writes the bound meanwhile (this function's contract).
        unsafe { *self.sizes.get() = 0 };
        // SAFETY: as above.
        unsafe { *self.classes.get() = 0 };
    }

    /// What sizes have to be below.
    #[inline(always)]
    fn sizes(&self) -> usize {
        // SAFETY: nothing writes the bound meanwhile (module header).
        unsafe { *self.sizes.get() }
    }

    /// Whether it is open.
    #[inline(always)]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.sizes() != 0
    }

    /// Allocates a small block that this thread has at hand, aligned to 16. Null if it has none, if `size` is no small size, or if the shortcut
    /// is closed.
    #[inline(always)]
    #[must_use]
    pub fn allocate(&self, size: usize) -> *mut u8 {
        if size >= self.sizes() {
            return ptr::null_mut();
        }
        // SAFETY: the size is below a bound that is at most `SMALL_MAX + 1`.
        unsafe { core::hint::assert_unchecked(size <= SMALL_MAX) };
        current::get().pop(class_of(size))
    }

    /// Frees a small block of this thread. `false` of any other block, or if the shortcut is closed: the block stays as it is.
    ///
    /// # Safety
    /// - As for [`free`](super::free::free).
    #[inline(always)]
    #[must_use]
    pub unsafe fn free(&self, block: *mut u8) -> bool {
        // SAFETY: nothing writes the bound meanwhile (module header).
        let bound = unsafe { *self.classes.get() };
        // SAFETY: this function's contract is that of `free_own`; the bound is `N_CLASSES` or 0.
        unsafe { free_own(block, bound) }
    }
}

#[cfg(test)]
mod tests;
