use super::tick;
use crate::size_class::{N_CLASSES, class_of};
use crate::testing::{World, free};
use std::vec::Vec;

#[test]
fn unused_caches_are_flushed_at_a_decay_tick_and_their_memory_is_purged_after_another() {
    let world = World::new(4096);
    let heap = world.heap();
    let blocks: Vec<_> = (0..5000).map(|i| heap.allocate(16 + i % 900, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    for _ in 0..2 {
        world.os().advance_ms(1500);
        free(heap, heap.allocate(1 << 20, 1).start);
        world.check().unwrap();
    }
    let pages = world.shared.pages.stats();
    // Current spans stay, and the block just freed, with what it was joined to.
    assert!((0..crate::size_class::N_CLASSES).all(|class| heap.bins().len(class) == 0));
    assert!(pages.dirty_pages <= 32, "{} pages are still dirty", pages.dirty_pages);
}

#[test]
fn a_tick_empties_idle_bins_and_leaves_active_ones() {
    let world = World::new(4096);
    let heap = world.heap();
    let (idle, active) = (class_of(64), class_of(1000));
    let free = |bytes| {
        let block = heap.allocate(bytes, 1).start;
        free(heap, block);
    };
    [64, 1000].into_iter().for_each(free);
    tick(heap, 10_000);
    free(1000);
    tick(heap, 10_001);
    assert!(!heap.bins().is_empty(idle), "the decay time is not over");
    tick(heap, 20_000);
    assert!(heap.bins().is_empty(idle) && !heap.bins().is_empty(active));
    tick(heap, 30_000);
    assert!(heap.bins().is_empty(active), "it is idle now, too");
    world.check().unwrap();
}

/// Also of a bin that is empty.
#[test]
fn a_tick_takes_back_the_room_that_idle_bins_have_borrowed() {
    let world = World::new(4096);
    let heap = world.heap();
    world.shared.usage.set_n_heaps(1000, 0);
    let (class, room) = (class_of(4096), world.shared.usage.room());
    // The bin may hold one block, and with what it borrows at the second refill, two.
    for expected_room in [0, 1] {
        let block = heap.allocate(4096, 1).start;
        assert_eq!(heap.bins().room(class), expected_room);
        free(heap, block);
    }
    let _last = heap.allocate(4096, 1);
    assert!(heap.bins().is_empty(class) && room.lent_bytes() == 4096);
    tick(heap, 10_000);
    assert_eq!(room.lent_bytes(), 4096, "it was in use a moment ago");
    tick(heap, 20_000);
    assert_eq!((room.lent_bytes(), heap.bins().borrowed(class)), (0, 0));
}

#[test]
fn a_tick_hands_over_what_is_buffered_for_other_owners() {
    let world = World::new(4096);
    let (heap, owner) = (world.heap(), world.heap());
    let block = owner.allocate(64, 1).start;
    free(heap, block);
    assert_eq!(heap.heap().n_handovers(), 0);
    tick(heap, 10_000);
    assert_eq!(heap.heap().n_handovers(), 1);
    assert!(!owner.remote().mailbox().take().is_empty());
}

#[test]
fn a_tick_gives_back_the_blocks_that_a_watched_heap_has_at_hand() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let at_hand = || (0..N_CLASSES).map(|class| heap.watch().unwrap().magazine(class).len()).sum::<usize>();
    let block = heap.allocate(64, 1).start;
    assert!(at_hand() > 0);
    tick(heap, 10_000);
    assert_eq!(at_hand(), 0);
    free(heap, block);
    world.check().unwrap();
}
