//! Blocks that are there twice, threads that take what waits now and then, and heaps that begin in a used record.

use super::*;
use std::cell::Cell;

#[test]
fn a_block_that_is_there_twice_ends_the_look_though_the_links_lead_round() {
    let world: &'static World = std::boxed::Box::leak(std::boxed::Box::new(World::hardened(4096, "off")));
    let (owner, other) = (world.heap(), world.heap());
    let blocks = filled(owner, 200, 30_000, 7);
    for block in [&blocks[..], &blocks[..1]].concat() {
        free_all(other, &[block]);
    }
    let (before, n_asked) = (purged_bytes(world), Cell::new(0));
    look_while(world, owner, 0, || {
        n_asked.set(n_asked.get() + 1);
        assert!(n_asked.get() < 1000, "round and round");
        false
    });
    assert_eq!(purged_bytes(world), before);
    assert_ne!(owner.heap().mailbox().inbox().newest(), 0, "its thread finds out");
}

#[test]
fn a_block_that_is_freed_again_after_it_was_looked_through_is_left_to_its_thread_with_those_beside_it() {
    let (world, owner, other) = two(4096, "default");
    world.set(key::MISUSE, "ignore");
    let blocks = filled(owner, 4000, 500, 7);
    free_all(other, &blocks[..3990]);
    look(world);
    assert_ne!(owner.heap().mailbox().looked_through().newest(), 0);
    // Not the first of a stretch, so that no link and no mark is written over.
    let again = blocks[..3990].iter().find(|&&block| is_filled(block, 0, 500)).expect("its memory went back");
    free_all(other, &[&blocks[3990..], &[*again]].concat());
    look(world);
    let mailbox = owner.heap().mailbox();
    assert!(mailbox.looked_through().newest() != 0 && mailbox.inbox().newest() != 0, "both are left");
}

#[test]
fn more_stretches_than_one_call_purges_all_go_back() {
    let (world, owner, other) = two(4096, "default");
    let blocks = filled(owner, 200, 20_000, 7);
    let (freed, kept): (Vec<_>, Vec<_>) = blocks.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    free_all(other, &freed.into_iter().map(|(_, block)| *block).collect::<Vec<_>>());
    let before = purged_bytes(world);
    look(world);
    let purged = purged_bytes(world) - before;
    assert!(purged >= 100 * (20_000 - 2 * 4096) as u64, "{purged} bytes of 100 blocks");
    let kept: Vec<_> = kept.into_iter().map(|(_, block)| *block).collect();
    assert!(kept.iter().all(|&block| is_filled(block, 7, 20_000)));
    free_all(other, &kept);
    end(world, [owner, other]);
}

#[test]
fn what_waits_for_a_thread_that_took_others_meanwhile_has_not_waited_long() {
    let (world, owner, other) = two(4096, "default");
    world.set(key::DECAY_MS, "10");
    let look_expired = || world.threads.purge_inboxes(&world.shared, Which::Expired, &|| false);
    let mut blocks = filled(owner, 4000, 500, 7);
    free_all(other, &blocks.split_off(2000));
    assert!(look_expired(), "they may wait");
    world.os().advance_ms(6);
    drain(owner);
    free_all(other, &blocks);
    let before = purged_bytes(world);
    assert!(look_expired());
    world.os().advance_ms(6);
    assert!(look_expired());
    assert_eq!(purged_bytes(world), before, "the thread is not idle");
    world.os().advance_ms(6);
    assert!(!look_expired());
    assert!(purged_bytes(world) > before);
    end(world, [owner, other]);
}

#[test]
fn blocks_of_a_heap_in_a_used_record_are_kept_for_its_thread_as_those_of_the_first() {
    let (world, owner, other) = two(4096, "default");
    world.end(owner);
    let owner = world.heap();
    free_all(other, &filled(owner, 4000, 500, 7));
    look(world);
    let mailbox = owner.heap().mailbox();
    assert!(mailbox.inbox().newest() == 0 && mailbox.looked_through().newest() != 0);
    end(world, [owner, other]);
}

#[test]
fn a_fork_has_who_looks_through_inboxes_stop_and_waits_for_that() {
    let (looking, is_held) = (Looking::new(), AtomicBool::new(true));
    let held = looking.begin().expect("nobody looks");
    std::thread::scope(|scope| {
        let forks = scope.spawn(|| {
            looking.lock_for_fork();
            assert!(!is_held.load(Ordering::Relaxed), "it did not wait");
            // SAFETY: this thread took the lock.
            looking.unlock_after_fork(unsafe { Forker::new() });
        });
        let began = std::time::Instant::now();
        while !looking.is_forking.load(Ordering::Relaxed) && began.elapsed().as_secs() < 20 {
            std::thread::yield_now();
        }
        assert!(looking.is_forking.load(Ordering::Relaxed));
        is_held.store(false, Ordering::Relaxed);
        drop(held);
        forks.join().unwrap();
    });
    assert!(!looking.is_forking.load(Ordering::Relaxed) && looking.begin().is_some());
}
