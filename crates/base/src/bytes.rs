//! Copying and filling memory without the C library's functions.
#![allow(unsafe_code)]
//!
//! A compiler makes calls of `memcpy` and `memset` out of copies and loops. A process may have functions of its own of these names, which report
//! an access beyond a block (`freestone_memory`). What the allocator does with memory that no block has, or with more of a run than its
//! block, is done here; and so is what those functions do before the C library's are known.
//!
//! In assembly, or byte by byte with volatile accesses, which a compiler leaves as they are.
//!
//! # Safety
//! The bytes at the addresses that are passed may be read or written, as the function does.
//!
//! ```
//! use freestone_base::bytes;
//!
//! let mut text = *b"memory";
//! // SAFETY: both stretches of three bytes lie in the array.
//! unsafe { bytes::copy(text.as_mut_ptr().wrapping_add(3), text.as_ptr(), 3) };
//! assert_eq!(&text, b"memmem");
//! ```

/// Copies `bytes`, which may overlap.
///
/// # Safety
/// - That many bytes may be read at `from` and written at `to`.
#[inline(never)]
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // Behind the source, so copying upwards would read what it has written.
    if to.addr().wrapping_sub(from.addr()) < bytes {
        for at in (0..bytes).rev() {
            // SAFETY: the byte may be read (this function's contract).
            let byte = unsafe { from.wrapping_add(at).read_volatile() };
            // SAFETY: the byte may be written (this function's contract).
            unsafe { to.wrapping_add(at).write_volatile(byte) };
        }
    } else {
        // SAFETY: the bytes may be read and written (this function's contract), and none is written before it is read.
        unsafe { upwards::copy(to, from, bytes) };
    }
}

/// Sets `bytes` to `value`.
///
/// # Safety
/// - That many bytes may be written at `to`.
#[inline]
pub unsafe fn fill(to: *mut u8, value: u8, bytes: usize) {
    // SAFETY: the bytes may be written (this function's contract).
    unsafe { upwards::fill(to, value, bytes) };
}

/// By instructions that do all of it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod upwards {
    /// Copies from the first byte to the last.
    ///
    /// # Safety
    /// - `bytes` may be read at `from` and written at `to`.
    pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
        // SAFETY: the bytes may be read and written (this function's contract); the direction flag is clear at every call of a function.
        unsafe {
            core::arch::asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
    }

    /// Sets `bytes` to `value`.
    ///
    /// # Safety
    /// - `bytes` may be written at `to`.
    pub(super) unsafe fn fill(to: *mut u8, value: u8, bytes: usize) {
        // SAFETY: the bytes may be written (this function's contract); the direction flag is clear at every call of a function.
        unsafe {
            core::arch::asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") to => _, in("al") value,
                options(nostack, preserves_flags));
        }
    }
}

/// By words, then byte by byte.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod upwards {
    /// Copies from the first byte to the last.
    ///
    /// # Safety
    /// - `bytes` may be read at `from` and written at `to`.
    pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
        let in_words = if to.addr().is_multiple_of(8) && from.addr().is_multiple_of(8) { bytes & !7 } else { 0 };
        for at in (0..in_words).step_by(8) {
            // SAFETY: the word may be read (this function's contract), and is aligned.
            let word = unsafe { from.wrapping_add(at).cast::<u64>().read_volatile() };
            // SAFETY: the word may be written (this function's contract), and is aligned.
            unsafe { to.wrapping_add(at).cast::<u64>().write_volatile(word) };
        }
        for at in in_words..bytes {
            // SAFETY: the byte may be read (this function's contract).
            let byte = unsafe { from.wrapping_add(at).read_volatile() };
            // SAFETY: the byte may be written (this function's contract).
            unsafe { to.wrapping_add(at).write_volatile(byte) };
        }
    }

    /// Sets `bytes` to `value`.
    ///
    /// # Safety
    /// - `bytes` may be written at `to`.
    pub(super) unsafe fn fill(to: *mut u8, value: u8, bytes: usize) {
        let in_words = if to.addr().is_multiple_of(8) { bytes & !7 } else { 0 };
        for at in (0..in_words).step_by(8) {
            // SAFETY: the word may be written (this function's contract), and is aligned.
            unsafe { to.wrapping_add(at).cast::<u64>().write_volatile(u64::from_ne_bytes([value; 8])) };
        }
        for at in in_words..bytes {
            // SAFETY: the byte may be written (this function's contract).
            unsafe { to.wrapping_add(at).write_volatile(value) };
        }
    }
}

#[cfg(test)]
mod tests;
