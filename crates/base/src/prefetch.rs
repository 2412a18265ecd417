//! Hints that affect speed only: prefetches for the processor, and what the compiler had better not know.
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

/// The pointer as it is, but the compiler knows as little of it as of one that was read from memory. For loops over addresses at equal distances: what is
/// done with each address is not rewritten as arithmetic with the first.
///
/// ```
/// let mut number = 7;
/// let pointer = core::ptr::from_mut(&mut number);
/// assert_eq!(freestone_base::prefetch::as_if_read(pointer), pointer);
/// ```
#[inline(always)]
#[must_use]
// Nothing is executed, so the memory at the pointer is not accessed.
#[allow(clippy::pointers_in_nomem_asm_block)]
pub fn as_if_read<T>(pointer: *mut T) -> *mut T {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut pointer = pointer;
        // SAFETY: no instruction is executed.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) pointer, options(pure, nomem, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    pointer
}
