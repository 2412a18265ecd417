//! How much of what is due a thread purges that has other things to do.

use crate::config::key;
use crate::page::tests::{MIB, dirty_bytes, take_run, while_held};
use crate::span::Kind;
use crate::testing::{World, free};
use freestone_base::units::Pages;
use std::vec::Vec;

/// A world in which `n` blocks of `mib` were freed, and have just expired.
fn world_with_expired(n: usize, mib: usize) -> World {
    let world = World::hardened(4096, "off");
    world.set(key::THP, "off");
    world.set(key::DIRTY_MAX, "1g");
    world.spend_early_purges();
    let heap = world.heap();
    let blocks: Vec<_> = (0..n).map(|_| heap.allocate(mib * MIB, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    world.os().advance_ms(1000);
    world
}

fn dirty(world: &World) -> u64 {
    dirty_bytes(world) / MIB as u64
}

fn dirty_or_listed(world: &World) -> u64 {
    dirty(world) + u64::from(world.shared.pages.freed_pages().0 / 16)
}

#[test]
fn a_thread_purges_16_mib_of_what_has_expired_at_a_time_and_the_background_thread_all() {
    // Those of 1 MiB wait in a list.
    for (n, mib) in [(20, 8), (160, 1)] {
        let world = world_with_expired(n, mib);
        for left in [160 - 16, 160 - 32, 160 - 48] {
            world.shared.pages.purge_some_due();
            assert!(
                (left - 4..=left).contains(&dirty_or_listed(&world)),
                "{} MiB of blocks of {mib}",
                dirty_or_listed(&world)
            );
        }
        world.shared.pages.purge_due_now();
        assert_eq!(dirty_or_listed(&world), 0);
        world.check().unwrap();
    }
}

#[test]
fn a_free_purges_what_it_puts_beyond_the_bound_however_much_that_is() {
    let world = World::hardened(4096, "off");
    world.set(key::THP, "off");
    world.set(key::DIRTY_MAX, "1m");
    let heap = world.heap();
    let blocks = [50, 50, 90].map(|mib| heap.allocate(mib * MIB, 1).start);
    // Nothing else is asked of the heap in between.
    blocks.into_iter().for_each(|block| free(heap, block));
    assert!(dirty(&world) <= 1, "{} MiB", dirty(&world));
}

#[test]
fn a_free_purges_16_mib_and_as_much_as_it_frees_of_what_is_beyond_a_bound_that_was_lowered() {
    let world = world_with_expired(20, 8);
    world.set(key::DECAY_MS, "100000");
    let heap = world.heap();
    let block = heap.allocate(8 * MIB, 1).start;
    world.set(key::DIRTY_MAX, "1m");
    free(heap, block);
    let left = dirty(&world);
    assert!((160 - 16 - 8 - 4..=160 - 16 - 8).contains(&left), "{left} MiB");
}

/// What one thread frees, another that comes meanwhile does not purge.
#[test]
fn what_a_thread_is_about_to_purge_has_not_become_free_for_another() {
    let world = World::hardened(4096, "off");
    let pages = &world.shared.pages;
    let block = take_run(&world, 150 * 16);
    while_held(
        &world,
        || pages.free(block),
        |_| {
            let state = pages.state.lock();
            assert!(state.free_with_memory() > state.runs.counts().of(Kind::Purging));
            assert_eq!(state.runs.new_free(), Pages::ZERO);
            drop(state);
            world.os().hold_slow_calls(false);
        },
    );
    assert!(dirty(&world) <= 16, "{} MiB", dirty(&world));
}

/// Memory that was free before counts anew once a block has had it.
#[test]
fn a_free_purges_all_that_a_block_had_that_took_dirty_memory() {
    let world = world_with_expired(20, 8);
    world.set(key::DECAY_MS, "100000");
    let heap = world.heap();
    // They are noted as old.
    world.shared.pages.purge_some_due();
    let block = heap.allocate(150 * MIB, 1).start;
    assert!(dirty(&world) < 16, "the block did not take what is dirty");
    world.set(key::DIRTY_MAX, "1m");
    free(heap, block);
    assert!(dirty(&world) <= 15, "{} MiB", dirty(&world));
}
