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
//! | C++'s `operator new` and `delete`, plain, array, sized and nothrow | what is for them, or `malloc` and `free` |
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
/// function that it is given for. `operator_new` is `malloc`, but where blocks of `new` are of another kind; `free_sized`, which frees them, is C23's.
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
        malloc_usable_size: $usable_size:path,
        operator_new: $new:path,
        free_sized: $free_sized:path $(,)?
    ) => {
        $crate::export_operators! { operator_new: $new, free: $free, free_sized: $free_sized }

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

/// Exports C++'s operators, but for those with an alignment, which the C++ library makes of `aligned_alloc` and `free`. They need no function of that library,
/// so where memory is exhausted the process ends in place of an exception.
#[macro_export]
macro_rules! export_operators {
    (operator_new: $new:path, free: $free:path, free_sized: $free_sized:path) => {
        /// # Safety
        /// As C++'s `operator new`.
        #[unsafe(export_name = "_Znwm")]
        pub unsafe extern "C" fn operator_new(size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the peer's function accepts every size.
            let block = unsafe { $new(size) };
            if block.is_null() {
                $crate::exhausted();
            }
            block
        }

        /// # Safety
        /// As C++'s `operator new[]`.
        #[unsafe(export_name = "_Znam")]
        pub unsafe extern "C" fn operator_new_array(size: usize) -> *mut core::ffi::c_void {
            // SAFETY: as C++'s `operator new`, which it is.
            unsafe { operator_new(size) }
        }

        /// # Safety
        /// As C++'s `operator new` that throws nothing.
        #[unsafe(export_name = "_ZnwmRKSt9nothrow_t")]
        pub unsafe extern "C" fn operator_new_nothrow(
            size: usize,
            _: *const core::ffi::c_void,
        ) -> *mut core::ffi::c_void {
            // SAFETY: the peer's function accepts every size.
            unsafe { $new(size) }
        }

        /// # Safety
        /// As C++'s `operator new[]` that throws nothing.
        #[unsafe(export_name = "_ZnamRKSt9nothrow_t")]
        pub unsafe extern "C" fn operator_new_array_nothrow(
            size: usize,
            _: *const core::ffi::c_void,
        ) -> *mut core::ffi::c_void {
            // SAFETY: the peer's function accepts every size.
            unsafe { $new(size) }
        }

        /// # Safety
        /// As C++'s `operator delete`.
        #[unsafe(export_name = "_ZdlPv")]
        pub unsafe extern "C" fn operator_delete(block: *mut core::ffi::c_void) {
            // SAFETY: `block` is null or a block of `operator new`, which is the peer's.
            unsafe { $free(block) }
        }

        /// # Safety
        /// As C++'s `operator delete[]`.
        #[unsafe(export_name = "_ZdaPv")]
        pub unsafe extern "C" fn operator_delete_array(block: *mut core::ffi::c_void) {
            // SAFETY: as above.
            unsafe { $free(block) }
        }

        /// # Safety
        /// As C++'s sized `operator delete`.
        #[unsafe(export_name = "_ZdlPvm")]
        pub unsafe extern "C" fn operator_delete_sized(block: *mut core::ffi::c_void, size: usize) {
            // SAFETY: as above, and `size` is what was requested.
            unsafe { $free_sized(block, size) }
        }

        /// # Safety
        /// As C++'s sized `operator delete[]`.
        #[unsafe(export_name = "_ZdaPvm")]
        pub unsafe extern "C" fn operator_delete_array_sized(block: *mut core::ffi::c_void, size: usize) {
            // SAFETY: as above.
            unsafe { $free_sized(block, size) }
        }
    };
}

/// Ends the process: `operator new` finds no memory.
#[cold]
pub fn exhausted() -> ! {
    unsafe extern "C" {
        fn abort() -> !;
    }
    // SAFETY: C's `abort` takes nothing and does not return.
    unsafe { abort() }
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
        malloc_usable_size: $usable_size:ident,
        operator_new: $new:path,
        free_sized: $free_sized:path $(,)?
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
            operator_new: $new,
            free_sized: $free_sized,
        }
    };
}
