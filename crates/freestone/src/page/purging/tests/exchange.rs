//! What goes back in exchange for clean pages that a large block takes.

use crate::config::key;
use crate::page::page_heap::OwnedRun;
use crate::page::policy::purge_bound::After;
use crate::page::runs::Extent;
use crate::page::tests::{MIB, dirty_bytes, dirty_mib, take_run, take_with_room};
use crate::testing::World;
use freestone_base::units::{PAGE_BYTES_LOG2, Pages};
use std::vec::Vec;

#[test]
fn dirty_pages_go_back_in_exchange_for_as_many_clean_ones_that_a_large_block_takes() {
    // The dirty run and its neighbours are too short for the block. A short block has nothing purged, and none has more purged than it takes.
    for (n_dirty, n_taken, n_left) in [(14, 15, 14), (15, 16, 0), (40, 41, 0), (10, 100, 0), (20, 24, 0)] {
        let world = World::hardened(4096, "off");
        let [_wall, dirty, _second] = [1, n_dirty, 1].map(|n| take_run(&world, n));
        world.shared.pages.free(dirty);
        let block = take_run(&world, n_taken);
        assert_eq!(dirty_bytes(&world) >> PAGE_BYTES_LOG2, n_left, "{n_taken} pages, {n_dirty} dirty");
        assert_eq!(world.os().purged_bytes() >> PAGE_BYTES_LOG2, u64::from(n_dirty) - n_left);
        world.shared.pages.free(block);
        world.check().unwrap();
    }
}

#[test]
fn of_much_dirty_memory_only_as_much_goes_back_as_a_block_takes() {
    let world = World::hardened(4096, "off");
    // One part in 32 of it may be dirty when a large block is freed.
    let _much = take_run(&world, 1200);
    let runs = [(); 3].map(|()| [12, 1].map(|n| take_run(&world, n)));
    for [dirty, _wall] in runs {
        world.shared.pages.free(dirty);
    }
    let run = take_with_room(&world, 17).expect("the fake kernel has memory");
    let block = OwnedRun::taken(Extent::new(run.page, run.pages));
    assert_eq!(dirty_bytes(&world) >> PAGE_BYTES_LOG2, 36 - 17);
    // What grows into clean pages has as many purged.
    assert!(world.shared.pages.extend(&block, Pages(17 + 16)));
    assert_eq!(dirty_bytes(&world) >> PAGE_BYTES_LOG2, 36 - 17 - 16);
    world.check().unwrap();
}

/// A block that grows finds free pages behind it without a look at the lists.
#[test]
fn freed_runs_in_lists_go_back_in_exchange_for_the_clean_pages_that_a_block_grows_into() {
    let world = World::hardened(4096, "off");
    world.set(key::DIRTY_MAX, "17m");
    let pages = &world.shared.pages;
    world.spend_early_purges();
    let runs = [(); 3].map(|()| [10, 1].map(|n| take_run(&world, n)));
    let run = take_with_room(&world, 17).expect("the fake kernel has memory");
    let block = OwnedRun::taken(Extent::new(run.page, run.pages));
    drop(pages.purge_due(pages.lock(), pages.now(), After::Other));
    for [run, _wall] in runs {
        assert!(pages.list_freed(run).is_ok());
    }
    assert_eq!(pages.freed_pages(), Pages(30));
    // More is in use than ever.
    assert!(pages.extend(&block, Pages(17 + 50)));
    assert!(world.os().purged_bytes() >> PAGE_BYTES_LOG2 >= 16);
    world.check().unwrap();
}

#[test]
fn within_the_bound_no_dirty_page_goes_back_in_exchange_in_a_program_that_had_more() {
    let world = World::hardened(4096, "off");
    dirty_mib(&world, 17);
    let before = world.os().purged_bytes();
    assert!(before > 0, "1 MiB was too much");
    // More than will be in use.
    let high = take_run(&world, 2400);
    world.shared.pages.free(high);
    let [dirty, _wall, _block] = [300, 1, 1].map(|n| take_run(&world, n));
    world.shared.pages.free(dirty);
    let before = world.os().purged_bytes();
    let _block = take_run(&world, 2000);
    assert_eq!(world.os().purged_bytes(), before);
}

#[test]
fn all_that_is_dirty_goes_back_in_exchange_while_more_is_in_use_than_ever() {
    // More than the budget; in a program that had more dirty than the bound, and in one that had not.
    for has_more in [true, false] {
        let world = World::hardened(4096, "off");
        if has_more {
            dirty_mib(&world, 17);
            world.shared.pages.purge();
        }
        let _more_than_there_was = take_run(&world, 300);
        for round in 0..20 {
            let [dirty, _wall] = [30, 1].map(|n| take_run(&world, n));
            world.shared.pages.free(dirty);
            let _block = take_run(&world, 60);
            assert_eq!(dirty_bytes(&world), 0, "round {round}");
        }
        world.check().unwrap();
    }
}

#[test]
fn as_many_dirty_pages_go_back_in_exchange_as_are_more_in_use_than_ever_but_no_more_than_the_block_has() {
    // Pages that come into use one by one, of a block, and how many go back: of 746 in use at the most 740 are gone when the block comes.
    for (n_single, n_taken, n_purged) in [(0, 740, 0), (0, 765, 25), (1000, 100, 100)] {
        let world = World::hardened(4096, "off");
        world.set(key::DIRTY_MAX, "17m");
        // There was more dirty than the bound: nothing goes back for other reasons.
        dirty_mib(&world, 18);
        world.shared.pages.purge();
        let runs = [(); 6].map(|()| [40, 1].map(|n| take_run(&world, n)));
        let high = take_run(&world, 500);
        world.shared.pages.free(high);
        world.shared.pages.purge();
        let _singles: Vec<_> = (0..n_single).map(|_| take_run(&world, 1)).collect();
        for [dirty, _wall] in runs {
            world.shared.pages.free(dirty);
        }
        let _block = take_run(&world, n_taken);
        assert_eq!(dirty_bytes(&world) >> PAGE_BYTES_LOG2, 240 - n_purged, "{n_single}, {n_taken} pages");
        world.check().unwrap();
    }
}

/// Dirty runs that are too short for the blocks that come, which take clean pages, few at a time: with what is in use, no more stays than was in use lately, and a quarter.
#[test]
fn what_is_dirty_and_too_short_goes_back_beyond_what_the_program_has_needed() {
    for (dirty_max, stays) in [("16m", false), ("17m", true)] {
        let world = World::hardened(4096, "off");
        world.set(key::DIRTY_MAX, dirty_max);
        world.spend_early_purges();
        let runs: Vec<_> = (0..60).map(|_| [2, 1].map(|n| take_run(&world, n))).collect();
        for [dirty, _wall] in runs {
            world.shared.pages.free(dirty);
        }
        let _blocks: Vec<_> = (0..40).map(|_| take_run(&world, 3)).collect();
        let (dirty, in_use) = (dirty_bytes(&world) >> PAGE_BYTES_LOG2, 60 + 40 * 3);
        let needed = in_use + in_use / 4;
        assert_eq!(dirty == 120, stays, "{dirty} dirty pages with {dirty_max}");
        assert!(stays || (16..=needed - in_use).contains(&dirty), "{dirty} dirty pages of {needed}");
        world.check().unwrap();
    }
}

/// A program that churns: it has a block of 300 pages in use, and had 800 more, which stay dirty.
fn churning() -> World {
    let world = World::hardened(4096, "off");
    world.set(key::DIRTY_MAX, "4m");
    world.spend_early_purges();
    // Clean pages for all that follows, from a time that is forgotten.
    let ahead = take_run(&world, 2300);
    world.shared.pages.free(ahead);
    for _ in 0..2 {
        world.os().advance_ms(1000);
        world.shared.pages.purge_due_now();
    }
    let purged = world.os().purged_bytes();
    let [first, _wall, second, _other, third] = [300, 1, 300, 1, 300].map(|n| take_run(&world, n));
    world.shared.pages.free(first);
    assert!(world.os().purged_bytes() > purged, "more than the bound");
    // 200 pages that were purged are missed now.
    let [next, last] = [200, 300].map(|n| take_run(&world, n));
    [second, next, last].into_iter().for_each(|block| world.shared.pages.free(block));
    assert!(dirty_bytes(&world) >> PAGE_BYTES_LOG2 > 840);
    let _in_use = third;
    world
}

#[test]
fn a_block_of_a_program_that_churns_has_as_much_purged_as_its_clean_pages_put_beyond_the_bound() {
    // All of it is clean, or what lies behind the last dirty run.
    for (n_taken, n_clean) in [(1000, 1000), (550, 250)] {
        let world = churning();
        let in_use = |stats: crate::page::PageStats| stats.small_pages + stats.large_pages + stats.metadata_pages;
        let before = world.shared.pages.stats_with_ages().0;
        let _block = take_run(&world, n_taken as u32);
        let after = world.shared.pages.stats_with_ages().0;
        assert!(after.dirty_pages + n_taken - n_clean < before.dirty_pages, "{n_taken} pages, {after:?}");
        // 16 MiB more than were ever in use; a purge gives back at least 1 MiB.
        let most = in_use(after).max(300 + 300 + 200 + 300 + 2 + after.metadata_pages) + 256;
        let has = in_use(after) + after.dirty_pages;
        assert!((most - 16..=most + 4).contains(&has), "{n_taken} pages: {has} of {most}, {after:?}");
        world.check().unwrap();
    }
}

#[test]
fn no_dirty_page_goes_back_in_exchange_once_the_budget_is_spent_or_without_a_decay_time() {
    let world = World::hardened(4096, "off");
    // More than will be in use, and not for long: it is not beyond the bound.
    world.set(key::DIRTY_MAX, "1g");
    // One part in 32 of it may be dirty when a large block is freed.
    let _much = take_run(&world, 640);
    let high = take_run(&world, 1500);
    world.shared.pages.free(high);
    // A new budget.
    world.os().advance_ms(8000);
    world.shared.pages.purge_due_now();
    let before_all = world.shared.pages.purged_bytes();
    for round in 0..20 {
        let [dirty, _wall] = [20, 1].map(|n| take_run(&world, n));
        world.shared.pages.free(dirty);
        let before = dirty_bytes(&world);
        let _block = take_run(&world, 60);
        assert!((dirty_bytes(&world) < before) == (round < 13), "round {round}");
    }
    assert_eq!(world.shared.pages.purged_bytes() - before_all, 16 * MIB as u64);
    let world = World::hardened(4096, "off");
    world.set(key::DECAY_MS, "4294967295");
    let [dirty, _wall] = [20, 1].map(|n| take_run(&world, n));
    world.shared.pages.free(dirty);
    let _block = take_run(&world, 60);
    assert_eq!(world.shared.pages.purged_bytes(), 0);
}
