//! Blocks that are resized with another alignment than they were allocated with, and zeroed blocks.
#![allow(unsafe_code, reason = "the interface is unsafe")]

mod subject;

use freestone_tlsf::{Policy, Standard, WithFooters};
use std::ptr::NonNull;
use subject::Grown;

/// Whether the bytes of a block are all `byte`.
fn is_filled(block: NonNull<u8>, byte: u8, bytes: usize) -> bool {
    // SAFETY: the block has as many bytes, which were written.
    unsafe { core::slice::from_raw_parts(block.as_ptr(), bytes) }.iter().all(|found| *found == byte)
}

fn resize<P: Policy>() {
    for (bytes, fewer_or_more) in [(400, 40), (400, 400), (400, 900), (40, 40)] {
        let mut grown = Grown::<P>::new(1 << 16, 1 << 16);
        let [wall, block, next] = [24, bytes, 24].map(|bytes| grown.heap.allocate(bytes, 16).unwrap());
        for (block, byte, bytes) in [(wall, 1, 24), (block, 2, bytes), (next, 3, 24)] {
            // SAFETY: the block has as many bytes.
            unsafe { block.write_bytes(byte, bytes) };
        }
        // SAFETY: the block is in use, and only the new one is used.
        let moved = unsafe { grown.heap.reallocate(block, fewer_or_more, 1024) }.unwrap();
        assert_eq!(moved.addr().get() % 1024, 0);
        assert!(is_filled(moved, 2, bytes.min(fewer_or_more)));
        assert!(is_filled(wall, 1, 24) && is_filled(next, 3, 24));
        assert_eq!(grown.heap.check(), Ok(()), "{bytes} to {fewer_or_more}");
        for block in [wall, moved, next] {
            // SAFETY: given back once.
            unsafe { grown.heap.deallocate(block).unwrap() };
        }
        assert_eq!((grown.heap.stats().used_blocks, grown.heap.check()), (0, Ok(())));
    }
}

#[test]
fn a_block_that_is_resized_with_a_larger_alignment_is_aligned_and_takes_no_byte_behind_the_new_size_with_it() {
    resize::<Standard>();
    resize::<WithFooters>();
}

#[test]
fn a_zeroed_block_is_zero_to_its_last_byte() {
    let mut grown = Grown::<Standard>::new(4096, 4096);
    for bytes in [1, 7, 9, 100, 1003] {
        let used = grown.heap.allocate(bytes, 16).unwrap();
        // SAFETY: the block has as many bytes.
        unsafe { used.write_bytes(0xEE, bytes) };
        // SAFETY: given back once.
        unsafe { grown.heap.deallocate(used).unwrap() };
        let block = grown.heap.allocate_zeroed(bytes, 16).unwrap();
        assert!(block == used && is_filled(block, 0, bytes), "{bytes} bytes");
        // SAFETY: given back once.
        unsafe { grown.heap.deallocate(block).unwrap() };
    }
}
