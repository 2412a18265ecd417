//! The malloc family of C, exported as calls into a peer allocator.
//!
//! One macro, [`export_malloc_family!`], which each peer's library uses once. Every exported function is a single call, which the compiler can
//! turn into a jump, so that all peers pay the same for being preloaded.
//!
//! | exported | peer's function |
//! |---|---|
//! | `malloc`, `free`, `calloc`, `realloc`, `posix_memalign`, `aligned_alloc`, `malloc_usable_size` | the one of the same meaning |
//! | `memalign`, `valloc`, `pvalloc` | `aligned_alloc` of the peer |
//! | `reallocarray` | `realloc`, after a check for overflow |
//! | `freestone_peer_version` | a C string: the allocator with its version, and the registry crate it was built from |
//!
//! The lab reads the last one to know what it measured. An allocator that has a function for its version is asked when the program runs; the
//! version of the crate comes from the lock file ([`locked!`]).
#![no_std]

pub mod version;

include!(concat!(env!("OUT_DIR"), "/locked.rs"));

/// Exports the malloc family from the crate that invokes it.
///
/// `version` is a function that writes the version. Each of the others is an `extern "C"` function of the peer, with the signature of the C
/// function that it is given for.
#[macro_export]
macro_rules! export_malloc_family {
    (
        version: $version:expr,
        malloc: $malloc:path,
        free: $free:path,
        calloc: $calloc:path,
        realloc: $realloc:path,
        posix_memalign: $posix_memalign:path,
        aligned_alloc: $aligned_alloc:path,
        malloc_usable_size: $usable_size:path $(,)?
    ) => {
        /// The allocator with its version, and the registry crate, as a C string.
        #[unsafe(no_mangle)]
        pub extern "C" fn freestone_peer_version() -> *const core::ffi::c_char {
            static TEXT: $crate::version::Text = $crate::version::Text::new();
            TEXT.of($version)
        }

        /// # Safety
        /// As C's `malloc`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc(size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the peer's malloc accepts every size.
            unsafe { $malloc(size) }
        }

        /// # Safety
        /// As C's `free`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free(block: *mut core::ffi::c_void) {
            // SAFETY: as for C's `free`, `block` is null or a block of this process's malloc, which is the peer.
            unsafe { $free(block) }
        }

        /// # Safety
        /// As C's `calloc`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the peer's calloc accepts every size.
            unsafe { $calloc(count, size) }
        }

        /// # Safety
        /// As C's `realloc`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(block: *mut core::ffi::c_void, size: usize) -> *mut core::ffi::c_void {
            // SAFETY: as for C's `realloc`, `block` is null or a block of this process's malloc, which is the peer.
            unsafe { $realloc(block, size) }
        }

        /// # Safety
        /// As `reallocarray`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn reallocarray(
            block: *mut core::ffi::c_void,
            count: usize,
            size: usize,
        ) -> *mut core::ffi::c_void {
            match count.checked_mul(size) {
                // SAFETY: `block` is null or a block of this process's malloc, which is the peer.
                Some(total) => unsafe { $realloc(block, total) },
                // SAFETY: a null block means a new one. No allocator grants this size: it returns null and sets errno, as `reallocarray` must.
                None => unsafe { $realloc(core::ptr::null_mut(), usize::MAX) },
            }
        }

        /// # Safety
        /// As `posix_memalign`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(
            out: *mut *mut core::ffi::c_void,
            alignment: usize,
            size: usize,
        ) -> core::ffi::c_int {
            // SAFETY: as for C's `posix_memalign`, `out` can be written.
            unsafe { $posix_memalign(out, alignment, size) }
        }

        /// # Safety
        /// As C's `aligned_alloc`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the peer checks the alignment and the size itself.
            unsafe { $aligned_alloc(alignment, size) }
        }

        /// # Safety
        /// As `memalign`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the peer checks the alignment and the size itself.
            unsafe { $aligned_alloc(alignment, size) }
        }

        /// # Safety
        /// As `valloc`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn valloc(size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the peer checks the alignment and the size itself.
            unsafe { $aligned_alloc(4096, size) }
        }

        /// # Safety
        /// As `pvalloc`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn pvalloc(size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the peer checks the alignment and the size itself.
            unsafe { $aligned_alloc(4096, size.saturating_add(4095) & !4095) }
        }

        /// # Safety
        /// As `malloc_usable_size`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut core::ffi::c_void) -> usize {
            // SAFETY: `block` is null or a block of this process's malloc, which is the peer.
            unsafe { $usable_size(block) }
        }
    };
}

/// Declares the peer's functions, by their C names, with the signatures [`export_malloc_family!`] needs, and exports the family.
#[macro_export]
macro_rules! peer {
    (
        version: $version:expr,
        malloc: $malloc:ident,
        free: $free:ident,
        calloc: $calloc:ident,
        realloc: $realloc:ident,
        posix_memalign: $posix_memalign:ident,
        aligned_alloc: $aligned_alloc:ident,
        malloc_usable_size: $usable_size:ident $(,)?
    ) => {
        mod peer_functions {
            unsafe extern "C" {
                pub fn $malloc(size: usize) -> *mut core::ffi::c_void;
                pub fn $free(block: *mut core::ffi::c_void);
                pub fn $calloc(count: usize, size: usize) -> *mut core::ffi::c_void;
                pub fn $realloc(block: *mut core::ffi::c_void, size: usize) -> *mut core::ffi::c_void;
                pub fn $posix_memalign(
                    out: *mut *mut core::ffi::c_void,
                    alignment: usize,
                    size: usize,
                ) -> core::ffi::c_int;
                pub fn $aligned_alloc(alignment: usize, size: usize) -> *mut core::ffi::c_void;
                pub fn $usable_size(block: *mut core::ffi::c_void) -> usize;
            }
        }

        $crate::export_malloc_family! {
            version: $version,
            malloc: peer_functions::$malloc,
            free: peer_functions::$free,
            calloc: peer_functions::$calloc,
            realloc: peer_functions::$realloc,
            posix_memalign: peer_functions::$posix_memalign,
            aligned_alloc: peer_functions::$aligned_alloc,
            malloc_usable_size: peer_functions::$usable_size,
        }
    };
}
