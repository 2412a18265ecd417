//! jemalloc as a preloadable library: the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols: correct because each has C's signature and passes its arguments on unchanged.

use tikv_jemalloc_sys as _;

peer_shim::peer! {
    version: c"jemalloc 5.3.1 (tikv-jemalloc-sys 0.7.1)",
    malloc: _rjem_malloc,
    free: _rjem_free,
    calloc: _rjem_calloc,
    realloc: _rjem_realloc,
    posix_memalign: _rjem_posix_memalign,
    aligned_alloc: _rjem_aligned_alloc,
    malloc_usable_size: _rjem_malloc_usable_size,
}
