//! jemalloc as a library that can be preloaded: exports the malloc family as calls into it.
//!
//! # Safety
//! Exports C's own symbols. Each has C's signature and passes its arguments on unchanged to the peer's function of the same meaning.

use core::ffi::{c_char, c_int, c_void};
use core::fmt::{self, Write};
use core::ptr;
use peer_shim::version::{self, Writer};
use tikv_jemalloc_sys as _;

/// Writes the version that the library itself states.
fn version(text: &mut Writer<'_>) -> fmt::Result {
    let mut stated: *const c_char = ptr::null();
    let mut size = size_of::<*const c_char>();
    // SAFETY: jemalloc's entry `version` is a pointer to a C string constant; `stated` has room for a pointer and `size` says so. Without such an entry, null stays.
    let stated = unsafe {
        _rjem_mallctl(c"version".as_ptr(), (&raw mut stated).cast(), &mut size, ptr::null_mut(), 0);
        version::release(stated)
    };
    write!(text, "jemalloc {stated} (tikv-jemalloc-sys {})", peer_shim::locked!("tikv-jemalloc-sys"))
}

unsafe extern "C" {
    fn _rjem_mallctl(
        name: *const c_char,
        old: *mut c_void,
        old_size: *mut usize,
        new: *mut c_void,
        new_size: usize,
    ) -> c_int;
    fn _rjem_sdallocx(block: *mut c_void, size: usize, flags: c_int);
}

/// # Safety
/// As C23's `free_sized`.
#[inline]
unsafe fn free_sized(block: *mut c_void, size: usize) {
    if !block.is_null() {
        // SAFETY: a block of the peer's malloc, of this size, for no special alignment or thread cache.
        unsafe { _rjem_sdallocx(block, size, 0) }
    }
}

peer_shim::peer! {
    version: version,
    malloc: _rjem_malloc,
    free: _rjem_free,
    calloc: _rjem_calloc,
    realloc: _rjem_realloc,
    posix_memalign: _rjem_posix_memalign,
    aligned_alloc: _rjem_aligned_alloc,
    malloc_usable_size: _rjem_malloc_usable_size,
    operator_new: peer_functions::_rjem_malloc,
    free_sized: free_sized,
}
