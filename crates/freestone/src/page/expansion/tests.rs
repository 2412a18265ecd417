#![allow(unsafe_code)]
use crate::config::key;
use crate::page::allocation::Run;
use crate::page::page_heap::OwnedRun;
use crate::page::runs::Extent;
use crate::page::tests::MIB;
use crate::span::{Kind, PageIndex};
use crate::testing::{OneHeap, World, fill, free, reallocate};
use crate::thread::heap::own::Own;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2, Pages};
use freestone_os::fake::{Failure, Fake};
use freestone_os::{Errno, Os};
use freestone_testkit::ops::{Mix, generate, play};
use std::vec::Vec;

/// Maps the first OS page of each of `pages` from `first` on, as another part of the program might.
fn map_as_a_stranger(world: &World, first: PageIndex, pages: Pages) {
    let layout = world.shared.pages.layout();
    for page in (0..pages.0).map(|at| first + Pages(at)) {
        // SAFETY: nothing of the heap's is mapped beyond the high-water mark.
        unsafe { world.os().commit(layout.page_start(page), world.os().os_page_bytes(), false) }.unwrap();
    }
}

fn allocate(heap: Own<'_, Fake>, bytes: usize) -> *mut u8 {
    heap.allocate(bytes, 1).start
}

fn high_water(world: &World) -> PageIndex {
    world.shared.pages.inspect(|state| state.runs.high_water())
}

/// Pages below the high-water mark that are of no use.
fn lost_pages(world: &World) -> u64 {
    world.shared.pages.stats().foreign_pages
}

#[test]
fn only_the_pages_that_others_have_mapped_are_lost() {
    let world = World::new(4096);
    let heap = world.heap();
    let n = if cfg!(miri) { 8 } else { 40 };
    let strangers: Vec<PageIndex> = (0..n).map(|nth| high_water(&world) + Pages(3 + nth * 7)).collect();
    strangers.iter().for_each(|&page| map_as_a_stranger(&world, page, Pages(1)));
    let blocks: Vec<_> = (0..n * 15 / 2).map(|_| allocate(heap, PAGE_BYTES)).collect();
    assert!(blocks.iter().all(|block| !block.is_null()));
    blocks.iter().for_each(|&block| fill(block, 1, PAGE_BYTES));
    assert_eq!(lost_pages(&world), strangers.len() as u64);
    world.check().unwrap();
    blocks.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn a_long_block_is_placed_behind_a_foreign_mapping_and_fewer_pages_are_lost_than_it_has() {
    let world = World::new(4096);
    let heap = world.heap();
    let stranger_pages = 100;
    map_as_a_stranger(&world, high_water(&world) + Pages(5), Pages(stranger_pages));
    let block = allocate(heap, 8 * MIB);
    assert!(!block.is_null());
    fill(block, 1, 8 * MIB);
    assert!((u64::from(stranger_pages)..2 * u64::from(stranger_pages)).contains(&lost_pages(&world)));
    world.check().unwrap();
}

#[test]
fn a_range_whose_end_is_a_foreign_mapping_is_used_up_to_that_mapping() {
    let world = World::new(4096);
    let heap = world.heap();
    let end = PageIndex(world.shared.pages.layout().n_pages as u32);
    let free = 20;
    let first = high_water(&world) + Pages(free);
    map_as_a_stranger(&world, first, end - first);
    assert!(allocate(heap, 4 * MIB).is_null());
    world.check().unwrap();
    assert!(high_water(&world) <= end);
    let blocks = (0..end.0).take_while(|_| !allocate(heap, PAGE_BYTES).is_null()).count();
    assert!(blocks >= free as usize, "{blocks} of {free}");
    assert!(high_water(&world) <= end);
    world.check().unwrap();
}

/// With a limit, all but a hundredth for metadata is handed out, and more when the limit is raised: of any size of OS pages.
#[test]
fn address_space_is_used_to_the_end_of_its_limit_and_beyond_when_that_is_raised() {
    for os_page_bytes in [4 << 10, 16 << 10, 64 << 10].into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        for piece in if cfg!(miri) { &[PAGE_BYTES][..] } else { &[PAGE_BYTES, 64, 3 * PAGE_BYTES] } {
            let piece = *piece;
            let world = World::new(os_page_bytes);
            let heap = world.heap();
            let mut got = 0;
            let limits = if cfg!(miri) { &[20][..] } else { &[20, 33, 64] };
            for limit in limits {
                world.os().limit_committed(limit * MIB);
                while !allocate(heap, piece).is_null() {
                    got += piece;
                }
                let lost = limit * MIB - got;
                assert!(lost <= limit * MIB / 90 + 5 * PAGE_BYTES + piece, "{lost} of {limit} MiB are lost");
                world.check().unwrap();
            }
        }
    }
}

/// Blocks of 1 MiB leave holes that blocks of 6 MiB do not fit in: under a limit of address space the holes are unmapped for them.
fn holes_are_unmapped_for_longer_blocks(purge: &str) {
    let world = World::new(4096);
    world.set(key::PURGE, purge);
    let heap = world.heap();
    let ones: Vec<_> = (0..40).map(|_| heap.allocate(MIB, 1).start).collect();
    ones.iter().step_by(2).for_each(|&block| free(heap, block));
    world.shared.pages.purge();
    world.os().limit_committed(world.os().committed_bytes() + MIB);
    let sixes: Vec<_> = (0..3).map(|_| heap.allocate(6 * MIB, 1).start).collect();
    assert!(sixes.iter().all(|block| !block.is_null()), "20 MiB of holes, and no 18 MiB");
    sixes.iter().for_each(|&block| fill(block, 7, 6 * MIB));
    world.check().unwrap();
    assert!(heap.allocate(20 * MIB, 1).start.is_null());
    world.check().unwrap();
    sixes.into_iter().for_each(|block| free(heap, block));
    world.shared.pages.purge();
    let ones_again: Vec<_> = (0..20).map(|_| heap.allocate(MIB, 1).start).collect();
    assert!(ones_again.iter().all(|block| !block.is_null()), "what was unmapped is mapped again");
    world.check().unwrap();
    ones.into_iter().skip(1).step_by(2).chain(ones_again).for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn where_address_space_is_short_clean_holes_are_unmapped_for_longer_blocks() {
    holes_are_unmapped_for_longer_blocks("dontneed");
}

#[test]
fn where_address_space_is_short_holes_whose_memory_the_kernel_keeps_are_unmapped_too() {
    holes_are_unmapped_for_longer_blocks("free");
}

/// Any stream, with little more address space than it needs: each call returns null or succeeds, and no invariant breaks.
#[test]
fn streams_live_with_little_address_space() {
    let most_bytes = if cfg!(miri) { 200_000 } else { 5 * MIB };
    let mix = Mix { ids: 12, least_bytes: 0, most_bytes, most_align: 128 << 10, reallocations_percent: 40 };
    for seed in 0..if cfg!(miri) { 1 } else { 12 } {
        let stream = generate(mix, 0, if cfg!(miri) { 30 } else { 300 }, seed);
        let world = World::new(4096);
        let heap = world.heap();
        world.os().limit_committed(world.os().committed_bytes() + 24 * MIB);
        let player = play(&stream, OneHeap { world: &world, heap }, 8);
        assert!(player.is_ok(), "{seed}: {}", player.err().unwrap());
    }
}

/// Pages are unmapped because address space is short; another part of the program maps something there before they are needed again.
#[test]
fn reserved_pages_that_others_have_mapped_are_given_up() {
    let world = World::hardened(4096, "off");
    let heap = world.heap();
    // There is clean memory for everything: the first call from then on is the move.
    free(heap, heap.allocate(16 * MIB, 1).start);
    world.shared.pages.purge();
    let (block, wall) = (heap.allocate(MIB, 1).start, heap.allocate(MIB, 1).start);
    world.os().plan_half_way(Failure { nth_call: 0, errno: Errno::NOMEM, for_good: false });
    let moved = reallocate(heap, block, 3 * MIB);
    let reserved = world.shared.pages.stats().reserved_pages;
    assert!(reserved > 0);
    world.os().plan(Some(Failure { nth_call: 0, errno: Errno::EXIST, for_good: false }));
    let mut blocks = std::vec![moved, wall];
    while world.os().n_calls() == 0 {
        blocks.push(heap.allocate(1 << PAGE_BYTES_LOG2, 1).start);
    }
    let after = world.shared.pages.stats();
    assert!(after.foreign_pages == 1 && after.reserved_pages < reserved);
    assert!(blocks.iter().all(|block| !block.is_null()));
    world.check().unwrap();
    blocks.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

/// Of memory that has gone back, the addresses go as well if they are charged: of long runs, which are mapped again when they are needed.
#[test]
fn where_mappings_are_charged_long_runs_are_unmapped_once_their_memory_has_gone_back() {
    for is_charged in [false, true] {
        let world = World::new(4096);
        if is_charged {
            world.os().charge_mappings();
        }
        let heap = world.heap();
        for round in 0..3 {
            let long: Vec<_> = (0..20).map(|_| allocate(heap, 2 * MIB)).collect();
            let short: Vec<_> = (0..40).map(|_| allocate(heap, MIB / 2)).collect();
            long.iter().for_each(|&block| fill(block, round, 2 * MIB));
            short.iter().for_each(|&block| fill(block, round, MIB / 2));
            let (mapped, reserved) = (world.os().committed_bytes(), world.shared.pages.stats().reserved_pages);
            let (go, stay): (Vec<_>, Vec<_>) = short.into_iter().zip(0..).partition(|(_, n)| n % 2 == 0);
            long.into_iter().chain(go.into_iter().map(|(block, _)| block)).for_each(|block| free(heap, block));
            world.shared.pages.purge();
            let (unmapped, stats) = (mapped - world.os().committed_bytes(), world.shared.pages.stats());
            assert_eq!(unmapped, (stats.reserved_pages - reserved) as usize * PAGE_BYTES);
            assert!(if is_charged { unmapped >= 40 * MIB } else { unmapped == 0 }, "{unmapped}");
            assert!(round > 0 || stats.clean_pages >= 10 * 8, "the holes of the short ones stay: {stats:?}");
            world.check().unwrap();
            stay.into_iter().for_each(|(block, _)| free(heap, block));
        }
        world.check().unwrap();
    }
}

/// Any stream, and all memory given back now and then.
#[test]
fn streams_live_where_mappings_are_charged() {
    let most_bytes = if cfg!(miri) { 2 * MIB } else { 8 * MIB };
    let mix = Mix { ids: 30, least_bytes: 0, most_bytes, most_align: 128 << 10, reallocations_percent: 40 };
    for seed in 0..if cfg!(miri) { 1 } else { 6 } {
        let world = World::new(4096);
        world.os().charge_mappings();
        world.set(key::DIRTY_MAX, "1m");
        if seed % 2 == 1 {
            world.os().keep_memory();
        }
        let heap = world.heap();
        free(heap, allocate(heap, 33 * MIB));
        let stream = generate(mix, 0, if cfg!(miri) { 30 } else { 300 }, seed);
        let player = play(&stream, OneHeap { world: &world, heap }, 8);
        assert!(player.is_ok(), "{seed}: {}", player.err().unwrap());
        world.shared.pages.purge();
        assert!(world.shared.pages.stats().reserved_pages > 33 * 16, "{:?}", world.shared.pages.stats());
        world.check().unwrap();
    }
}

fn take(world: &World, pages: u32) -> Option<Run> {
    world.shared.pages.allocate(Pages(pages), Pages(1), Kind::Large)
}

#[test]
fn the_last_page_of_the_address_range_is_used() {
    let world = World::hardened(4096, "off");
    take(&world, 1).unwrap();
    let end = PageIndex(world.shared.pages.layout().n_pages as u32);
    let tail = world.shared.pages.inspect(|state| state.runs.clean_tail());
    take(&world, (end - high_water(&world) + tail).0).unwrap();
    assert_eq!(high_water(&world), end);
    assert!(take(&world, 1).is_none());
    world.check().unwrap();
}

#[test]
fn the_arena_grows_by_half_a_step_where_the_kernel_refuses_a_whole_one() {
    let world = World::hardened(4096, "off");
    assert!(world.shared.pages.open().is_some());
    let before = high_water(&world);
    world.os().limit_committed(world.os().committed_bytes() + 10 * PAGE_BYTES);
    take(&world, 1).unwrap();
    assert_eq!(high_water(&world), before + Pages(8));
}

#[test]
fn no_more_clean_runs_are_unmapped_than_a_block_needs() {
    let world = World::hardened(4096, "off");
    let runs: Vec<_> = (0..20).map(|_| take(&world, 16).unwrap()).collect();
    for run in runs.iter().step_by(2) {
        world.shared.pages.free(OwnedRun::taken(Extent::new(run.page, run.pages)));
    }
    world.shared.pages.purge();
    world.os().limit_committed(world.os().committed_bytes() + MIB / 2);
    take(&world, 6 * 16).unwrap();
    let stats = world.shared.pages.stats();
    assert_eq!(stats.reserved_pages, 6 * 16);
    world.check().unwrap();
}

/// A hole that was unmapped, and a clean one beside it: a block that fits in neither takes both, and not new address space.
#[test]
fn unmapped_and_clean_holes_beside_each_other_serve_one_block() {
    let world = World::hardened(4096, "off");
    let [first, second, _wall] = [(); 3].map(|()| take(&world, 16).unwrap());
    let free = |run: Run| world.shared.pages.free(OwnedRun::taken(Extent::new(run.page, run.pages)));
    take(&world, world.shared.pages.inspect(|state| state.runs.clean_tail()).0);
    free(first);
    world.shared.pages.purge();
    world.os().limit_committed(world.os().committed_bytes());
    assert!(take(&world, 17).is_none());
    assert_eq!(world.shared.pages.stats().reserved_pages, 16);
    free(second);
    world.shared.pages.purge();
    world.os().limit_committed(world.os().committed_bytes() + 64 * MIB);
    let before = high_water(&world);
    assert_eq!(take(&world, 24).unwrap().page, first.page);
    assert_eq!((high_water(&world), world.shared.pages.stats().reserved_pages), (before, 0));
    world.check().unwrap();
}
