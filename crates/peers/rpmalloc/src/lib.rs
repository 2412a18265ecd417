//! rpmalloc as a library that can be preloaded: exports the malloc family as calls into it, and `pthread_create`, because rpmalloc must be
//! called when a thread ends (its own preload library does the same).
//!
//! # Safety
//! Exports C's own symbols. Each has C's signature and passes its arguments on unchanged to rpmalloc's function of the same meaning.

use core::ffi::{c_char, c_int, c_void};
use core::fmt::{self, Write};
use peer_shim::version::Writer;
use rpmalloc_sys as _;

mod threads;

// The library states no version, and another version of the crate may contain another one.
const _: () = assert!(
    matches!(peer_shim::locked!("rpmalloc-sys").as_bytes(), b"0.2.3"),
    "the version below is that of rpmalloc-sys 0.2.3: look up the one in this crate"
);

/// Writes the version: the newest in the change log of the sources in the crate.
fn version(text: &mut Writer<'_>) -> fmt::Result {
    write!(text, "rpmalloc 1.4.3 (rpmalloc-sys {})", peer_shim::locked!("rpmalloc-sys"))
}

/// rpmalloc has no function for blocks of a known size; its own operators call `rpfree`.
///
/// # Safety
/// As C23's `free_sized`.
#[inline]
unsafe fn free_sized(block: *mut c_void, _: usize) {
    // SAFETY: null or a block of the peer's malloc.
    unsafe { peer_functions::rpfree(block) }
}

peer_shim::peer! {
    version: version,
    malloc: rpmalloc,
    free: rpfree,
    calloc: rpcalloc,
    realloc: rprealloc,
    posix_memalign: rpposix_memalign,
    aligned_alloc: rpmemalign,
    malloc_usable_size: rpmalloc_usable_size,
    operator_new: peer_functions::rpmalloc,
    free_sized: free_sized,
}

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut usize, *const c_void, Start, *mut c_void) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Creates a thread that returns its heap to rpmalloc when it ends.
///
/// # Safety
/// As `pthread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut usize,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
    // SAFETY: the next definition after this library is the C library's, which has this signature.
    let create: Create = unsafe { core::mem::transmute(dlsym(RTLD_NEXT, c"pthread_create".as_ptr())) };
    // SAFETY: the new thread runs `run_packed` once with the package, which frees it; if there is no thread, it is freed below.
    unsafe {
        let package = threads::pack(start, argument);
        let code = create(thread, attributes, threads::run_packed, package);
        if code != 0 {
            peer_functions::rpfree(package);
        }
        code
    }
}
