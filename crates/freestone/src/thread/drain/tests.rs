#![allow(unsafe_code)]
use super::*;
use crate::size_class::class_of;
use crate::testing::World;
use std::vec::Vec;

#[test]
fn a_drain_moves_what_others_freed_into_the_bins_and_counts_no_free() {
    let world = World::new(4096);
    let (owner, other) = (world.heap(), world.heap());
    let class = class_of(64);
    let blocks: Vec<_> = (0..50).map(|_| owner.allocate(64, 1).start).collect();
    let (before, frees) = (owner.bins().len(class), owner.bins().frees(class));
    // SAFETY: the blocks are this test's, and not used any more.
    unsafe { blocks.iter().for_each(|&block| other.free(block)) };
    route::send_all(other);
    drain(owner);
    assert_eq!((owner.bins().len(class), owner.bins().frees(class)), (before + 50, frees));
    assert_eq!(owner.bins().live(class), 50, "the owner's count is unchanged");
    drain(owner);
    assert_eq!(owner.bins().len(class), before + 50, "no block is drained twice");
    world.check().unwrap();
}

#[test]
fn a_bin_that_a_drain_fills_to_twice_its_capacity_is_flushed() {
    let world = World::new(4096);
    world.set(crate::config::key::BIN_MAX, "4");
    let (owner, other) = (world.heap(), world.heap());
    let class = class_of(1000);
    let blocks: Vec<_> = (0..200).map(|_| owner.allocate(1000, 1).start).collect();
    // SAFETY: the blocks are this test's, and not used any more.
    unsafe { blocks.iter().for_each(|&block| other.free(block)) };
    route::send_all(other);
    drain(owner);
    assert!(owner.bins().len(class) <= 2 * 4, "{} blocks in a bin of 4", owner.bins().len(class));
    world.check().unwrap();
}
