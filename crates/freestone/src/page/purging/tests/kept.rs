//! Memory that the kernel would not take back.

use crate::config::key;
use crate::page::tests::MIB;
use crate::testing::{World, fill, free};
use freestone_os::Errno;
use freestone_os::fake::Failure;
use std::vec::Vec;

/// As after a process has unlocked its memory: while that is locked, it is not taken back.
#[test]
fn what_the_kernel_would_not_take_back_is_offered_again_by_a_purge_that_is_asked_for() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1m");
    let heap = world.heap();
    let blocks: Vec<_> = (0..120).map(|_| heap.allocate(MIB / 4, 1).start).collect();
    let (go, stay): (Vec<_>, Vec<_>) = blocks.into_iter().zip(0..).partition(|(_, n)| n % 3 != 0);
    world.os().plan(Some(Failure { nth_call: 0, errno: Errno::AGAIN, for_good: true }));
    go.into_iter().for_each(|(block, _)| free(heap, block));
    let pages = &world.shared.pages;
    pages.purge();
    assert!(pages.stats().stuck_pages >= 19 * 16, "{:?}", pages.stats());
    world.os().plan(None);
    stay.into_iter().for_each(|(block, _)| free(heap, block));
    world.check().unwrap();
    assert!(pages.purge() >= 19 * MIB);
    assert_eq!(pages.stats().free_with_memory(), 0);
    world.check().unwrap();
}

/// As in a process that has locked its memory.
#[test]
fn what_the_kernel_would_not_take_back_is_unmapped_if_it_is_long() {
    for purge in ["dontneed", "free"] {
        let world = World::new(4096);
        world.set(key::DIRTY_MAX, "1m");
        world.set(key::PURGE, purge);
        // Else nothing would be unmapped that goes back lazily, whatever the option.
        if purge == "free" {
            world.os().charge_mappings();
        }
        let heap = world.heap();
        let blocks: Vec<_> = (0..60).map(|_| heap.allocate(MIB, 1).start).collect();
        world.os().keep_memory();
        blocks.into_iter().for_each(|block| free(heap, block));
        let pages = &world.shared.pages;
        pages.purge();
        let stats = pages.stats();
        let (most, rest) = if purge == "free" {
            (stats.stuck_pages, stats.reserved_pages)
        } else {
            (stats.reserved_pages, stats.stuck_pages)
        };
        assert!(most >= 58 * 16 && rest < 128, "{purge}: {stats:?}");
        let again: Vec<_> = (0..20).map(|_| heap.allocate(3 * MIB, 1).start).collect();
        again.iter().for_each(|&block| fill(block, 1, 3 * MIB));
        world.check().unwrap();
        again.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}
