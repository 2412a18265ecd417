#![allow(unsafe_code)]
use super::*;
use crate::api::free::{AtHand, CLASS_BOUND, free, free_at_hand};
use crate::size_class::block_bytes;

/// A block of `size` bytes.
fn block(size: usize) -> *mut u8 {
    let block = allocate(size);
    assert!(!block.is_null());
    block
}

/// Frees a block that the test does not use any more, if the hot path takes it.
fn is_taken(block: *mut u8, bound: usize) -> bool {
    // SAFETY: null, foreign, or a block that the test does not use any more if it is taken.
    matches!(unsafe { free_at_hand(block, bound) }, AtHand::Freed)
}

/// A block from the hot path.
fn given(size: usize, bound: usize) -> *mut u8 {
    assert!(bound <= SMALL_BOUND);
    // SAFETY: the bound is none that is too high.
    unsafe { allocate_below(size, bound) }
}

/// Frees a block that the test does not use any more.
fn give_up(block: *mut u8) {
    // SAFETY: no code uses the block any more.
    unsafe { free(block) }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn small_blocks_at_hand_are_given_and_taken_below_the_bounds() {
    for size in [0, 1, 48, 100, SMALL_MAX] {
        let first = block(size);
        assert!(is_taken(first, CLASS_BOUND));
        let second = given(size, SMALL_BOUND);
        assert_eq!(second, first, "the last block freed is the first at hand");
        assert!(is_taken(second, class_of(size) + 1));
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn nothing_is_given_or_taken_at_the_bound_or_above() {
    for size in [0, 16, 48, SMALL_MAX] {
        let block = block(size);
        assert!([0, class_of(size)].into_iter().all(|bound| !is_taken(block, bound)));
        assert!(given(size, 0).is_null() && given(size, size).is_null());
        // SAFETY: the block is the test's, and has as many bytes.
        unsafe { block.write_bytes(1, block_bytes(class_of(size))) };
        give_up(block);
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn large_sizes_and_blocks_null_and_foreign_addresses_go_another_way() {
    let large = block(SMALL_BOUND);
    let mut foreign = 0u8;
    assert!([SMALL_BOUND, usize::MAX / 2, usize::MAX].into_iter().all(|size| given(size, SMALL_BOUND).is_null()));
    assert!([large, ptr::null_mut(), &raw mut foreign].into_iter().all(|address| !is_taken(address, CLASS_BOUND)));
    give_up(large);
}
