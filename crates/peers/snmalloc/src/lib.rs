//! snmalloc as a library that can be preloaded: exports the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols. Each has C's signature and passes its arguments on unchanged to the peer's function of the same meaning.

use core::ffi::c_void;
use core::fmt::{self, Write};
use peer_shim::version::Writer;
use snmalloc_sys as _;

/// Writes the version. The library states none, but snmalloc's own project publishes the crate under the same version.
fn version(text: &mut Writer<'_>) -> fmt::Result {
    let version = peer_shim::locked!("snmalloc-sys");
    write!(text, "snmalloc {version} (snmalloc-sys {version})")
}

unsafe extern "C" {
    fn sn_rust_dealloc(block: *mut c_void, alignment: usize, size: usize);
}

/// # Safety
/// As C23's `free_sized`.
#[inline]
unsafe fn free_sized(block: *mut c_void, size: usize) {
    if !block.is_null() {
        // SAFETY: a block of the peer's malloc, of this size, and of no special alignment.
        unsafe { sn_rust_dealloc(block, 1, size) }
    }
}

peer_shim::peer! {
    version: version,
    malloc: sn_malloc,
    free: sn_free,
    calloc: sn_calloc,
    realloc: sn_realloc,
    posix_memalign: sn_posix_memalign,
    aligned_alloc: sn_memalign,
    malloc_usable_size: sn_malloc_usable_size,
    operator_new: peer_functions::sn_malloc,
    free_sized: free_sized,
}
