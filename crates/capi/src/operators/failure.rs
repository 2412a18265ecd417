//! When memory runs out: the new-handler, and `std::bad_alloc`.
#![allow(unsafe_code)]
//!
//! `new` tries again as long as the program's new-handler returns; without a handler it throws. Both are the C++ runtime's business: its
//! functions are bound when the library is loaded, or, in a process that loaded the runtime later, looked up when they are needed. The frames of
//! this library let exceptions through: all functions on the way are `extern "C"`.
//!
//! A form with `std::nothrow` returns null in place of an exception, of the handler's too. Only the C++ runtime can catch that one: its own
//! form calls `new` and catches what it throws. A process without a runtime that could be looked up (a static program) gets null without a call of
//! the handler.
//!
//! # Safety
//! The functions of the C++ runtime have the types that the standard and the ABI say.

use super::bindings::{self, Handler, bindings};
use core::ffi::{CStr, c_void};
use core::ptr;
use heap::door::{self, Family};

/// Alignment of the forms that are not told one.
pub(super) const PLAIN: usize = 1;

/// One attempt, of a form of `family`; null when memory runs out, or `align` is no power of two.
pub(super) fn attempt(size: usize, align: usize, family: Family) -> *mut c_void {
    if bindings::follows() {
        return attempt_following(size.max(1), align);
    }
    let family = bindings::told_apart(family);
    match align {
        PLAIN => door::allocate_as(size, family).cast(),
        // SAFETY: `align` is a power of two: tested here.
        _ if align.is_power_of_two() => unsafe { door::allocate_aligned_as(size, align, family) }.cast(),
        _ => ptr::null_mut(),
    }
}

/// One attempt, with the program's `malloc`.
fn attempt_following(size: usize, align: usize) -> *mut c_void {
    if align == PLAIN {
        // SAFETY: `malloc` takes any size.
        return unsafe { (bindings().malloc)(size) };
    }
    match size.checked_next_multiple_of(align) {
        // SAFETY: the alignment is a power of two, and the size a multiple of it.
        Some(size) if align.is_power_of_two() => unsafe { (bindings().aligned_alloc)(align, size) },
        _ => ptr::null_mut(),
    }
}

/// Allocates, as `new` does when the hot path has no block: tries, and calls the new-handler, until there is memory.
///
/// # Safety
/// - An exception may pass through the caller.
#[cold]
#[inline(never)]
pub(super) unsafe fn insist(size: usize, align: usize, family: Family) -> *mut c_void {
    loop {
        let block = attempt(size, align, family);
        if !block.is_null() {
            return block;
        }
        // No handler can help an alignment that is none.
        let Some(handler) = new_handler().filter(|_| align.is_power_of_two()) else { throw_bad_alloc() };
        // SAFETY: the program made this its new-handler.
        unsafe { handler() };
    }
}

/// The program's new-handler, if it has one.
pub(super) fn new_handler() -> Option<Handler> {
    let get = bindings().runtime.get_new_handler.or_else(|| {
        // SAFETY: the name is that of this function.
        runtime(c"_ZSt15get_new_handlerv").map(|found| unsafe { core::mem::transmute(found) })
    })?;
    // SAFETY: the function may be called at any time.
    unsafe { get() }
}

/// Throws `std::bad_alloc`. Ends the process if no C++ runtime is there that could.
#[cold]
#[inline(never)]
fn throw_bad_alloc() -> ! {
    let throw: Option<unsafe extern "C" fn() -> !> = bindings().runtime.throw_bad_alloc.or_else(|| {
        // SAFETY: the name is that of this function.
        runtime(c"_ZSt17__throw_bad_allocv").map(|found| unsafe { core::mem::transmute(found) })
    });
    match throw {
        // SAFETY: the function may be called at any time; the frames of this library let the exception through.
        Some(throw) => unsafe { throw() },
        None => freestone_os::fatal(format_args!(
            "operator new: out of memory, and no C++ runtime was found that throws std::bad_alloc"
        )),
    }
}

/// Looks up a function of the C++ runtime: in what was loaded after this object, and then in a runtime that was loaded for a part of the
/// process.
pub(super) fn runtime(name: &CStr) -> Option<*mut c_void> {
    let dlopen = bindings().runtime.dlopen?;
    bindings::find_behind(name).or_else(|| {
        [c"libstdc++.so.6", c"libc++.so.1", c"libc++abi.so.1"].into_iter().find_map(|library| {
            // SAFETY: the name is a C string. Nothing is loaded, and the handle is never closed.
            let handle = unsafe { dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            if handle.is_null() {
                return None;
            }
            // SAFETY: the handle is the loader's.
            unsafe { bindings::find(handle, name) }
        })
    })
}
