//! Whether a file has file capabilities, which make the loader ignore `LD_PRELOAD`.
//!
//! # Safety
//! One call of the C library with C strings.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// Whether executing `path` grants file capabilities.
pub(crate) fn has_file_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both names are C strings; a null buffer of size 0 asks for the size of the attribute only.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) > 0 }
}
