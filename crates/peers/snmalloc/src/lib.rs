//! snmalloc as a preloadable library: the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols: correct because each has C's signature and passes its arguments on unchanged.

use core::fmt::{self, Write};
use peer_shim::version::Writer;
use snmalloc_sys as _;

/// Writes the version. The library states none; the crate is published by snmalloc's own project, with its version.
fn version(text: &mut Writer<'_>) -> fmt::Result {
    let version = peer_shim::locked!("snmalloc-sys");
    write!(text, "snmalloc {version} (snmalloc-sys {version})")
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
}
