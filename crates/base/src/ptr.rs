//! The only integer-to-pointer conversions of the workspace.
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

#[cfg(test)]
mod tests;
