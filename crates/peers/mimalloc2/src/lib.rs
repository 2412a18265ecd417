//! mimalloc 2 as a preloadable library: the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols: correct because each has C's signature and passes its arguments on unchanged.

use libmimalloc_sys as _;

peer_shim::peer! {
    version: c"mimalloc 2.3.2 (libmimalloc-sys 0.1.49, v2)",
    malloc: mi_malloc,
    free: mi_free,
    calloc: mi_calloc,
    realloc: mi_realloc,
    posix_memalign: mi_posix_memalign,
    aligned_alloc: mi_memalign,
    malloc_usable_size: mi_usable_size,
}
