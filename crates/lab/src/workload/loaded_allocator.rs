//! Which library answers `malloc` in this process, and the version it states: the proof that the allocator is the one to be measured.
//!
//! # Safety
//! Looks up symbols in the running process. The version functions have the signature that the libraries defining them agree on.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

/// The version of a library that states none.
pub(crate) const UNSTATED: &str = "unstated";

/// The file that answers `malloc` in this process.
pub(crate) fn malloc_library() -> String {
    file_of(symbol(c"malloc"))
}

/// The file of the C library of this process.
pub(crate) fn c_library() -> String {
    file_of(libc::gnu_get_libc_version as *const () as *mut c_void)
}

/// Whether the library that `name` stands for in `LD_PRELOAD` is in this process, and it, or a library that it needs, has a `malloc` in place of the C
/// library's.
pub(crate) fn brings_malloc(name: &CStr) -> bool {
    // SAFETY: the name is a C string; with RTLD_NOLOAD nothing is loaded, so no code of the library runs.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if library.is_null() {
        return false;
    }
    // SAFETY: the handle is one of dlopen's, and the name a C string. The library stays: it was preloaded.
    let malloc = unsafe { libc::dlsym(library, c"malloc".as_ptr()) };
    !malloc.is_null() && file_of(malloc) != c_library()
}

/// The file that an address of this process belongs to.
fn file_of(address: *mut c_void) -> String {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr accepts any address and writes to the local.
    unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: dladdr filled it in; should it fail, all-zero is a valid `Dl_info` too.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return String::from("unknown");
    }
    // SAFETY: the loader's file name is a C string that lives as long as the library, which is never unloaded.
    unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
}

/// The version that the allocator states through `freestone_peer_version` or `freestone_version`, or that of the C library.
pub(crate) fn version() -> String {
    for name in [c"freestone_peer_version", c"freestone_version"] {
        if let Some(version) = stated_by(name) {
            return version;
        }
    }
    if malloc_library().contains("libc.so") { format!("glibc {}", glibc_version()) } else { UNSTATED.into() }
}

fn stated_by(name: &CStr) -> Option<String> {
    type Version = unsafe extern "C" fn() -> *const c_char;
    let address = symbol(name);
    if address.is_null() {
        return None;
    }
    // SAFETY: only Freestone's and the peers' libraries define these two names, and both give them this signature.
    let version = unsafe { std::mem::transmute::<*mut c_void, Version>(address) };
    // SAFETY: the functions take nothing and may be called at any time.
    let text = unsafe { version() };
    // SAFETY: both return null or a C string constant.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The first function or variable of this name in the libraries of this process, in the order in which they were loaded; null if there is none.
pub(crate) fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string; the default handle searches the libraries of this process.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The version of the C library.
pub(crate) fn glibc_version() -> String {
    // SAFETY: takes nothing and returns a constant.
    let text = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: the constant is a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_preloaded_library_the_c_library_answers_malloc_and_states_its_version() {
        assert!(malloc_library().contains("libc"), "{}", malloc_library());
        assert_eq!(version(), format!("glibc {}", glibc_version()));
        assert!(glibc_version().starts_with("2."));
    }

    #[test]
    fn a_library_that_has_the_c_librarys_malloc_or_is_not_there_brings_none() {
        assert!(!brings_malloc(c"libc.so.6") && !brings_malloc(c"libm.so.6") && !brings_malloc(c"no-such-library.so"));
    }

    #[test]
    fn a_symbol_that_no_library_defines_states_no_version() {
        assert_eq!(stated_by(c"freestone_no_such_function"), None);
    }
}
