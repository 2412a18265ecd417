#![allow(unsafe_code)]
use super::*;
use crate::api::free::{CLASS_BOUND, free, free_below};
use crate::size_class::block_bytes;

/// A block of `size` bytes.
fn block(size: usize) -> *mut u8 {
    let block = allocate(size);
    assert!(!block.is_null());
    block
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn small_blocks_at_hand_are_given_and_taken_below_the_bounds() {
    for size in [0, 1, 48, 100, SMALL_MAX] {
        let first = block(size);
        // SAFETY: the block is not used any more, and the bounds are the greatest.
        unsafe {
            assert!(free_below(first, CLASS_BOUND));
            let second = allocate_below(size, SMALL_BOUND);
            assert_eq!(second, first, "the last block freed is the first at hand");
            assert!(free_below(second, class_of(size) + 1));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn nothing_is_given_or_taken_at_the_bound_or_above() {
    for size in [0, 16, 48, SMALL_MAX] {
        let block = block(size);
        // SAFETY: the block is freed once: at the end.
        unsafe {
            for bound in [0, class_of(size)] {
                assert!(!free_below(block, bound));
            }
            assert!(allocate_below(size, 0).is_null() && allocate_below(size, size).is_null());
            block.write_bytes(1, block_bytes(class_of(size)));
            free(block);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn large_sizes_and_blocks_null_and_foreign_addresses_go_another_way() {
    let large = block(SMALL_BOUND);
    let mut foreign = 0u8;
    // SAFETY: none of the addresses is a small block, so none is freed but the large one at the end.
    unsafe {
        for size in [SMALL_BOUND, usize::MAX / 2, usize::MAX] {
            assert!(allocate_below(size, SMALL_BOUND).is_null());
        }
        for address in [large, ptr::null_mut(), &raw mut foreign] {
            assert!(!free_below(address, CLASS_BOUND));
        }
        free(large);
    }
}
