use super::*;
use crate::config::key;
use crate::testing::{World, fill, free, is_filled};
use core::ptr;
use std::vec::Vec;

/// A heap of a thread that has allocated a few blocks; and these.
fn used(world: &World) -> (Own<'_, freestone_os::fake::Fake>, Vec<*mut u8>) {
    let heap = world.heap();
    let blocks: Vec<_> = (1..40).map(|i| heap.allocate(i * 20, 1).start).collect();
    blocks.iter().for_each(|&block| fill(block, b'K', 20));
    (heap, blocks)
}

#[test]
fn the_next_thread_frees_the_blocks_of_the_last_as_its_own() {
    let world = World::new(4096);
    let (first, blocks) = used(&world);
    let heap = first.heap();
    first.count_exit_round();
    world.leave(first);
    assert_eq!((world.threads.n_spare(), world.threads.n_alive(), world.shared.usage.n_heaps()), (1, 0, 0));
    world.check().unwrap();
    let second = world.next_heap();
    assert!(ptr::eq(second.heap(), heap), "it gets the whole heap");
    assert_eq!((world.threads.n_spare(), world.threads.n_alive(), world.shared.usage.n_heaps()), (0, 1, 1));
    assert_eq!(second.count_exit_round(), 0);
    let before = second.heap().n_handovers();
    assert!(blocks.iter().all(|&block| is_filled(block, b'K', 20)));
    blocks.iter().for_each(|&block| free(second, block));
    route::send_all(second);
    assert_eq!(second.heap().n_handovers(), before);
    world.end(second);
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0);
}

#[test]
fn blocks_that_others_free_meanwhile_are_not_lost() {
    for ends_first in [false, true] {
        let world = World::new(4096);
        let other = world.heap();
        let (heap, blocks) = used(&world);
        // One half is buffered before the heap is spare, the other half while it is.
        let (before, after) = blocks.split_at(blocks.len() / 2);
        before.iter().for_each(|&block| free(other, block));
        world.leave(heap);
        after.iter().for_each(|&block| free(other, block));
        if ends_first {
            world.threads.end_spare(&world.shared, Which::All);
        }
        route::send_all(other);
        world.check().unwrap();
        world.threads.end_spare(&world.shared, Which::All);
        world.end(other);
        world.check().unwrap();
        assert_eq!(world.small_span_pages(), 0, "ends first: {ends_first}");
    }
}

/// Nobody ends a spare heap while the program's only thread sleeps.
#[test]
fn a_heap_of_which_the_program_has_much_ends_with_its_thread_so_that_nothing_waits_in_its_inbox() {
    let world = World::new(4096);
    let (other, heap) = (world.heap(), world.heap());
    let (n, bytes) = if cfg!(miri) { (170, 30_000) } else { (5000, 1000) };
    let blocks: Vec<_> = (0..n).map(|_| heap.allocate(bytes, 1).start).collect();
    world.leave(heap);
    assert_eq!(world.threads.n_spare(), 0);
    blocks.iter().for_each(|&block| free(other, block));
    world.end(other);
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0);
}

#[test]
fn a_heap_that_leaves_hands_over_what_it_has_of_others() {
    let world = World::new(4096);
    let (owner, blocks) = used(&world);
    let leaving = world.heap();
    blocks.iter().for_each(|&block| free(leaving, block));
    world.leave(leaving);
    world.end(owner);
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0);
}

#[test]
fn spare_heaps_end_after_the_decay_time_or_all_at_once() {
    let world = World::new(4096);
    world.set(key::DECAY_MS, "100");
    let (old, new) = (world.heap(), world.heap());
    world.leave(old);
    world.os().advance_ms(60);
    world.leave(new);
    let n_after = |which| {
        world.threads.end_spare(&world.shared, which);
        world.check().unwrap();
        world.threads.n_spare()
    };
    assert_eq!(n_after(Which::Expired), 2);
    world.os().advance_ms(40);
    assert_eq!(n_after(Which::Expired), 1);
    assert_eq!(n_after(Which::All), 0);
    assert_eq!(world.threads.n_alive(), 0);
    world.set(key::DECAY_MS, &std::format!("{}", crate::config::NEVER_MS));
    world.leave(world.heap());
    world.os().advance_ms(1_000_000);
    assert_eq!((n_after(Which::Expired), n_after(Which::All)), (1, 0));
}

#[test]
fn watched_heaps_and_those_of_a_process_that_keeps_nothing_end_at_once() {
    for (option, value) in [(key::HARDEN, "checks"), (key::DECAY_MS, "0")] {
        let world = World::new(4096);
        world.set(option, value);
        let (heap, blocks) = used(&world);
        blocks.iter().for_each(|&block| free(heap, block));
        world.leave(heap);
        assert_eq!((world.threads.n_spare(), world.threads.n_alive(), world.small_span_pages()), (0, 0, 0));
    }
}

#[test]
fn a_leaving_heap_gives_its_cached_runs_back() {
    let world = World::new(4096);
    let heap = world.heap();
    for _ in 0..100 {
        let block = heap.allocate(200_000, 1).start;
        free(heap, block);
    }
    world.leave(heap);
    assert_eq!(world.shared.pages.stats().large_pages, 0);
    assert_eq!(world.threads.n_spare(), 1);
    world.check().unwrap();
}

#[test]
fn a_forked_child_keeps_spare_heaps() {
    let world = World::new(4096);
    let (own, (spare, blocks), other) = (world.heap(), used(&world), world.heap());
    world.leave(spare);
    world.orphan_others(own);
    assert_eq!((world.threads.n_spare(), world.threads.n_alive()), (1, 1));
    assert_eq!((spare.heap().life(), other.heap().life()), (Life::Spare, Life::Orphaned));
    blocks.iter().for_each(|&block| free(own, block));
    route::send_all(own);
    let next = world.next_heap();
    assert!(ptr::eq(next.heap(), spare.heap()));
    world.end(next);
    world.check().unwrap();
}

#[test]
fn a_handler_that_interrupts_a_thread_in_the_registry_ends_no_spare_heap_and_waits_for_none() {
    let world = World::new(4096);
    world.leave(world.heap());
    world.os().advance_ms(1_000_000);
    {
        let _interrupted = world.threads.registry.lock();
        world.threads.end_spare(&world.shared, Which::Expired);
    }
    assert_eq!(world.threads.n_spare(), 1);
    world.threads.end_spare(&world.shared, Which::Expired);
    assert_eq!(world.threads.n_spare(), 0);
}

#[test]
fn there_is_a_spare_heap_between_one_thread_and_the_next() {
    let world = World::new(4096);
    let heap = world.heap();
    assert!(!world.threads.has_spare());
    world.leave(heap);
    assert!(world.threads.has_spare());
    let _heap = world.next_heap();
    assert!(!world.threads.has_spare());
}
