//! mimalloc 2 as a library that can be preloaded: exports the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols. Each has C's signature and passes its arguments on unchanged to the peer's function of the same meaning.

use core::ffi::{c_int, c_void};
use core::fmt::{self, Write};
use libmimalloc_sys as _;
use peer_shim::version::Writer;

/// Writes the version that the library itself states: the major number, and two digits each for minor and patch.
fn version(text: &mut Writer<'_>) -> fmt::Result {
    // SAFETY: the function takes nothing and returns a constant.
    let version = unsafe { mi_version() };
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    write!(
        text,
        "mimalloc {major}.{minor}.{patch} (libmimalloc-sys {}, feature v2)",
        peer_shim::locked!("libmimalloc-sys")
    )
}

unsafe extern "C" {
    fn mi_version() -> c_int;
    fn mi_free_size(block: *mut c_void, size: usize);
}

peer_shim::peer! {
    version: version,
    malloc: mi_malloc,
    free: mi_free,
    calloc: mi_calloc,
    realloc: mi_realloc,
    posix_memalign: mi_posix_memalign,
    aligned_alloc: mi_memalign,
    malloc_usable_size: mi_usable_size,
    operator_new: peer_functions::mi_malloc,
    free_sized: mi_free_size,
}
