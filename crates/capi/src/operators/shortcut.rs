//! [`Shortcut`]: the hot paths, which can be closed.
#![allow(unsafe_code)]
//!
//! The operators may have to call functions that the program brings along. Whether they do is known when the library is loaded, and must cost
//! nothing afterwards. Each hot path compares with a bound anyway, a size or a class: here the bound is a variable. A closed shortcut has
//! bounds of 0, which nothing is below, so the path is left by the branch that large blocks take.
//!
//! # Safety
//! Only [`Shortcut::new`] and [`Shortcut::close`] set the bounds: they are what the functions of `door` allow at most, or 0. They are no atomics, for
//! the compiler to compare with them in place; nothing reads them while they are written (the contract of `close`).

use core::cell::UnsafeCell;
use heap::door::{self, AtHand, Claim};

/// See the module header.
pub(super) struct Shortcut {
    /// What sizes have to be below.
    sizes: UnsafeCell<usize>,
    /// What classes have to be below.
    classes: UnsafeCell<usize>,
}

// SAFETY: nothing reads the bounds while they are written (the contract of `close`).
unsafe impl Sync for Shortcut {}

impl Shortcut {
    /// Open.
    pub(super) const fn new() -> Self {
        Self { sizes: UnsafeCell::new(door::SMALL_BOUND), classes: UnsafeCell::new(door::CLASS_BOUND) }
    }

    /// Closes it for good.
    ///
    /// # Safety
    /// - No other thread uses the shortcut meanwhile.
    pub(super) unsafe fn close(&self) {
        // A compiler that sees that a bound has two values only makes a flag of it, for the hot paths to test in addition.
        let bound = core::hint::black_box(0);
        // SAFETY: no other thread reads or writes the bounds meanwhile (this function's contract).
        unsafe { *self.sizes.get() = bound };
        // SAFETY: as above.
        unsafe { *self.classes.get() = bound };
    }

    /// Whether it is open.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        // SAFETY: nothing writes the bound meanwhile (module header).
        unsafe { *self.sizes.get() != 0 }
    }

    /// Allocates a small block that this thread has at hand, aligned to 16. Null if it has none, if `size` is no small size, or if the shortcut
    /// is closed.
    #[inline(always)]
    pub(super) fn allocate(&self, size: usize) -> *mut u8 {
        // SAFETY: nothing writes the bound meanwhile (module header).
        let bound = unsafe { *self.sizes.get() };
        // SAFETY: the bound is `SMALL_BOUND` or 0 (module header).
        unsafe { door::allocate_below(size, bound) }
    }

    /// Frees a small block, of which the form knows what `claim` says. Any other block stays as it is, and every block if the shortcut is closed: then
    /// `rest` is called, once.
    ///
    /// # Safety
    /// - As for [`door::free`].
    #[inline(always)]
    pub(super) unsafe fn free(&self, block: *mut u8, claim: Claim, rest: impl FnOnce(Claim)) {
        // SAFETY: nothing writes the bound meanwhile (module header).
        let bound = unsafe { *self.classes.get() };
        // SAFETY: the bound is `CLASS_BOUND` or 0; this function's contract is that of `free_at_hand`.
        match unsafe { door::free_at_hand(block, bound) } {
            AtHand::Freed => {}
            // SAFETY: the bound is `CLASS_BOUND`; this function's contract is that of `InPage::free`.
            AtHand::Not(in_page) if self.is_open() => unsafe { in_page.free(block, claim) },
            AtHand::Not(_) | AtHand::Other => rest(claim),
        }
    }
}
