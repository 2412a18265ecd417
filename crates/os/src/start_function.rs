//! What a thread starts with.

use core::ffi::c_void;

/// The start function of a thread.
pub type Main = extern "C" fn(*mut c_void) -> *mut c_void;
