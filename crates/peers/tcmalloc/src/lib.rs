//! Google's tcmalloc as a preloadable library: the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols: correct because each has C's signature and passes its arguments on unchanged.

use libtcmalloc_sys as _;

peer_shim::peer! {
    version: c"tcmalloc, 8 KiB pages (libtcmalloc-sys 0.1.14)",
    malloc: TCMallocInternalMalloc,
    free: TCMallocInternalFree,
    calloc: TCMallocInternalCalloc,
    realloc: TCMallocInternalRealloc,
    posix_memalign: TCMallocInternalPosixMemalign,
    aligned_alloc: TCMallocInternalMemalign,
    malloc_usable_size: TCMallocInternalMallocSize,
}
