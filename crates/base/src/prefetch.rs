//! Telling the processor what will be needed: a hint, which changes nothing but time.
#![allow(unsafe_code)]

/// Asks for the cache line at `at`, to be written soon. Any address will do, also one where nothing is.
#[inline(always)]
pub fn for_write<T>(at: *const T) {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: a prefetch reads nothing that the program can see, and does not fault.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("prefetchw byte ptr [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("prfm pstl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}
