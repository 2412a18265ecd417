//! `operator delete`.
#![allow(unsafe_code)]
//!
//! Each form takes the hot path of `free`. Where the shortcut is closed, a form calls the one that the standard says ([`bindings`]).
//!
//! # Safety
//! As for `free`: the block is null or live, came from the form of `new` that belongs to the form of `delete`, and no code uses it any more.

use super::bindings::{self, Delete, DeleteAligned, Operators, SHORTCUT, bindings};
use core::ffi::c_void;
use heap::door::{self, Claim, Family};

/// `operator delete(void *)`
pub(super) unsafe extern "C" fn delete(block: *mut c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { free_or_give_back(block, Claim::of(Family::New)) }
}

/// `operator delete[](void *)`: as `operator delete(void *)`.
pub(super) unsafe extern "C" fn delete_array(block: *mut c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { free_or_pass_on(block, Claim::of(Family::NewArray), |operators| operators.delete) }
}

/// `operator delete(void *, size_t)`: as `operator delete(void *)`.
pub(super) unsafe extern "C" fn delete_sized(block: *mut c_void, size: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { free_or_pass_on(block, Claim::of(Family::New).sized(size), |operators| operators.delete) }
}

/// `operator delete[](void *, size_t)`: as `operator delete[](void *)`.
pub(super) unsafe extern "C" fn delete_array_sized(block: *mut c_void, size: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { free_or_pass_on(block, Claim::of(Family::NewArray).sized(size), |operators| operators.delete_array) }
}

/// `operator delete(void *, const nothrow_t &)`: as `operator delete(void *)`.
pub(super) unsafe extern "C" fn delete_nothrow(block: *mut c_void, _tag: *const c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { free_or_pass_on(block, Claim::of(Family::New), |operators| operators.delete) }
}

/// `operator delete[](void *, const nothrow_t &)`: as `operator delete[](void *)`.
pub(super) unsafe extern "C" fn delete_array_nothrow(block: *mut c_void, _tag: *const c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { free_or_pass_on(block, Claim::of(Family::NewArray), |operators| operators.delete_array) }
}

/// `operator delete(void *, align_val_t)`
pub(super) unsafe extern "C" fn delete_aligned(block: *mut c_void, align: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { free_or_give_back(block, Claim::of(Family::New).aligned(align)) }
}

/// `operator delete[](void *, align_val_t)`: as `operator delete(void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_array_aligned(block: *mut c_void, align: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe {
        free_or_pass_on_aligned((block, align), Claim::of(Family::NewArray).aligned(align), |operators| {
            operators.delete_aligned
        })
    }
}

/// `operator delete(void *, size_t, align_val_t)`: as `operator delete(void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_sized_aligned(block: *mut c_void, size: usize, align: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe {
        free_or_pass_on_aligned((block, align), Claim::of(Family::New).sized(size).aligned(align), |operators| {
            operators.delete_aligned
        })
    }
}

/// `operator delete[](void *, size_t, align_val_t)`: as `operator delete[](void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_array_sized_aligned(block: *mut c_void, size: usize, align: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe {
        free_or_pass_on_aligned((block, align), Claim::of(Family::NewArray).sized(size).aligned(align), |operators| {
            operators.delete_array_aligned
        })
    }
}

/// `operator delete(void *, align_val_t, const nothrow_t &)`: as `operator delete(void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_aligned_nothrow(block: *mut c_void, align: usize, _tag: *const c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe {
        free_or_pass_on_aligned((block, align), Claim::of(Family::New).aligned(align), |operators| {
            operators.delete_aligned
        })
    }
}

/// `operator delete[](void *, align_val_t, const nothrow_t &)`: as `operator delete[](void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_array_aligned_nothrow(block: *mut c_void, align: usize, _tag: *const c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe {
        free_or_pass_on_aligned((block, align), Claim::of(Family::NewArray).aligned(align), |operators| {
            operators.delete_array_aligned
        })
    }
}

/// Takes the hot path of `free`, and [`give_back`] for the rest.
///
/// # Safety
/// - As the module header says.
#[inline(always)]
unsafe fn free_or_give_back(block: *mut c_void, claim: Claim) {
    // SAFETY: null or a live block that no code uses any more (this function's contract).
    let rest = |claim| unsafe { give_back(block, claim) };
    // SAFETY: as above.
    unsafe { SHORTCUT.free(block.cast(), claim, rest) }
}

/// Takes the hot path of `free`, and [`pass_on`] for the rest, with the form that `form` picks.
///
/// # Safety
/// - As for [`pass_on`].
#[inline(always)]
unsafe fn free_or_pass_on(block: *mut c_void, claim: Claim, form: impl FnOnce(&Operators) -> Delete) {
    // SAFETY: null or a live block that no code uses any more, and the form is that of the standard (this function's contract).
    let rest = |claim| unsafe { pass_on(block, claim, form(&bindings().operators)) };
    // SAFETY: as above.
    unsafe { SHORTCUT.free(block.cast(), claim, rest) }
}

/// As [`free_or_pass_on`], with the alignment.
///
/// # Safety
/// - As for [`pass_on_aligned`].
#[inline(always)]
unsafe fn free_or_pass_on_aligned(
    (block, align): (*mut c_void, usize),
    claim: Claim,
    form: impl FnOnce(&Operators) -> DeleteAligned,
) {
    // SAFETY: null or a live block that no code uses any more, and the form is that of the standard (this function's contract).
    let rest = |claim| unsafe { pass_on_aligned((block, align), claim, form(&bindings().operators)) };
    // SAFETY: as above.
    unsafe { SHORTCUT.free(block.cast(), claim, rest) }
}

/// Frees what the hot path does not, and of which the form knows what `claim` says.
///
/// # Safety
/// - As the module header says.
#[cold]
#[inline(never)]
unsafe fn give_back(block: *mut c_void, claim: Claim) {
    if bindings::follows() {
        // SAFETY: null or a live block that no code uses any more (this function's contract).
        unsafe { (bindings().free)(block) };
    } else if SHORTCUT.is_open() {
        // SAFETY: as above.
        unsafe { door::free_slow_as(block.cast(), claim) };
    } else {
        // SAFETY: as above.
        unsafe { door::free(block.cast()) };
    }
}

/// Deletes what the hot path does not, and of which the form knows what `claim` says, with `form` if the shortcut is closed.
///
/// # Safety
/// - As the module header says; `form` is the one that the standard says.
#[cold]
#[inline(never)]
unsafe fn pass_on(block: *mut c_void, claim: Claim, form: Delete) {
    if SHORTCUT.is_open() {
        // SAFETY: null or a live block that no code uses any more (this function's contract).
        unsafe { door::free_slow_as(block.cast(), claim) };
    } else {
        // SAFETY: as above.
        unsafe { form(block) };
    }
}

/// As [`pass_on`], with the alignment.
///
/// # Safety
/// - As for [`pass_on`].
#[cold]
#[inline(never)]
unsafe fn pass_on_aligned((block, align): (*mut c_void, usize), claim: Claim, form: DeleteAligned) {
    if SHORTCUT.is_open() {
        // SAFETY: null or a live block that no code uses any more (this function's contract).
        unsafe { door::free_slow_as(block.cast(), claim) };
    } else {
        // SAFETY: as above.
        unsafe { form(block, align) };
    }
}
