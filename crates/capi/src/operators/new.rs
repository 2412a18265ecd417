//! `operator new`.
#![allow(unsafe_code)]
//!
//! Each form takes the hot path of `malloc`. What is left is the form's own: the ones with `std::nothrow` return null when memory runs out, the
//! others call the new-handler and throw. Where the shortcut is closed, a form calls the one that the standard says ([`bindings`]).
//!
//! # Safety
//! An exception may pass through the callers of `extern "C"` functions. The tag `std::nothrow` is an empty object, and nothing reads it.

use super::bindings::{New, NewAligned, SHORTCUT, bindings};
use super::failure::{PLAIN, attempt, insist, new_handler, runtime};
use core::ffi::{CStr, c_void};
use core::{mem, ptr};
use heap::door::{self, Family};

type NewTagged = unsafe extern "C" fn(usize, *const c_void) -> *mut c_void;
type NewAlignedTagged = unsafe extern "C" fn(usize, usize, *const c_void) -> *mut c_void;

/// `operator new(size_t)`
pub(super) unsafe extern "C" fn new(size: usize) -> *mut c_void {
    let block = SHORTCUT.allocate(size);
    if !block.is_null() {
        return block.cast();
    }
    // SAFETY: an exception may pass through the caller.
    unsafe { insist(size, PLAIN, Family::New) }
}

/// `operator new[](size_t)`: as `operator new(size_t)`.
pub(super) unsafe extern "C" fn new_array(size: usize) -> *mut c_void {
    let block = SHORTCUT.allocate(size);
    if !block.is_null() {
        return block.cast();
    }
    // SAFETY: an exception may pass through the caller.
    unsafe { pass_on(size, bindings().operators.new) }
}

/// `operator new(size_t, align_val_t)`
pub(super) unsafe extern "C" fn new_aligned(size: usize, align: usize) -> *mut c_void {
    let block = allocate_aligned(size, align, Family::New);
    if !block.is_null() {
        return block;
    }
    // SAFETY: an exception may pass through the caller.
    unsafe { insist(size, align, Family::New) }
}

/// `operator new[](size_t, align_val_t)`: as `operator new(size_t, align_val_t)`.
pub(super) unsafe extern "C" fn new_array_aligned(size: usize, align: usize) -> *mut c_void {
    let block = allocate_aligned(size, align, Family::NewArray);
    if !block.is_null() {
        return block;
    }
    // SAFETY: an exception may pass through the caller.
    unsafe { pass_on_aligned(size, align, bindings().operators.new_aligned) }
}

/// `operator new(size_t, const nothrow_t &)`: null where `operator new(size_t)` throws.
pub(super) unsafe extern "C" fn new_nothrow(size: usize, tag: *const c_void) -> *mut c_void {
    let block = SHORTCUT.allocate(size);
    if !block.is_null() {
        return block.cast();
    }
    // SAFETY: the name is that of this form.
    unsafe { ask((size, Family::New), tag, c"_ZnwmRKSt9nothrow_t", bindings().operators.new) }
}

/// `operator new[](size_t, const nothrow_t &)`: null where `operator new[](size_t)` throws.
pub(super) unsafe extern "C" fn new_array_nothrow(size: usize, tag: *const c_void) -> *mut c_void {
    let block = SHORTCUT.allocate(size);
    if !block.is_null() {
        return block.cast();
    }
    // SAFETY: the name is that of this form.
    unsafe { ask((size, Family::NewArray), tag, c"_ZnamRKSt9nothrow_t", bindings().operators.new_array) }
}

/// `operator new(size_t, align_val_t, const nothrow_t &)`: null where `operator new(size_t, align_val_t)` throws.
pub(super) unsafe extern "C" fn new_aligned_nothrow(size: usize, align: usize, tag: *const c_void) -> *mut c_void {
    let block = allocate_aligned(size, align, Family::New);
    if !block.is_null() {
        return block;
    }
    // SAFETY: the name is that of this form.
    unsafe {
        ask_aligned(
            (size, align, Family::New),
            tag,
            c"_ZnwmSt11align_val_tRKSt9nothrow_t",
            bindings().operators.new_aligned,
        )
    }
}

/// `operator new[](size_t, align_val_t, const nothrow_t &)`: null where `operator new[](size_t, align_val_t)` throws.
pub(super) unsafe extern "C" fn new_array_aligned_nothrow(
    size: usize,
    align: usize,
    tag: *const c_void,
) -> *mut c_void {
    let block = allocate_aligned(size, align, Family::NewArray);
    if !block.is_null() {
        return block;
    }
    // SAFETY: the name is that of this form.
    unsafe {
        ask_aligned(
            (size, align, Family::NewArray),
            tag,
            c"_ZnamSt11align_val_tRKSt9nothrow_t",
            bindings().operators.new_array_aligned,
        )
    }
}

/// A block of an alignment; null if the alignment is none, memory runs out, or the shortcut is closed.
#[inline]
fn allocate_aligned(size: usize, align: usize, family: Family) -> *mut c_void {
    if !align.is_power_of_two() || !SHORTCUT.is_open() {
        return ptr::null_mut();
    }
    // SAFETY: `align` is a power of two: tested above.
    unsafe { door::allocate_aligned_as(size, align, family) }.cast()
}

/// Allocates what the hot path does not, with `form` if the shortcut is closed.
///
/// # Safety
/// - An exception may pass through the caller; `form` is the one that the standard says.
#[cold]
#[inline(never)]
unsafe fn pass_on(size: usize, form: New) -> *mut c_void {
    if SHORTCUT.is_open() {
        // SAFETY: an exception may pass through the caller (this function's contract).
        unsafe { insist(size, PLAIN, Family::NewArray) }
    } else {
        // SAFETY: as above.
        unsafe { form(size) }
    }
}

/// As [`pass_on`], with an alignment.
///
/// # Safety
/// - As for [`pass_on`].
#[cold]
#[inline(never)]
unsafe fn pass_on_aligned(size: usize, align: usize, form: NewAligned) -> *mut c_void {
    if SHORTCUT.is_open() {
        // SAFETY: an exception may pass through the caller (this function's contract).
        unsafe { insist(size, align, Family::NewArray) }
    } else {
        // SAFETY: as above.
        unsafe { form(size, align) }
    }
}

/// What a form with `std::nothrow` returns when the hot path has no block. `name` is the form's, `throwing` the form that it is defined by.
///
/// # Safety
/// - An exception may pass through the caller.
#[cold]
#[inline(never)]
unsafe fn ask((size, family): (usize, Family), tag: *const c_void, name: &'static CStr, throwing: New) -> *mut c_void {
    if let Some(answer) = own_answer(size, PLAIN, family) {
        return answer;
    }
    match runtime(name) {
        Some(form) => {
            // SAFETY: the runtime's function of that name has this type.
            let form = unsafe { mem::transmute::<*mut c_void, NewTagged>(form) };
            // SAFETY: an exception may pass through the caller.
            unsafe { form(size, tag) }
        }
        None if SHORTCUT.is_open() => ptr::null_mut(),
        // SAFETY: an exception may pass through the caller.
        None => unsafe { throwing(size) },
    }
}

/// As [`ask`], with an alignment.
///
/// # Safety
/// - As for [`ask`].
#[cold]
#[inline(never)]
unsafe fn ask_aligned(
    (size, align, family): (usize, usize, Family),
    tag: *const c_void,
    name: &'static CStr,
    throwing: NewAligned,
) -> *mut c_void {
    if let Some(answer) = own_answer(size, align, family) {
        return answer;
    }
    match runtime(name) {
        Some(form) => {
            // SAFETY: the runtime's function of that name has this type.
            let form = unsafe { mem::transmute::<*mut c_void, NewAlignedTagged>(form) };
            // SAFETY: an exception may pass through the caller.
            unsafe { form(size, align, tag) }
        }
        None if SHORTCUT.is_open() => ptr::null_mut(),
        // SAFETY: an exception may pass through the caller.
        None => unsafe { throwing(size, align) },
    }
}

/// The answer of a form with `std::nothrow`; `None` if it takes calling what may throw: a function of the program.
fn own_answer(size: usize, align: usize, family: Family) -> Option<*mut c_void> {
    if !SHORTCUT.is_open() {
        return None;
    }
    let block = attempt(size, align, family);
    (!block.is_null() || new_handler().is_none()).then_some(block)
}
