//! Blocks that grow, beside memory that was freed.

use super::*;
use crate::config::key;
use freestone_base::units::PAGE_BYTES;

/// A world with a block of 8 pages, of an explicit heap with a limit or of the thread's, 80 clean pages behind it, and so many dirty pages elsewhere.
fn grows_beside(dirty: usize, limit: Option<u64>, of: impl FnOnce(&World, Own<'_, Fake>, *mut u8)) {
    let world = World::hardened(4096, "off");
    world.set(key::DIRTY_MAX, "1g");
    world.spend_early_purges();
    let (thread, explicit) = (world.heap(), world.explicit_heap());
    explicit.set_limit(limit).unwrap();
    let gate = explicit.enter();
    let heap = if limit.is_some() { gate.own() } else { thread };
    let allocate = |heap: Own<'_, Fake>, pages| heap.allocate(pages * PAGE_BYTES, 1).start;
    let (old, _wall, block) = (allocate(thread, dirty), allocate(thread, 1), allocate(heap, 8));
    let [room, _wall_behind] = [80, 1].map(|pages| allocate(thread, pages));
    fill(block, 7, 8 * PAGE_BYTES);
    free(thread, room);
    world.shared.pages.purge();
    free(thread, old);
    of(&world, heap, block);
    world.check().unwrap();
}

fn dirty_pages(world: &World) -> u64 {
    let pages = &world.shared.pages;
    pages.stats().dirty_pages + u64::from(pages.freed_pages().0)
}

#[test]
fn a_block_that_grows_by_a_half_or_doubles_is_copied_to_dirty_memory() {
    // Of up to 16 pages, the old block is in a list of freed runs.
    for (dirty, larger) in [(20, 12), (20, 16), (14, 12), (16, 15)] {
        grows_beside(dirty, None, |world, heap, block| {
            let fresh = world.fresh_pages();
            let moved = reallocate(heap, block, larger * PAGE_BYTES);
            assert!(moved != block && is_filled(moved, 7, 8 * PAGE_BYTES));
            assert_eq!(world.fresh_pages(), fresh, "{larger}");
            assert_eq!(dirty_pages(world), (dirty - larger + 8) as u64, "the old memory is for the next block");
            free(heap, moved);
        });
    }
}

#[test]
fn a_block_grows_where_it_is_by_little_or_if_no_dirty_memory_is_long_enough_or_if_it_becomes_long() {
    for (dirty, larger) in
        [(20, 9 * PAGE_BYTES - 1), (1, 16 * PAGE_BYTES), (15, 16 * PAGE_BYTES), (200, 80 * PAGE_BYTES)]
    {
        grows_beside(dirty, None, |_, heap, block| {
            let grown = reallocate(heap, block, larger);
            assert!(grown == block && is_filled(grown, 7, 8 * PAGE_BYTES), "{dirty} dirty pages, to {larger} bytes");
            free(heap, grown);
        });
    }
}

#[test]
fn a_block_grows_into_dirty_memory_behind_it() {
    grows_beside(20, None, |world, heap, block| {
        assert!(resize_in_place(heap, block, 30 * PAGE_BYTES) && resize_in_place(heap, block, 8 * PAGE_BYTES));
        let fresh = world.fresh_pages();
        assert_eq!(reallocate(heap, block, 16 * PAGE_BYTES), block);
        assert_eq!(world.fresh_pages(), fresh);
        free(heap, block);
    });
}

/// The copy needs both blocks for a moment.
#[test]
fn a_block_whose_heap_has_no_room_for_a_copy_grows_where_it_is() {
    for (limit, stays) in [(23, true), (24, false)] {
        grows_beside(20, Some(limit), |_, heap, block| {
            let grown = reallocate(heap, block, 16 * PAGE_BYTES);
            assert!((grown == block) == stays && is_filled(grown, 7, 8 * PAGE_BYTES), "{limit}");
            free(heap, grown);
        });
    }
}
