//! What other threads do while an inbox is looked through.

use super::*;
use std::cell::Cell;

#[test]
fn blocks_that_come_while_the_inbox_is_looked_through_are_looked_through_next_as_are_all_if_it_has_to_stop() {
    for (bytes_least, stops, come) in [(0, false, true), (usize::MAX, false, true), (0, true, false), (0, true, true)] {
        let (world, owner, other, left) = with_many_waiting();
        world.set(key::DECAY_MS, "10");
        let left = Cell::new(left);
        look_while(world, owner, bytes_least, || {
            if come {
                free_all(other, &left.take());
            }
            stops
        });
        let before = purged_bytes(world);
        let expired = || world.threads.purge_inboxes(&world.shared, Which::Expired, &|| false);
        world.os().advance_ms(20);
        assert!(expired(), "they may wait");
        world.os().advance_ms(10);
        assert!(!expired());
        assert!(purged_bytes(world) > before, "{bytes_least}, {stops}, {come}");
        free_all(other, &left.take());
        end(world, [owner, other]);
    }
}

#[test]
fn the_background_thread_learns_of_blocks_that_come_while_it_looks() {
    let (world, owner, other, left) = with_many_waiting();
    world.set(key::DECAY_MS, "10");
    let (left, is_looking) = (Cell::new(left), Cell::new(false));
    let look_expired = || {
        world.threads.purge_inboxes(&world.shared, Which::Expired, &|| {
            // Asked before the first inbox is looked through, and while that is done.
            if is_looking.replace(owner.heap().mailbox().inbox().newest() == 0) {
                free_all(other, &left.take());
            }
            false
        })
    };
    assert!(look_expired(), "they may wait");
    world.os().advance_ms(10);
    let before = purged_bytes(world);
    assert!(look_expired(), "others have come");
    let purged = purged_bytes(world) - before;
    assert!(purged > 0 && left.take().is_empty());
    world.os().advance_ms(20);
    assert!(!look_expired());
    assert!(purged_bytes(world) - before > 3 * purged / 2);
    end(world, [owner, other]);
}

/// Two heaps, the second of which has freed 1000 blocks of the first's, and 1000 that are left of them.
fn with_many_waiting() -> (&'static World, Own<'static, Fake>, Own<'static, Fake>, Vec<*mut u8>) {
    let (world, owner, other) = two(4096, "default");
    let mut blocks = filled(owner, 2000, 512, 7);
    let left = blocks.split_off(1000);
    free_all(other, &blocks);
    (world, owner, other, left)
}

#[test]
fn who_is_to_stop_puts_the_blocks_back_behind_what_has_come_meanwhile() {
    let (world, owner, other, left) = with_many_waiting();
    let (before, left) = (purged_bytes(world), Cell::new(left));
    look_while(world, owner, 0, || {
        free_all(other, &left.take());
        true
    });
    assert_eq!(purged_bytes(world), before);
    let n_out = || owner.spans().of(class_of(512)).n_out() - owner.bins().len(class_of(512));
    let n_before = n_out();
    drain(owner);
    assert_eq!(n_before - n_out(), 2000);
    end(world, [owner, other]);
}

#[test]
fn blocks_reach_their_spans_if_the_thread_ends_meanwhile_also_if_another_gets_its_record() {
    for (stops, begins) in [(false, false), (true, false), (false, true), (true, true)] {
        let (world, owner, other, left) = with_many_waiting();
        let (has_ended, next) = (Cell::new(false), Cell::new(None));
        look_while(world, owner, 0, || {
            if !has_ended.replace(true) {
                world.end(owner);
                next.set(begins.then(|| world.heap()));
            }
            stops
        });
        assert!(has_ended.get());
        if let Some(next) = next.get() {
            assert!(ptr::eq(next.heap(), owner.heap()), "the record is used again");
            drain(next);
        }
        world.check().unwrap();
        free_all(other, &left);
        end(world, [other].into_iter().chain(next.get()));
    }
}

#[test]
fn the_thread_may_take_what_has_come_meanwhile() {
    for stops in [false, true] {
        let (world, owner, other, left) = with_many_waiting();
        let left = Cell::new(left);
        look_while(world, owner, 0, || {
            free_all(other, &left.take());
            drain(owner);
            stops
        });
        world.check().unwrap();
        end(world, [owner, other]);
    }
}

#[test]
fn who_is_to_stop_purges_no_further_stretch_and_what_keeps_its_memory_is_looked_through_next() {
    let (world, owner, other) = two(4096, "default");
    world.set(key::DECAY_MS, "10");
    let blocks = filled(owner, 900, 20_000, 7);
    // 300 stretches of two blocks.
    let (kept, freed): (Vec<_>, Vec<_>) = blocks.iter().enumerate().partition(|(at, _)| at % 3 == 0);
    free_all(other, &freed.into_iter().map(|(_, block)| *block).collect::<Vec<_>>());
    let (before, n_asked) = (purged_bytes(world), Cell::new(0));
    look_while(world, owner, 0, || n_asked.replace(n_asked.get() + 1) >= 100);
    let purged = purged_bytes(world) - before;
    let each = (40_000 - 2 * 4096) as u64;
    assert!((50 * each..150 * 40_960).contains(&purged), "{purged} bytes");
    let mailbox = owner.heap().mailbox();
    assert!(mailbox.inbox().newest() != 0 && mailbox.looked_through().newest() != 0);
    assert!(n_asked.get() >= 300, "stretches that keep their memory are many");
    world.check().unwrap();
    let expired = || world.threads.purge_inboxes(&world.shared, Which::Expired, &|| false);
    world.os().advance_ms(20);
    assert!(expired(), "they may wait");
    world.os().advance_ms(10);
    assert!(!expired());
    assert!(purged_bytes(world) - before >= 300 * each);
    assert_eq!(mailbox.inbox().newest(), 0);
    let kept: Vec<_> = kept.into_iter().map(|(_, block)| *block).collect();
    assert!(kept.iter().all(|&block| is_filled(block, 7, 20_000)));
    free_all(other, &kept);
    end(world, [owner, other]);
}

#[test]
fn its_thread_takes_back_stretches_of_which_some_keep_their_memory() {
    for n_purged in [0, 1, 40] {
        let (world, owner, other) = two(4096, "default");
        let blocks = filled(owner, 2000, 3000, 7);
        let freed: Vec<_> = (0..2000).filter(|at| at % 50 != 0).map(|at| blocks[at]).collect();
        free_all(other, &freed);
        let n_asked = Cell::new(0);
        look_while(world, owner, 0, || {
            n_asked.replace(n_asked.get() + 1) >= freed.len() as u32 / ASKED_EVERY + n_purged
        });
        assert_ne!(owner.heap().mailbox().inbox().newest(), 0);
        drain(owner);
        world.check().unwrap();
        free_all(other, &(0..2000).step_by(50).map(|at| blocks[at]).collect::<Vec<_>>());
        end(world, [owner, other]);
    }
}

#[test]
fn an_inbox_that_was_looked_through_just_now_rests_while_allocations_fail_one_after_another() {
    let (world, owner, other, left) = with_many_waiting();
    let purge = |which| {
        let before = purged_bytes(world);
        world.threads.purge_inboxes(&world.shared, which, &|| false);
        purged_bytes(world) > before
    };
    assert!(purge(Which::Rested), "it was never looked through");
    free_all(other, &left[..500]);
    assert!(!purge(Which::Rested));
    assert_ne!(owner.heap().mailbox().inbox().newest(), 0);
    world.os().advance_ms(20);
    assert!(purge(Which::Rested));
    free_all(other, &left[500..]);
    assert!(purge(Which::All), "who asks for all does not wait");
    end(world, [owner, other]);
}
