//! Google's tcmalloc as a library that can be preloaded: exports the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols. Each has C's signature and passes its arguments on unchanged to the peer's function of the same meaning.

use core::ffi::c_void;
use core::fmt::{self, Write};
use libtcmalloc_sys as _;
use peer_shim::version::Writer;

/// Writes the version. Google's tcmalloc has no versions; that of the crate identifies its state.
fn version(text: &mut Writer<'_>) -> fmt::Result {
    write!(text, "tcmalloc crate-{} (Google's, libtcmalloc-sys, 8 KiB pages)", peer_shim::locked!("libtcmalloc-sys"))
}

unsafe extern "C" {
    fn TCMallocInternalNew(size: usize) -> *mut c_void;
    fn TCMallocInternalDeleteSized(block: *mut c_void, size: usize);
}

peer_shim::peer! {
    version: version,
    malloc: TCMallocInternalMalloc,
    free: TCMallocInternalFree,
    calloc: TCMallocInternalCalloc,
    realloc: TCMallocInternalRealloc,
    posix_memalign: TCMallocInternalPosixMemalign,
    aligned_alloc: TCMallocInternalMemalign,
    malloc_usable_size: TCMallocInternalMallocSize,
    operator_new: TCMallocInternalNew,
    free_sized: TCMallocInternalDeleteSized,
}
