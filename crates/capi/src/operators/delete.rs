//! `operator delete`.
#![allow(unsafe_code)]
//!
//! Each form takes the hot path of `free`. Where the shortcut is closed, a form calls the one that the standard says ([`bindings`]).
//!
//! # Safety
//! As for `free`: the block is null or live, came from the form of `new` that belongs to the form of `delete`, and no code uses it any more.

use super::bindings::{self, Delete, DeleteAligned, SHORTCUT, bindings};
use core::ffi::c_void;
use heap::door;

/// `operator delete(void *)`
pub(super) unsafe extern "C" fn delete(block: *mut c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    if unsafe { !SHORTCUT.free(block.cast()) } {
        // SAFETY: as above.
        unsafe { give_back(block) };
    }
}

/// `operator delete[](void *)`: as `operator delete(void *)`.
pub(super) unsafe extern "C" fn delete_array(block: *mut c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    if unsafe { !SHORTCUT.free(block.cast()) } {
        // SAFETY: as above.
        unsafe { pass_on(block, bindings().operators.delete) };
    }
}

/// `operator delete(void *, size_t)`: as `operator delete(void *)`. The size of a block that the hot path does not free is checked.
pub(super) unsafe extern "C" fn delete_sized(block: *mut c_void, size: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    if unsafe { !SHORTCUT.free(block.cast()) } {
        // SAFETY: as above.
        unsafe { pass_on_sized(block, size, bindings().operators.delete) };
    }
}

/// `operator delete[](void *, size_t)`: as `operator delete[](void *)`, with the size as in `operator delete(void *, size_t)`.
pub(super) unsafe extern "C" fn delete_array_sized(block: *mut c_void, size: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    if unsafe { !SHORTCUT.free(block.cast()) } {
        // SAFETY: as above.
        unsafe { pass_on_sized(block, size, bindings().operators.delete_array) };
    }
}

/// `operator delete(void *, const nothrow_t &)`: as `operator delete(void *)`.
pub(super) unsafe extern "C" fn delete_nothrow(block: *mut c_void, _tag: *const c_void) {
    // SAFETY: this function's contract is that of the form it is as.
    unsafe { delete_sized(block, 0) }
}

/// `operator delete[](void *, const nothrow_t &)`: as `operator delete[](void *)`.
pub(super) unsafe extern "C" fn delete_array_nothrow(block: *mut c_void, _tag: *const c_void) {
    // SAFETY: this function's contract is that of the form it is as.
    unsafe { delete_array_sized(block, 0) }
}

/// `operator delete(void *, align_val_t)`
pub(super) unsafe extern "C" fn delete_aligned(block: *mut c_void, _align: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    unsafe { delete(block) }
}

/// `operator delete[](void *, align_val_t)`: as `operator delete(void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_array_aligned(block: *mut c_void, align: usize) {
    // SAFETY: null or a live block that no code uses any more (module header).
    if unsafe { !SHORTCUT.free(block.cast()) } {
        // SAFETY: as above.
        unsafe { pass_on_aligned(block, align, bindings().operators.delete_aligned) };
    }
}

/// `operator delete(void *, size_t, align_val_t)`: as `operator delete(void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_sized_aligned(block: *mut c_void, _size: usize, align: usize) {
    // SAFETY: this function's contract is that of the form it is as.
    unsafe { delete_aligned_nothrow(block, align, core::ptr::null()) }
}

/// `operator delete[](void *, size_t, align_val_t)`: as `operator delete[](void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_array_sized_aligned(block: *mut c_void, _size: usize, align: usize) {
    // SAFETY: this function's contract is that of the form it is as.
    unsafe { delete_array_aligned_nothrow(block, align, core::ptr::null()) }
}

/// `operator delete(void *, align_val_t, const nothrow_t &)`: as `operator delete(void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_aligned_nothrow(block: *mut c_void, align: usize, _tag: *const c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    if unsafe { !SHORTCUT.free(block.cast()) } {
        // SAFETY: as above.
        unsafe { pass_on_aligned(block, align, bindings().operators.delete_aligned) };
    }
}

/// `operator delete[](void *, align_val_t, const nothrow_t &)`: as `operator delete[](void *, align_val_t)`.
pub(super) unsafe extern "C" fn delete_array_aligned_nothrow(block: *mut c_void, align: usize, _tag: *const c_void) {
    // SAFETY: null or a live block that no code uses any more (module header).
    if unsafe { !SHORTCUT.free(block.cast()) } {
        // SAFETY: as above.
        unsafe { pass_on_aligned(block, align, bindings().operators.delete_array_aligned) };
    }
}

/// Frees what the hot path does not.
///
/// # Safety
/// - As the module header says.
#[cold]
#[inline(never)]
unsafe fn give_back(block: *mut c_void) {
    if bindings::follows() {
        // SAFETY: null or a live block that no code uses any more (this function's contract).
        unsafe { (bindings().free)(block) };
    } else {
        // SAFETY: as above.
        unsafe { door::free(block.cast()) };
    }
}

/// Deletes what the hot path does not, with `form` if the shortcut is closed.
///
/// # Safety
/// - As the module header says; `form` is the one that the standard says.
#[cold]
#[inline(never)]
unsafe fn pass_on(block: *mut c_void, form: Delete) {
    if SHORTCUT.is_open() {
        // SAFETY: null or a live block that no code uses any more (this function's contract).
        unsafe { door::free(block.cast()) };
    } else {
        // SAFETY: as above.
        unsafe { form(block) };
    }
}

/// As [`pass_on`], with the size; 0 if it is not known.
///
/// # Safety
/// - As for [`pass_on`].
#[cold]
#[inline(never)]
unsafe fn pass_on_sized(block: *mut c_void, size: usize, form: Delete) {
    if SHORTCUT.is_open() && size > 0 {
        // SAFETY: null or a live block that no code uses any more (this function's contract).
        unsafe { door::free_sized(block.cast(), size) };
    } else {
        // SAFETY: as above.
        unsafe { pass_on(block, form) };
    }
}

/// As [`pass_on`], with the alignment.
///
/// # Safety
/// - As for [`pass_on`].
#[cold]
#[inline(never)]
unsafe fn pass_on_aligned(block: *mut c_void, align: usize, form: DeleteAligned) {
    if SHORTCUT.is_open() {
        // SAFETY: null or a live block that no code uses any more (this function's contract).
        unsafe { door::free(block.cast()) };
    } else {
        // SAFETY: as above.
        unsafe { form(block, align) };
    }
}
