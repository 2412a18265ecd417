//! The only integer-to-pointer conversions of the workspace, and what loops need to know less about pointers.
#![allow(unsafe_code)]
//!
//! An allocator turns an address into a pointer only where the operating system mapped the memory and the provenance was exposed then. All other
//! code keeps the pointer that it was given and moves it (`byte_add`, `with_addr`).

/// Pointer to `address`, with the provenance that was exposed when the memory there was mapped.
#[must_use]
#[inline(always)]
pub fn from_exposed<T>(address: usize) -> *mut T {
    core::ptr::with_exposed_provenance_mut(address)
}

/// Exposes the provenance of `pointer`, so that [`from_exposed`] may recover it, and returns its address.
#[inline(always)]
pub fn expose<T>(pointer: *mut T) -> usize {
    pointer.expose_provenance()
}

/// The pointer as it is, but the compiler knows as little of it as of one that was read from memory. For loops over addresses at equal distances: what is
/// done with each address is not rewritten as arithmetic with the first.
///
/// ```
/// let mut number = 7;
/// let pointer = core::ptr::from_mut(&mut number);
/// assert_eq!(freestone_base::ptr::as_if_read(pointer), pointer);
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

#[cfg(test)]
mod tests;
