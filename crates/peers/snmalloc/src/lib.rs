//! snmalloc as a preloadable library: the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols: correct because each has C's signature and passes its arguments on unchanged.

use snmalloc_sys as _;

peer_shim::peer! {
    version: c"snmalloc 0.7.6 (snmalloc-sys 0.7.6)",
    malloc: sn_malloc,
    free: sn_free,
    calloc: sn_calloc,
    realloc: sn_realloc,
    posix_memalign: sn_posix_memalign,
    aligned_alloc: sn_memalign,
    malloc_usable_size: sn_malloc_usable_size,
}
