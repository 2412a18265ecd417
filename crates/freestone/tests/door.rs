//! The door as fuzz targets use it: an allocator of its own over the fake kernel.
#![allow(unsafe_code)]

use freestone::door::{Instance, key};
use freestone_os::fake::Fake;

/// Bytes of the fake kernel's address range.
const RANGE_BYTES: usize = 80 << 20;

#[test]
fn every_invariant_of_an_instance_holds_while_its_blocks_outlive_their_heap() {
    let instance = Box::new(Instance::new(Fake::new(4096, RANGE_BYTES)));
    instance.settings().set(key::BIN_MAX, b"4").unwrap();
    // SAFETY: the instance stays in its box.
    let first = unsafe { instance.heap() }.unwrap();
    // SAFETY: 1 is a power of two.
    let mut blocks: Vec<_> = (0..100).map(|_| unsafe { first.allocate(100, 1) }).collect();
    // SAFETY: 64 is a power of two.
    let large = unsafe { first.allocate(100_000, 64) };
    assert!(blocks.iter().all(|block| !block.is_null()) && !large.is_null());
    // SAFETY: the block is live, and replaced by what is returned.
    blocks[0] = unsafe { first.reallocate(blocks[0], 5000, 1) };
    drop(first);
    // SAFETY: this test has one thread.
    assert_eq!(unsafe { instance.check() }, Ok(()));
    // SAFETY: as above.
    let second = unsafe { instance.heap() }.unwrap();
    for block in blocks.into_iter().chain([large]) {
        // SAFETY: the block is live, and not used again.
        unsafe { second.free(block) };
    }
    drop(second);
    // SAFETY: as above.
    assert_eq!(unsafe { instance.check() }, Ok(()));
}

#[test]
fn an_instance_without_memory_has_no_heap() {
    let instance = Box::new(Instance::new(Fake::new(4096, RANGE_BYTES)));
    instance.os().limit_committed(0);
    // SAFETY: the instance stays in its box.
    assert!(unsafe { instance.heap() }.is_none());
}
