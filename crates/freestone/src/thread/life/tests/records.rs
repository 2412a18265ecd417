//! What a heap leaves when it ends, becomes spare or cannot begin, and what a fork waits for.

use super::*;
use crate::config::key;
use crate::size_class::class_of;
use crate::thread::life::succession::Which;
use freestone_os::Errno;
use freestone_os::fake::Failure;

/// Draws generations, as for heaps that end at once, until `first` comes again: the one before is drawn last.
#[cfg(not(miri))]
fn wrap(generations: &mut Generations, first: Generation) {
    while generations.draw(|_| false) != first {}
}

#[cfg(not(miri))]
#[test]
fn generations_that_wrapped_skip_those_in_use_whoever_uses_them() {
    let world = World::new(4096);
    let (own, spare, lost) = (world.heap(), world.heap(), world.heap());
    let explicit = world.explicit_heap();
    let used = [own, spare, lost].map(Own::generation);
    world.leave(spare);
    world.orphan_others(own);
    {
        let mut registry = world.threads.registry.lock();
        wrap(&mut registry.of_threads, used[0]);
        wrap(&mut registry.of_explicit, explicit.gated().heap().generation());
    }
    let [one, two] = [(); 2].map(|()| world.heap());
    assert!(!used.contains(&one.generation()) && !used.contains(&two.generation()));
    let other = world.explicit_heap();
    assert_ne!(other.gated().heap().generation(), explicit.gated().heap().generation());
    // That of a heap which has ended is free.
    let ended = one.generation();
    world.end(one);
    {
        let mut registry = world.threads.registry.lock();
        wrap(&mut registry.of_threads, two.generation());
        wrap(&mut registry.of_threads, used[2]);
    }
    assert_eq!(world.heap().generation(), ended);
    world.check().unwrap();
}

#[test]
fn the_record_of_a_heap_that_could_not_begin_is_used_again() {
    for level in ["off", "checks", "full"] {
        let world = World::hardened(4096, level);
        for nth_call in 0..20 {
            world.os().plan(Some(Failure { nth_call, errno: Errno::NOMEM, for_good: false }));
            let heap = world.try_heap();
            world.os().plan(None);
            heap.into_iter().for_each(|heap| world.end(heap));
        }
        world.end(world.heap());
        assert!(world.threads.iter().count() <= 1, "{level}: a record is lost");
        assert_eq!((world.threads.n_alive(), world.shared.usage.n_heaps()), (0, 0));
        world.check().unwrap();
    }
}

#[test]
fn the_blocks_that_are_out_of_a_deleted_heap_count_as_freed() {
    let world = World::new(4096);
    let (heap, explicit) = (world.heap(), world.explicit_heap());
    let blocks: Vec<_> = (0..100).map(|_| allocate_in(explicit)).collect();
    free(explicit.enter().own(), blocks[0]);
    free(heap, blocks[1]);
    world.destroy(explicit);
    let counts: Vec<_> = world.threads.iter().map(|heap| heap.counts(class_of(BLOCK))).collect();
    let [allocs, frees] = [counts.iter().map(|of| of.allocs).sum::<u64>(), counts.iter().map(|of| of.frees).sum()];
    assert_eq!((allocs, frees), (100, 100));
}

/// Bytes that heaps have published to be live: the peak that comes of some more.
fn published_live(world: &World) -> i64 {
    const MORE: i64 = 1 << 40;
    world.shared.usage.publish_live(MORE);
    world.shared.usage.publish_live(-MORE);
    world.shared.usage.peak_live_bytes() as i64 - MORE
}

#[test]
fn a_heap_that_becomes_spare_has_published_what_is_live() {
    let world = World::new(4096);
    let heap = world.heap();
    let blocks: Vec<_> = (0..100).map(|_| allocate(heap)).collect();
    world.leave(heap);
    assert_eq!(heap.accounts().unpublished_free(), 0);
    assert_eq!(published_live(&world), 100 * BLOCK as i64);
    let next = world.next_heap();
    blocks.into_iter().for_each(|block| free(next, block));
    let blocks: Vec<_> = (0..1000).map(|_| allocate(next)).collect();
    blocks[..990].iter().for_each(|&block| free(next, block));
    upkeep::flush_all(next);
    // Out of spans, which have fewer free blocks then.
    (0..50).for_each(|_| fill(allocate(next), 1, BLOCK));
    assert_ne!(next.accounts().unpublished_free(), 0);
    world.leave(next);
    assert_eq!(next.accounts().unpublished_free(), 0);
}

#[test]
fn a_heap_that_ends_or_becomes_spare_has_published_which_large_blocks_are_not_live() {
    for leaves in [false, true] {
        let world = World::new(4096);
        let heap = world.heap();
        // The last of them is freed into the cache.
        for _ in 0..40 {
            free(heap, heap.allocate(3 * PAGE_BYTES, 1).start);
        }
        assert!(heap.cache().cached_pages() > 0);
        if leaves {
            world.leave(heap)
        } else {
            world.end(heap)
        }
        // It was never more than one block.
        world.shared.usage.publish_live(1 << 40);
        assert_eq!(world.shared.usage.peak_live_bytes(), 1 << 40, "leaves: {leaves}");
    }
}

#[test]
fn a_heap_that_ends_has_published_what_it_freed_of_others_and_what_is_free_in_its_spans() {
    let world = World::new(4096);
    let (owner, other) = (world.heap(), world.heap());
    let blocks: Vec<_> = (0..100).map(|_| allocate(owner)).collect();
    blocks[..99].iter().for_each(|&block| free(owner, block));
    let kept: Vec<_> = (0..50).map(|_| owner.allocate(1000, 1).start).collect();
    world.leave(owner);
    world.threads.end_spare(&world.shared, Which::All);
    let free_bytes = world.shared.usage.free_in_spans();
    assert!(free_bytes > 0, "the span of the last small block has others that are free");
    free(other, blocks[99]);
    kept.into_iter().for_each(|block| free(other, block));
    world.end(other);
    assert_eq!((published_live(&world), world.shared.usage.free_in_spans()), (0, 0));
    world.check().unwrap();
}

/// Blocks of 30,000 bytes wait in the inbox of a heap.
fn with_waiting(world: &World) -> (Own<'_, freestone_os::fake::Fake>, Own<'_, freestone_os::fake::Fake>) {
    let (owner, other) = (world.heap(), world.heap());
    let blocks: Vec<_> = (0..100).map(|_| owner.allocate(30_000, 1).start).collect();
    blocks.into_iter().for_each(|block| free(other, block));
    route::send_all(other);
    (owner, other)
}

#[test]
fn nobody_looks_through_inboxes_while_the_process_forks() {
    let world = World::new(4096);
    let (owner, _) = with_waiting(&world);
    let newest = || owner.heap().mailbox().inbox().newest();
    let (before, look) = (newest(), || world.threads.purge_inboxes(&world.shared, Which::All, &|| false));
    world.threads.lock_for_fork();
    assert!(look(), "they still wait");
    assert_eq!(newest(), before);
    // SAFETY: this thread took the locks, and goes on after the fork.
    world.threads.unlock_after_fork(unsafe { Forker::new() });
    assert!(!look());
    assert_eq!(newest(), 0);
}

#[test]
fn who_is_to_stop_looks_through_no_further_inbox() {
    let world = World::new(4096);
    world.set(key::DECAY_MS, "10");
    let (owner, other) = with_waiting(&world);
    let explicit = world.explicit_heap();
    let blocks: Vec<_> = (0..100).map(|_| explicit.enter().own().allocate(30_000, 1).start).collect();
    blocks.into_iter().for_each(|block| free(other, block));
    let newest = || [owner.heap().mailbox(), explicit.gated().heap().mailbox()].map(|mailbox| mailbox.inbox().newest());
    let before = newest();
    assert!(before[0] != 0 && before[1] != 0);
    assert!(world.threads.purge_inboxes(&world.shared, Which::All, &|| true));
    assert_eq!(newest(), before);
    let is_looked_through = || owner.heap().mailbox().looked_through().newest() != 0;
    assert!(world.threads.purge_inboxes(&world.shared, Which::All, &is_looked_through));
    assert_eq!(newest(), [0, before[1]]);
    world.threads.purge_inboxes(&world.shared, Which::All, &|| false);
    assert_eq!(newest(), [0, 0]);
}

#[test]
fn a_heap_that_begins_in_the_record_of_another_has_not_learned_what_that_did() {
    let (world, class) = (World::new(4096), class_of(BLOCK));
    let come_and_go = |heap: Own<'_, freestone_os::fake::Fake>, n: u32| {
        (0..n).for_each(|_| free(heap, heap.allocate(300_000, 1).start))
    };
    let first = world.heap();
    let blocks: Vec<_> = (0..1000).map(|_| allocate(first)).collect();
    blocks.into_iter().for_each(|block| free(first, block));
    assert!(first.bins().capacity(class, || 0) > 0);
    // Once more, and the cache has room for the length.
    come_and_go(first, 15);
    assert_eq!(first.cache().cached_pages(), 0);
    let record = ptr::from_ref(first.heap());
    world.end(first);
    let second = world.heap();
    assert!(ptr::eq(second.heap(), record));
    assert_eq!(second.bins().capacity(class, || 0), 0);
    come_and_go(second, 5);
    assert_eq!(second.cache().cached_pages(), 0);
}
