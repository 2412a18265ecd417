//! Hardened explicit heaps beside the heaps of threads, hardened or not.

use super::*;
use crate::config::Harden;
use crate::testing::{fill, free_as, is_filled, reallocate, span_of};
use crate::thread::explicit::ExplicitHeap;

/// An explicit heap at the level `checks`.
fn checked(world: &World) -> &ExplicitHeap<Fake> {
    // SAFETY: what the heaps share outlives the borrow.
    unsafe { world.threads.create_explicit(&world.shared, Harden::Checks) }.expect("the fake kernel has memory")
}

#[test]
fn a_large_block_in_the_memory_of_a_watched_one_is_not_watched() {
    let world = World::new(4096).ignoring_misuse();
    let (heap, explicit) = (world.heap(), checked(&world));
    let size = 300_000;
    let first = explicit.enter().own().allocate(size, 1).start;
    free(explicit.enter().own(), first);
    upkeep::flush_all(explicit.enter().own());
    let block = allocate(heap, size);
    assert_eq!(block, first, "the same memory");
    let usable = heap.usable_bytes(block).unwrap();
    assert_eq!(usable % 65_536, 0, "all of the run");
    fill(block, 1, usable);
    let longer = reallocate(heap, block, size + 1000);
    free(heap, longer);
    assert_eq!(crimes(), []);
    world.destroy(explicit);
    world.check().unwrap();
}

#[test]
fn a_thread_that_is_not_watched_resizes_a_watched_block_as_one() {
    let world = World::new(4096).ignoring_misuse();
    let (heap, explicit) = (world.heap(), checked(&world));
    for (size, resized) in [(100, 105), (100, 20), (1000, 1010), (20, 5000), (300_000, 50)] {
        let block = explicit.enter().own().allocate(size, 1).start;
        fill(block, 7, size);
        let block = reallocate(heap, block, resized);
        let usable = heap.usable_bytes(block).unwrap();
        assert!(usable >= resized && is_filled(block, 7, size.min(resized)), "{size} to {resized}");
        fill(block, 8, usable);
        free(heap, block);
        drain(explicit.enter().own());
        assert_eq!(crimes(), [], "{size} to {resized}");
    }
    world.destroy(explicit);
    world.check().unwrap();
}

#[test]
fn a_watched_thread_keeps_no_block_of_an_explicit_heap_back() {
    for level in LEVELS_WATCHED {
        let world = World::hardened(4096, level).ignoring_misuse();
        let (heap, explicit) = (world.heap(), checked(&world));
        let blocks: Vec<_> = [8, 100, 1000, 20_000].map(|size| explicit.enter().own().allocate(size, 1).start).into();
        for &block in &blocks {
            free(heap, block);
            assert_eq!(explicit.gated().heap().mailbox().inbox().newest(), block.addr());
        }
        world.destroy(explicit);
        upkeep::flush_all(heap);
        assert_eq!(crimes(), []);
        world.check().unwrap();
    }
}

/// The levels at which every heap is watched.
const LEVELS_WATCHED: [&str; 2] = ["checks", "full"];

/// Where its span has no block yet, memory may have one of an earlier heap that was deleted, with its trailer.
#[test]
fn a_block_of_a_deleted_heap_is_not_taken_for_one_of_the_heap_that_has_its_memory() {
    let world = World::new(4096).ignoring_misuse();
    let deleted = checked(&world);
    let blocks: Vec<_> = (0..2000).map(|_| deleted.enter().own().allocate(100, 1).start).collect();
    blocks.iter().for_each(|&block| fill(block, 9, 100));
    world.destroy(deleted);
    let explicit = checked(&world);
    let block = explicit.enter().own().allocate(100, 1).start;
    let span = span_of(&world, block);
    let end = span.start().addr() + span.n_pages().to_bytes().0;
    let stale = blocks.iter().filter(|stale| (span.start().addr() + 40_000..end).contains(&stale.addr()));
    let stale: Vec<_> = stale.copied().collect();
    assert!(stale.len() > 100, "the same memory");
    let out = span.n_out.get();
    for claim in [Claim::of(Family::C), Claim::NOTHING] {
        for &block in &stale {
            free_as(explicit.enter().own(), block, claim);
            assert_eq!(crimes(), [Misuse::Foreign]);
        }
    }
    assert_eq!(span.n_out.get(), out);
    free(explicit.enter().own(), block);
    assert_eq!(crimes(), []);
    world.destroy(explicit);
    world.check().unwrap();
}

#[test]
fn a_write_to_a_block_of_another_heap_that_waits_is_reported_when_it_leaves() {
    for level in LEVELS_WATCHED {
        let world = World::hardened(4096, level).ignoring_misuse();
        let (owner, other) = (world.heap(), world.heap());
        let block = allocate(owner, 100);
        free(other, block);
        write(block, 50, 0x77);
        upkeep::flush_all(other);
        let crimes = crimes();
        assert!(matches!(crimes[..], [Misuse::WriteAfterFree { size: Some(100), .. }]), "{level}: {crimes:?}");
    }
}

#[test]
fn a_large_block_that_is_held_back_is_live_no_more() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    let blocks: Vec<_> = (0..10).map(|_| allocate(heap, 300_000)).collect();
    assert!(!heap.watch().unwrap().live().is_none());
    blocks.into_iter().for_each(|block| free(heap, block));
    assert!(heap.watch().unwrap().live().is_none());
}

#[test]
fn memory_that_a_purge_leaves_as_it_is_does_not_count_as_zero() {
    let world = World::hardened(4096, "full").ignoring_misuse();
    world.os().keep_contents_on_purge();
    let heap = world.heap();
    for _ in 0..20 {
        let block = heap.allocate(300_000, 1);
        assert!(!block.zero || is_filled(block.start, 0, 300_000));
        fill(block.start, 7, 300_000);
        free(heap, block.start);
    }
    assert_eq!(crimes(), []);
}
