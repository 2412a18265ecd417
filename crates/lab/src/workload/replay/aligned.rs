//! Blocks with an alignment. C has a call that allocates one, and none for what Rust's programs do besides: allocate it zeroed, or resize it.
//!
//! # Safety
//! A block has as many bytes as were asked for. Who resizes one passes its length, and leaves it to this module.

use std::ffi::c_void;
use std::{mem, ptr};

/// A block of `size` bytes; null if there is no memory.
pub(super) fn aligned(size: usize, align: usize) -> *mut c_void {
    let mut block = ptr::null_mut();
    // SAFETY: the place for the result is a local variable.
    match unsafe { libc::posix_memalign(&mut block, align.max(mem::size_of::<usize>()), size) } {
        0 => block,
        _ => ptr::null_mut(),
    }
}

/// As [`aligned`], with bytes of zero.
pub(super) fn aligned_zeroed(size: usize, align: usize) -> *mut c_void {
    let block = aligned(size, align);
    if !block.is_null() {
        // SAFETY: the block has `size` bytes, and no other code has it.
        unsafe { ptr::write_bytes(block.cast::<u8>(), 0, size) };
    }
    block
}

/// As [`aligned`], with what is in `block`, which is freed. Null, and that block stays, if there is no memory.
///
/// # Safety
/// `block` is live, has `before` bytes, and nobody uses it any more.
pub(super) unsafe fn moved(block: *mut c_void, before: usize, size: usize, align: usize) -> *mut c_void {
    let new = aligned(size, align);
    if !new.is_null() {
        // SAFETY: each block has as many bytes as are copied, and they are two.
        unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), before.min(size)) };
        // SAFETY: the caller leaves the block to this function.
        unsafe { libc::free(block) };
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_where_they_are_to_and_a_resized_one_has_what_was_in_it() {
        const ALIGN: usize = 4096;
        let start = |block: *mut c_void| block.addr() % ALIGN;
        let bytes = |block: *mut c_void, len| {
            // SAFETY: the tests ask for the bytes that a block has.
            unsafe { std::slice::from_raw_parts(block.cast::<u8>(), len) }.to_vec()
        };
        let block = aligned_zeroed(100, ALIGN);
        assert_eq!((start(block), bytes(block, 100)), (0, vec![0; 100]));
        // SAFETY: the block has 100 bytes.
        unsafe { ptr::write_bytes(block.cast::<u8>(), 7, 100) };
        // SAFETY: the block is live and has 100 bytes.
        let longer = unsafe { moved(block, 100, 9000, ALIGN) };
        assert_eq!((start(longer), bytes(longer, 100)), (0, vec![7; 100]));
        // SAFETY: as above, with 9000.
        let shorter = unsafe { moved(longer, 9000, 10, ALIGN) };
        assert_eq!((start(shorter), bytes(shorter, 10)), (0, vec![7; 10]));
        // SAFETY: the block is live.
        unsafe { libc::free(shorter) };
    }
}
