//! Guards that give way to what needs their pages, and those that cannot.

use super::*;
use freestone_testkit::ops::SplitMix;

#[test]
fn large_blocks_get_guards_and_spans_none_after_guards_had_to_give_way() {
    let world = World::hardened(4096, "full");
    let pages = &world.shared.pages;
    let guards_of = |kind| {
        let before = pages.stats().guard_pages;
        assert!(pages.allocate(Pages(4), Pages(1), kind).is_some());
        pages.stats().guard_pages - before
    };
    assert_eq!((guards_of(Kind::Small), guards_of(Kind::Large)), (1, 1));
    pages.state.lock().guarding.note_shortage();
    assert_eq!((guards_of(Kind::Small), guards_of(Kind::Large)), (0, 1));
}

#[test]
fn guards_that_give_way_are_pages_that_can_be_accessed_and_no_other_is_touched() {
    let world = World::hardened(4096, "off");
    let pages = &world.shared.pages;
    let allocate = || pages.allocate(Pages(4), Pages(1), Kind::Large).unwrap();
    world.set(key::HARDEN, "default");
    let blocks: Vec<_> = (0..8).map(|_| allocate()).collect();
    assert_eq!((pages.stats().guard_pages, marked_bytes(&world)), (8, 8 * PAGE_BYTES));
    // Free on both sides, the guards between are parts of a run, and stay what they are.
    [2, 4, 3].into_iter().for_each(|at| pages.free(OwnedRun::taken(Extent::new(blocks[at].page, Pages(4)))));
    world.check().unwrap();
    assert_eq!(pages.end_guards(&mut pages.state.lock()), Some(()));
    assert_eq!((pages.stats().guard_pages, marked_bytes(&world)), (2, 2 * PAGE_BYTES));
    assert!(pages.state.lock().guarding.is_short(), "spans get no more of them");
    world.check().unwrap();
}

#[test]
fn of_two_guards_side_by_side_each_gives_way_once() {
    let world = World::hardened(4096, "full");
    let pages = &world.shared.pages;
    let [first, _second] = [(); 2].map(|()| take_run(&world, 4));
    let at = first.page();
    pages.free(first);
    let shorter = take_run(&world, 3);
    assert_eq!(shorter.page(), at);
    let mut state = pages.lock();
    let kinds = [3, 4].map(|n| state.runs.record(at + Pages(n)).kind.get());
    assert_eq!(kinds, [Kind::Guard; 2]);
    assert_eq!(pages.end_guards(&mut state), Some(()));
    drop(state);
    world.check().unwrap();
}

/// There may be 8192 of them at a time. Blocks that are held back count as one each.
#[test]
fn guards_by_access_rights_that_are_no_more_make_room_for_others() {
    let world = World::hardened(4096, "full");
    world.os().refuse_markers();
    let (heap, pages) = (world.heap(), &world.shared.pages);
    for _ in 0..if cfg!(miri) { 10 } else { 9000 } {
        // The longer one takes the page of the shorter one's guard.
        [4, 6].into_iter().for_each(|n| pages.free(take_run(&world, n)));
        free(heap, allocate(heap, BLOCK));
    }
    let next = pages.state.lock().guarding.choose(Wanted::Always, Pages(4), true);
    assert_eq!(next, Some(GuardBy::Rights));
    assert!(!pages.take_guards_ran_out());
    world.check().unwrap();
}

/// A page that the kernel does not make accessible is not handed out.
#[test]
fn memory_whose_guards_the_kernel_will_not_remove_is_not_used() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    let heap = world.heap();
    let blocks: Vec<_> = (0..8).map(|_| allocate(heap, BLOCK)).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    world.os().plan(Some(Failure { nth_call: 0, errno: Errno::NOMEM, for_good: true }));
    assert!(heap.allocate(8 * BLOCK, 1).start.is_null());
    world.check().unwrap();
    world.os().plan(None);
    let block = allocate(heap, 8 * BLOCK);
    fill(block, 1, 8 * BLOCK);
    assert!(world.os().is_untouched_outside());
    world.check().unwrap();
}

/// A filter may come after the start, and refuse one kind of advice alone.
#[test]
fn a_guard_that_the_kernel_will_not_remove_is_given_up_and_the_block_is_placed_beside_it() {
    for level in ["default", "full"] {
        let world = World::hardened(4096, level);
        world.set(key::DIRTY_MAX, "1g");
        let heap = world.heap();
        let blocks: Vec<_> = (0..8).map(|_| allocate(heap, BLOCK)).collect();
        world.os().refuse_to_open(true);
        blocks.into_iter().for_each(|block| free(heap, block));
        for pages in [8, 1, 3, 8] {
            let block = allocate(heap, pages * BLOCK);
            assert!(!block.is_null(), "{level}");
            fill(block, 1, pages * BLOCK);
            let grown = reallocate(heap, block, pages * BLOCK + 5 * PAGE_BYTES);
            assert!(!grown.is_null(), "{level}");
            fill(grown, 2, pages * BLOCK + 5 * PAGE_BYTES);
            free(heap, grown);
            world.check().unwrap();
        }
        assert!(world.os().is_untouched_outside(), "{level}: a guard was written");
    }
}

/// Blocks of many lengths leave single pages between guards: those are not lost. A run that is aligned may still find no place now and then, and
/// the range grows by an eighth.
#[test]
#[cfg_attr(miri, ignore = "takes 20,000 blocks")]
fn blocks_that_come_and_go_for_long_take_hardly_more_addresses_than_at_first() {
    let world = World::hardened(4096, "full");
    let pages = &world.shared.pages;
    let allocate = |n_pages, align| {
        let run = pages.allocate(n_pages, align, Kind::Large).unwrap();
        OwnedRun::taken(Extent::new(run.page, n_pages))
    };
    let mut blocks: Vec<_> = (0..16).map(|_| allocate(Pages(1), Pages(1))).collect();
    let mut random = SplitMix(1);
    let mut replace = |n: usize| {
        for at in 0..n {
            let block = allocate(Pages(1 + random.below(16) as u32), Pages(1 << random.below(4)));
            pages.quarantine(core::mem::replace(&mut blocks[at % 16], block)).unwrap();
        }
    };
    replace(2500);
    let at_first = pages.state.lock().runs.high_water();
    replace(20_000);
    let more = pages.state.lock().runs.high_water() - at_first;
    assert!(more.0 <= at_first.0 / 4, "{more:?} beside {at_first:?}");
    world.check().unwrap();
}
