//! Copying, filling and comparing memory without the C library's functions.
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

/// Bytes in pieces of `N`, and the rest, which is shorter. (As `as_chunks` of slices, which the oldest compiler that builds this crate does not have.)
#[inline(always)]
#[must_use]
pub const fn chunks<const N: usize>(bytes: &[u8]) -> (&[[u8; N]], &[u8]) {
    const { assert!(N != 0) };
    let (whole, rest) = bytes.split_at(bytes.len() / N * N);
    // SAFETY: `whole` has `bytes.len() / N` pieces of `N` bytes, and bytes need no alignment.
    (unsafe { core::slice::from_raw_parts(whole.as_ptr().cast(), bytes.len() / N) }, rest)
}

/// As [`chunks`], to be written to.
#[inline(always)]
#[must_use]
pub const fn chunks_mut<const N: usize>(bytes: &mut [u8]) -> (&mut [[u8; N]], &mut [u8]) {
    const { assert!(N != 0) };
    let n = bytes.len() / N;
    let (whole, rest) = bytes.split_at_mut(n * N);
    // SAFETY: `whole` has `n` pieces of `N` bytes, is borrowed for as long as the result, and bytes need no alignment.
    (unsafe { core::slice::from_raw_parts_mut(whole.as_mut_ptr().cast(), n) }, rest)
}

/// Whether the 4 bytes `OFFSET` bytes behind `object` are `VALUE`: one comparison in memory and a jump, where the compiler can be told so.
///
/// # Safety
/// - These bytes may be read, and are aligned.
#[inline(always)]
#[must_use]
pub unsafe fn word_is<const OFFSET: usize, const VALUE: u32>(object: *const u8) -> bool {
    #[cfg(all(asm_jumps, target_arch = "x86_64", not(miri), not(loom)))]
    // SAFETY: the 4 bytes may be read (this function's contract), and nothing is written.
    unsafe {
        core::arch::asm!(
            "cmp dword ptr [{object} + {offset}], {value}",
            "je {equal}",
            object = in(reg) object,
            offset = const OFFSET,
            value = const VALUE,
            equal = label { return true },
            options(nostack, readonly),
        );
        false
    }
    #[cfg(not(all(asm_jumps, target_arch = "x86_64", not(miri), not(loom))))]
    // SAFETY: the 4 bytes may be read and are aligned (this function's contract).
    unsafe {
        object.wrapping_add(OFFSET).cast::<u32>().read_volatile() == VALUE
    }
}

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
        let in_words = if to.addr() % 8 == 0 && from.addr() % 8 == 0 { bytes & !7 } else { 0 };
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
        let in_words = if to.addr() % 8 == 0 { bytes & !7 } else { 0 };
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
