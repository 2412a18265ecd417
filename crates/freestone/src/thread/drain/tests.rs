use super::*;
use crate::size_class::class_of;
use crate::testing::{World, free};
use freestone_os::fake::Fake;
use std::vec::Vec;

/// Blocks of another heap are freed by `other`.
fn hand_over(other: Own<'_, Fake>, blocks: &[*mut u8]) {
    blocks.iter().for_each(|&block| free(other, block));
    route::send_all(other);
}

#[test]
fn a_drain_moves_what_others_freed_into_the_bins_and_counts_no_free() {
    let world = World::new(4096);
    let (owner, other) = (world.heap(), world.heap());
    let class = class_of(64);
    let blocks: Vec<_> = (0..50).map(|_| owner.allocate(64, 1).start).collect();
    let (before, frees) = (owner.bins().len(class), owner.bins().frees(class));
    hand_over(other, &blocks);
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
    hand_over(other, &blocks);
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
    let mut len_after = |n: i64| {
        hand_over(other, &blocks.drain(..n as usize).collect::<Vec<_>>());
        drain(owner);
        owner.bins().len(class)
    };
    assert_eq!(len_after(twice - 1), twice - 1);
    assert_eq!(len_after(1), twice);
    assert!(len_after(1) < twice);
}

#[test]
fn every_bin_that_a_drain_brings_beyond_twice_its_capacity_is_flushed_whatever_its_class() {
    let world = World::new(16384);
    world.set(crate::config::key::BIN_MAX, "4");
    let (owner, other) = (world.heap(), world.heap());
    let sizes = [16, 1000, 20_000, 32_768];
    assert!(class_of(32_768) >= 64, "a class whose bit is that of another");
    for size in sizes {
        hand_over(other, &(0..60).map(|_| owner.allocate(size, 1).start).collect::<Vec<_>>());
    }
    drain(owner);
    for class in sizes.map(class_of) {
        let most = 2 * i64::from(flush::own_capacity(owner, class));
        assert!(owner.bins().len(class) <= most, "{} blocks of class {class}, {most} at most", owner.bins().len(class));
    }
    world.check().unwrap();
}

/// What all bins of a class may hold together, where there are many heaps, bounds what others hand over, too.
#[test]
fn a_drain_brings_a_bin_no_further_than_twice_its_share() {
    let world = World::new(4096);
    let (owner, other) = (world.heap(), world.heap());
    world.shared.usage.set_n_heaps(16, 0);
    let class = class_of(1000);
    owner.bins().set_capacity(class, 1000);
    hand_over(other, &(0..1500).map(|_| owner.allocate(1000, 1).start).collect::<Vec<_>>());
    drain(owner);
    let (len, most) = (owner.bins().len(class), i64::from(flush::bin_capacity(owner, class)));
    assert!(len <= 2 * most && most < 300, "{len} blocks, of which it may have {most}");
    world.check().unwrap();
}

fn blocks_of(owner: Own<'_, Fake>, n: usize) -> Vec<*mut u8> {
    (0..n).map(|_| owner.allocate(40, 1).start).collect()
}

/// How many blocks wait in the two inboxes, which stay as they are.
fn n_waiting(world: &World, owner: Own<'_, Fake>) -> [usize; 2] {
    let (mailbox, view) = (owner.heap().mailbox(), world.shared.pages.view());
    [mailbox.inbox(), mailbox.looked_through()].map(|inbox| {
        let (blocks, mut n) = (inbox.take_for_owner(|| mailbox.key()), 0);
        if !blocks.is_empty() {
            let _ = blocks.last(&view, |_, _, _| {
                n += 1;
                true
            });
            inbox.put_back(blocks).unwrap();
        }
        n
    })
}

#[test]
fn an_allocation_takes_back_some_thousands_of_blocks_and_the_next_ones_the_others() {
    for level in ["off", "default", "checks"] {
        let world = World::hardened(4096, level);
        let (owner, other) = (world.heap(), world.heap());
        hand_over(other, &blocks_of(owner, 20_000));
        let committed = world.fresh_pages();
        let mut before = n_waiting(&world, owner)[0];
        assert!(before > 19_000, "{before} blocks");
        while before > 0 {
            drain_some(owner);
            let [now, none] = n_waiting(&world, owner);
            let (taken, most) = (before - now, DRAINED_MOST as usize);
            assert!(taken < most + 300 && (now == 0 || taken >= most), "{taken} blocks at {level}");
            assert_eq!(none, 0);
            before = now;
        }
        let again: std::collections::BTreeSet<_> = (0..20_000).map(|_| owner.allocate(40, 1).start.addr()).collect();
        assert_eq!(again.len(), 20_000);
        // At `checks` some are still in the other heap's quarantine.
        assert!(world.fresh_pages() <= committed + 1, "at {level}");
        world.check().unwrap();
    }
}

#[test]
fn an_allocation_that_finds_a_mass_of_blocks_takes_as_many_as_a_bin_holds_and_no_more_than_some_thousands() {
    let world = World::hardened(4096, "default");
    let (owner, other) = (world.heap(), world.heap());
    hand_over(other, &blocks_of(owner, 20_000));
    while !owner.bins().is_empty(class_of(40)) {
        let _ = owner.allocate(40, 1);
    }
    let _ = owner.allocate(40, 1);
    let [left, _] = n_waiting(&world, owner);
    assert!(left > 20_000 - 2 * DRAINED_MOST as usize, "{left} blocks are left");
    world.check().unwrap();
}

#[test]
fn what_comes_while_others_are_taken_back_waits_beside_what_is_left_of_them() {
    let world = World::hardened(4096, "default");
    let (owner, other) = (world.heap(), world.heap());
    let mailbox = owner.heap().mailbox();
    let blocks = blocks_of(owner, 10_000);
    // As another thread might hand more over in the middle of a drain.
    let take_some_while = |new: &[*mut u8]| {
        let blocks = mailbox.take();
        hand_over(other, new);
        take_back(owner, blocks, 1000)
    };
    hand_over(other, &blocks[..5000]);
    assert!(!take_some_while(&blocks[5000..8000]));
    let [new, left] = n_waiting(&world, owner);
    assert!(new == 3000 && (3700..=4000).contains(&left), "{new} and {left} blocks");
    assert!(take_some_while(&blocks[8000..]), "there is no third place, so it takes all");
    assert_eq!(n_waiting(&world, owner), [2000, left]);
    drain(owner);
    assert_eq!(n_waiting(&world, owner), [0, 0]);
    world.check().unwrap();
}
