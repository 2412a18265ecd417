#![allow(unsafe_code)]
use super::*;
use crate::api::{alloc, free};

const LARGE: usize = SMALL_MAX + 1;

/// A block of `size` bytes, after which this thread has more of them at hand.
fn block(size: usize) -> *mut u8 {
    let block = alloc::allocate(size);
    assert!(!block.is_null());
    block
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn an_open_shortcut_gives_and_takes_small_blocks() {
    let shortcut = Shortcut::new();
    for size in [0, 1, 48, 100, SMALL_MAX] {
        let first = block(size);
        // SAFETY: the block is not used any more.
        assert!(unsafe { shortcut.free(first) });
        let second = shortcut.allocate(size);
        assert_eq!(second, first, "the last block freed is the first at hand");
        // SAFETY: as above.
        assert!(unsafe { shortcut.free(second) });
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn large_sizes_and_blocks_null_and_foreign_addresses_go_another_way() {
    let shortcut = Shortcut::new();
    let large = block(LARGE);
    assert!([LARGE, usize::MAX / 2, usize::MAX].map(|size| shortcut.allocate(size)).iter().all(|it| it.is_null()));
    let mut foreign = 0u8;
    for address in [large, ptr::null_mut(), &raw mut foreign] {
        // SAFETY: none is a small block, so none is freed.
        assert!(!unsafe { shortcut.free(address) });
    }
    // SAFETY: the block is not used any more.
    unsafe { free::free(large) };
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn a_closed_shortcut_gives_nothing_and_takes_nothing() {
    let shortcut = Shortcut::new();
    assert!(shortcut.is_open());
    // SAFETY: no other thread has it.
    unsafe { shortcut.close() };
    assert!(!shortcut.is_open());
    for size in [0, 16, SMALL_MAX, LARGE] {
        let block = block(size);
        assert!(shortcut.allocate(size).is_null());
        // SAFETY: a closed shortcut frees nothing.
        assert!(!unsafe { shortcut.free(block) });
        // SAFETY: the block is not used any more.
        unsafe { free::free(block) };
    }
}
