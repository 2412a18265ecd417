#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::page::tests::take_run;
use crate::testing::World;
use freestone_base::units::PAGE_BYTES_LOG2;
use proptest::prelude::*;
use std::boxed::Box;
use std::vec::Vec;

/// A world in which dirty memory stays, without huge pages and guards.
fn world() -> World {
    let world = World::hardened(4096, "off");
    world.set(key::DIRTY_MAX, "1g");
    world.set(key::THP, "off");
    world
}

fn pages_of(world: &World, block: &OwnedRun) -> Pages {
    world.shared.pages.extent(block).pages
}

#[test]
fn a_block_grows_into_the_free_run_behind_it_and_no_further() {
    let world = world();
    let pages = &world.shared.pages;
    let [block, room, wall] = [4, 6, 1].map(|n| take_run(&world, n));
    assert!(!pages.extend(&block, Pages(5)), "the pages behind it are in use");
    pages.free(room);
    assert!(!pages.extend(&block, Pages(11)), "there are six");
    assert_eq!(pages_of(&world, &block), Pages(4));
    assert!(pages.extend(&block, Pages(7)) && pages.extend(&block, Pages(10)));
    assert_eq!((pages_of(&world, &block), pages.stats().large_pages, pages.stats().dirty_pages), (Pages(10), 11, 0));
    assert!(!pages.extend(&block, Pages(11)));
    assert_eq!(world.check(), Ok(()));
    pages.free(wall);
}

#[test]
fn a_block_does_not_grow_past_the_address_range_or_a_limit() {
    let world = world();
    let pages = &world.shared.pages;
    let block = take_run(&world, 4);
    let n_pages = pages.layout().n_pages as u32;
    assert!(!pages.extend(&block, Pages(n_pages)));
    // To the end of the arena, and then into pages that were never used.
    assert!(pages.extend(&block, growth::arena_step(Pages::ZERO, Pages(4))) && pages.extend(&block, Pages(40)));
    world.set(key::LIMIT_HARD, "4m");
    assert!(!pages.extend(&block, Pages(65)) && pages.extend(&block, Pages(60)));
    assert_eq!(world.check(), Ok(()));
}

/// Behind each run is a page that has a record.
#[test]
fn a_block_that_grows_leaves_the_last_page_of_the_address_range() {
    let world = world();
    let pages = &world.shared.pages;
    let block = take_run(&world, 4);
    let most = pages.layout().n_pages as u32 - block.page().0 - 1;
    assert!(pages.extend(&block, growth::arena_step(Pages::ZERO, Pages(4))));
    assert!(pages.extend(&block, Pages(most)) && !pages.extend(&block, Pages(most + 1)));
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn what_is_cut_off_is_dirty_and_can_be_grown_into_again() {
    let world = world();
    let pages = &world.shared.pages;
    let [block, _wall] = [10, 1].map(|n| take_run(&world, n));
    pages.shrink(&block, Pages(3));
    assert_eq!((pages_of(&world, &block), pages.stats().dirty_pages, pages.stats().large_pages), (Pages(3), 7, 4));
    assert!(pages.extend(&block, Pages(10)));
    assert_eq!((pages.stats().dirty_pages, pages.stats().large_pages), (0, 11));
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn only_less_than_a_huge_page_is_slack() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    assert!(!pages.is_slack(Pages(256), Pages(255)), "there are no huge pages");
    let world = World::new(4096);
    world.os().give_huge_pages(2 << 20);
    let pages = &world.shared.pages;
    assert!(pages.is_slack(Pages(256), Pages(255)) && pages.is_slack(Pages(256), Pages(225)));
    assert!(!pages.is_slack(Pages(256), Pages(224)) && !pages.is_slack(Pages(256), Pages(1)));
    assert!(!pages.is_slack(Pages(10), Pages(9)), "the block is too short for huge pages");
}

/// It is purged as a whole, as long as it is.
#[test]
fn what_is_cut_off_a_block_with_huge_pages_has_some_too() {
    let world = World::new(4096);
    world.give_huge_pages(2 << 20);
    world.set(key::DIRTY_MAX, "1g");
    let pages = &world.shared.pages;
    let block = take_run(&world, 256);
    assert!(pages.record(&block).is_huge.get());
    pages.shrink(&block, Pages(64));
    let rest = pages.state.lock().runs.run_at(block.page() + Pages(64));
    assert!(pages.state.lock().runs.record(rest.first).is_huge.get());
    assert_eq!(world.check(), Ok(()));
}

/// They were requested for the block that was behind it before. A block that is this short requests none.
#[test]
fn a_block_that_grows_into_huge_pages_has_some_until_it_goes_back() {
    let world = World::hardened(4096, "off");
    world.give_huge_pages(2 << 20);
    world.set(key::DIRTY_MAX, "1g");
    let pages = &world.shared.pages;
    let block = take_run(&world, 1);
    let behind = take_run(&world, 128);
    let gap = behind.page() - block.page();
    assert!(gap == Pages(1) || pages.extend(&block, gap));
    pages.free(behind);
    assert!(pages.extend(&block, gap + Pages(24)));
    pages.purge();
    assert_eq!(world.os().huge_bytes(), 24 << 16, "the rest of them was withdrawn");
    pages.free(block);
    pages.purge();
    assert_eq!(world.os().huge_bytes(), 0);
    assert_eq!(world.check(), Ok(()));
}

/// What is done with a block of a list: it is made longer or shorter, freed, or another is allocated.
#[derive(Clone, Copy, Debug)]
enum Step {
    Resize(usize, u32),
    Free(usize),
    Allocate(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..8_usize, 1..30_u32).prop_map(|(at, pages)| Step::Resize(at, pages)),
        2 => (0..8_usize).prop_map(Step::Free),
        3 => (1..20_u32).prop_map(Step::Allocate),
    ];
    proptest::collection::vec(step, 1..if cfg!(miri) { 8 } else { 50 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 100 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Blocks never overlap, keep the length they were given last, and the list has the sum.
    #[test]
    fn blocks_and_their_list_have_the_pages_that_they_were_given(steps in steps()) {
        let world = world();
        let pages = &world.shared.pages;
        let list: &'static LargeList = Box::leak(Box::default());
        let mut blocks: Vec<(OwnedRun, u32)> = Vec::new();
        for step in steps {
            match step {
                Step::Allocate(n) if blocks.len() < 8 => {
                    let block = take_run(&world, n);
                    prop_assert!(pages.is_listed(&block, None) && !pages.is_listed(&block, Some(list)));
                    // SAFETY: the list is leaked.
                    pages.list_large(&block, unsafe { list.pinned() });
                    prop_assert!(pages.is_listed(&block, Some(list)) && !pages.is_listed(&block, None));
                    blocks.push((block, n));
                }
                Step::Resize(at, to) if at < blocks.len() => {
                    let (block, now) = &mut blocks[at];
                    if to < *now {
                        pages.shrink(block, Pages(to));
                        *now = to;
                    } else if to > *now && pages.extend(block, Pages(to)) {
                        *now = to;
                    }
                }
                Step::Free(at) if at < blocks.len() => pages.free(blocks.swap_remove(at).0),
                _ => {}
            }
            let mut extents: Vec<_> = blocks.iter().map(|(block, _)| pages.extent(block)).collect();
            prop_assert!(extents.iter().zip(&blocks).all(|(extent, (_, now))| extent.pages == Pages(*now)));
            extents.sort_by_key(|extent| extent.first);
            prop_assert!(extents.windows(2).all(|pair| pair[0].end() <= pair[1].first), "two blocks overlap");
            let sum = blocks.iter().map(|(_, now)| u64::from(*now)).sum::<u64>();
            prop_assert_eq!((pages.listed_pages(list), pages.stats().large_pages), (sum, sum));
            prop_assert_eq!(pages.first_large(list).is_some(), !blocks.is_empty());
            prop_assert_eq!(world.check(), Ok(()));
        }
    }
}

/// Whole huge pages are for blocks that have some, and only if they add little.
#[test]
fn a_block_that_grows_ends_with_a_whole_huge_page_only_if_it_has_huge_pages_and_that_adds_little() {
    for (to, expected) in [(30, 30), (60, 60), (70, 70), (92, 96)] {
        let world = World::hardened(4096, "off");
        world.os().give_huge_pages(2 << 20);
        let pages = &world.shared.pages;
        let run = pages.allocate(Pages(128), Pages(32), Kind::Large).unwrap();
        let block = OwnedRun::taken(Extent::new(run.page, run.pages));
        pages.shrink(&block, Pages(20));
        assert!(pages.extend(&block, Pages(to)));
        assert_eq!(pages_of(&world, &block), Pages(expected));
        assert_eq!(world.check(), Ok(()));
    }
}

#[test]
fn a_block_behind_many_pages_grows_like_the_first() {
    let world = world();
    world.spend_early_purges();
    let [_first, block, room, _wall] = [400, 20, 40, 1].map(|n| take_run(&world, n));
    world.shared.pages.free(room);
    assert!(world.shared.pages.extend(&block, Pages(60)));
}

/// No pages are committed ahead.
#[test]
fn a_block_at_the_end_of_the_arena_grows_by_what_it_lacks() {
    let world = world();
    let pages = &world.shared.pages;
    let (high_water, tail) =
        (|| pages.inspect(|state| state.runs.high_water()), || pages.inspect(|state| state.runs.clean_tail()));
    let wall = take_run(&world, 1);
    let block = take_run(&world, tail().0 - 1);
    let (now, before) = (pages_of(&world, &block), high_water());
    assert_eq!(tail(), Pages(1));
    assert!(pages.extend(&block, now + Pages(5)));
    assert_eq!((high_water(), tail()), (before + Pages(4), Pages::ZERO));
    assert!(pages.extend(&block, now + Pages(8)));
    assert_eq!((high_water(), tail()), (before + Pages(7), Pages::ZERO));
    pages.free(wall);
    assert_eq!(world.check(), Ok(()));
}

/// What grows by little is written at once; what was dirty has memory.
#[test]
fn the_new_part_of_a_block_is_prefaulted_if_it_is_clean_and_at_most_a_quarter() {
    let world = world();
    world.spend_early_purges();
    let pages = &world.shared.pages;
    let [block, behind, _wall] = [40, 60, 1].map(|n| take_run(&world, n));
    pages.free(behind);
    let prefaulted = |to| {
        let before = world.os().prefaulted_bytes();
        assert!(pages.extend(&block, Pages(to)));
        (world.os().prefaulted_bytes() - before) >> PAGE_BYTES_LOG2
    };
    assert_eq!(prefaulted(50), 0, "it is dirty");
    pages.purge();
    assert_eq!([prefaulted(62), prefaulted(80), prefaulted(81)], [12, 0, 1]);
}
