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
