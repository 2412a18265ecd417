//! Prefetching: a hint to the processor that affects speed only.
#![allow(unsafe_code)]
//!
//! # Safety
//! A prefetch of any address reads and writes nothing that the program can see, and does not fault.

/// Prefetches the cache line at `at` for a write. `at` may be any address, also one where nothing is mapped.
#[inline(always)]
pub fn for_write<T>(at: *const T) {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: a prefetch reads nothing that the program can see, and does not fault, whatever the address.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("prefetchw byte ptr [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("prfm pstl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}
