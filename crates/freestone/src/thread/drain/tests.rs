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

#[test]
fn a_bin_is_flushed_when_a_drain_brings_it_beyond_twice_its_capacity_and_not_before() {
    let world = World::new(4096);
    world.set(crate::config::key::BIN_MAX, "8");
    let (owner, other) = (world.heap(), world.heap());
    let class = class_of(1000);
    let twice = 2 * i64::from(flush::own_capacity(owner, class));
    assert!(twice > 4);
    let mut blocks: Vec<_> = (0..100).map(|_| owner.allocate(1000, 1).start).collect();
    while !owner.bins().is_empty(class) {
        blocks.push(owner.allocate(1000, 1).start);
    }
    let mut hand_over = |n: i64| {
        // SAFETY: the blocks are this test's, and not used any more.
        blocks.drain(..n as usize).for_each(|block| unsafe { other.free(block) });
        route::send_all(other);
        drain(owner);
        owner.bins().len(class)
    };
    assert_eq!(hand_over(twice - 1), twice - 1);
    assert_eq!(hand_over(1), twice);
    assert!(hand_over(1) < twice);
}

#[test]
fn every_bin_that_a_drain_brings_beyond_twice_its_capacity_is_flushed_whatever_its_class() {
    let world = World::new(16384);
    world.set(crate::config::key::BIN_MAX, "4");
    let (owner, other) = (world.heap(), world.heap());
    let sizes = [16, 1000, 20_000, 32_768];
    assert!(class_of(32_768) >= 64, "a class whose bit is that of another");
    for size in sizes {
        let blocks: Vec<_> = (0..60).map(|_| owner.allocate(size, 1).start).collect();
        // SAFETY: the blocks are this test's, and not used any more.
        unsafe { blocks.iter().for_each(|&block| other.free(block)) };
    }
    route::send_all(other);
    drain(owner);
    for class in sizes.map(class_of) {
        let most = 2 * i64::from(flush::own_capacity(owner, class));
        assert!(owner.bins().len(class) <= most, "{} blocks of class {class}, {most} at most", owner.bins().len(class));
    }
    world.check().unwrap();
}
