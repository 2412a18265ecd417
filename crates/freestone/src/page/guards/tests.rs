use crate::config::key;
use crate::page::page_heap::OwnedRun;
use crate::page::policy::guarding::Wanted;
use crate::page::runs::Extent;
use crate::page::tests::{MIB, take_run};
use crate::span::Kind;
use crate::testing::{OneHeap, World, fill, free, reallocate};
use crate::thread::heap::own::Own;
use freestone_base::units::{PAGE_BYTES, Pages};
use freestone_os::fake::{Failure, Fake};
use freestone_os::{Errno, GuardBy};
use freestone_testkit::ops::{Mix, generate, play};
use std::vec::Vec;

mod giving_way;

/// Four pages: the shortest block with a guard by default.
const BLOCK: usize = 4 * PAGE_BYTES;

fn allocate(heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    let block = heap.allocate(size, 1).start;
    assert!(!block.is_null());
    block
}

/// Whether the run of a block has a guard behind it; watched heaps may have taken a page more than the block needs.
fn has_guard(world: &World, block: *mut u8) -> bool {
    let behind = block.wrapping_add(BLOCK);
    world.os().is_guarded(behind) || world.os().is_guarded(behind.wrapping_add(PAGE_BYTES))
}

/// Whether a write directly behind a block of whole pages faults.
fn is_guarded(world: &World, block: *mut u8, size: usize) -> bool {
    world.os().is_guarded(block.wrapping_add(size))
}

fn marked_bytes(world: &World) -> usize {
    world.os().guarded_bytes(GuardBy::Marker)
}

#[test]
fn new_large_blocks_have_guards_on_both_sides_at_every_level_but_off() {
    for (level, expected) in [("off", false), ("default", true), ("checks", true), ("full", true)] {
        let world = World::hardened(4096, level);
        let heap = world.heap();
        let blocks: Vec<_> = (0..16).map(|_| allocate(heap, BLOCK)).collect();
        for &block in &blocks {
            assert_eq!(has_guard(&world, block), expected, "{level}");
        }
        let before = blocks.iter().skip(1).all(|block| world.os().is_guarded(block.wrapping_sub(1)));
        assert_eq!(before, expected, "{level}");
        blocks.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}

/// As x264 allocates its frames: the program asks for a huge page in the whole 2 MiB, of which the block has most. At `full` it gets a guard instead.
#[test]
fn a_block_that_is_aligned_to_a_huge_page_has_a_guard_at_full_only() {
    for (level, align, expected) in
        [("default", 2 * MIB, false), ("checks", 2 * MIB, false), ("full", 2 * MIB, true), ("default", MIB, true)]
    {
        let world = World::hardened(4096, level);
        let block = world.heap().allocate(30 * PAGE_BYTES, align).start;
        // A watched heap may have taken a page more than the block needs.
        let has = (30..=31).any(|n| is_guarded(&world, block, n * PAGE_BYTES));
        assert_eq!(has, expected, "{level}, aligned to {align}");
        world.check().unwrap();
    }
}

#[test]
fn a_guard_has_no_memory_and_counts_against_no_limit() {
    let world = World::new(4096);
    world.set(key::LIMIT_HARD, "16m");
    let heap = world.heap();
    let before = world.shared.pages.limited_bytes();
    let blocks: Vec<_> = (0..63).map(|_| allocate(heap, BLOCK)).collect();
    assert_eq!(world.shared.pages.limited_bytes() - before, 63 * BLOCK);
    assert_eq!(marked_bytes(&world), 63 * PAGE_BYTES);
    blocks.into_iter().for_each(|block| free(heap, block));
    assert!(world.shared.pages.limited_bytes() <= before + 63 * BLOCK);
    assert!(!heap.allocate(15 * MIB, 1).start.is_null(), "what was freed fits");
}

/// Runs that come back in the same lengths keep their guards, without a call of the kernel.
#[test]
fn blocks_of_one_length_get_the_guards_of_earlier_ones_for_nothing() {
    let world = World::new(4096);
    world.spend_early_purges();
    world.set(key::DIRTY_MAX, "1g");
    let heap = world.heap();
    for step in 0..3 {
        world.os().plan(None);
        let blocks: Vec<_> = (0..40).map(|_| allocate(heap, BLOCK)).collect();
        assert!(blocks.iter().all(|&block| is_guarded(&world, block, BLOCK)), "round {step}");
        blocks.into_iter().for_each(|block| free(heap, block));
        assert!(step == 0 || world.os().n_calls() == 0, "round {step}: {} calls", world.os().n_calls());
    }
    world.check().unwrap();
}

#[test]
fn what_was_guarded_is_memory_again_for_a_block_that_needs_it() {
    let world = World::new(4096);
    world.spend_early_purges();
    world.set(key::DIRTY_MAX, "1g");
    let heap = world.heap();
    let blocks: Vec<_> = (0..40).map(|_| allocate(heap, BLOCK)).collect();
    let first = blocks.iter().copied().min().unwrap();
    blocks.into_iter().for_each(|block| free(heap, block));
    let long = allocate(heap, 40 * BLOCK);
    assert_eq!(long, first, "free runs are one across guards");
    assert!((0..40 * BLOCK).step_by(4096).all(|at| !world.os().is_guarded(long.wrapping_add(at))));
    fill(long, 3, 40 * BLOCK);
    assert!(world.os().is_untouched_outside());
    world.check().unwrap();
}

#[test]
fn a_block_grows_over_its_guard() {
    let world = World::new(4096);
    let heap = world.heap();
    let block = allocate(heap, BLOCK);
    fill(block, 7, BLOCK);
    assert!(is_guarded(&world, block, BLOCK));
    let grown = reallocate(heap, block, BLOCK + PAGE_BYTES);
    assert_eq!(grown, block);
    fill(grown, 7, BLOCK + PAGE_BYTES);
    assert!(world.os().is_untouched_outside());
    world.check().unwrap();
}

#[test]
fn a_guard_that_the_kernel_refuses_is_missing_and_nothing_else_is() {
    let world = World::new(4096);
    world.os().refuse_markers();
    let heap = world.heap();
    let first = allocate(heap, BLOCK);
    world.os().plan(None);
    let blocks: Vec<_> = (0..3).map(|_| allocate(heap, BLOCK)).collect();
    assert_eq!((world.os().n_calls(), marked_bytes(&world)), (0, 0), "it was asked once");
    blocks.into_iter().chain([first]).for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn without_markers_full_guards_by_access_rights_as_far_as_the_kernel_allows_and_says_so_once() {
    let world = World::hardened(4096, "full");
    world.os().refuse_markers();
    world.os().limit_guarded_by_rights(5 * PAGE_BYTES);
    let heap = world.heap();
    let pages = &world.shared.pages;
    let run = || pages.allocate(Pages(4), Pages(1), Kind::Large);
    let runs: Vec<_> = (0..5).map(|_| run().unwrap()).collect();
    assert_eq!(world.os().guarded_bytes(GuardBy::Rights), 5 * PAGE_BYTES);
    assert!(!pages.take_guards_ran_out());
    let more: Vec<_> = (0..5).map(|_| run().unwrap()).collect();
    assert_eq!(world.os().guarded_bytes(GuardBy::Rights), 5 * PAGE_BYTES);
    assert!(pages.take_guards_ran_out() && !pages.take_guards_ran_out());
    assert_eq!(runs.len() + more.len(), 10);
    let _ = run();
    assert!(!pages.take_guards_ran_out(), "said twice");
    free(heap, allocate(heap, BLOCK));
}

#[test]
fn memory_with_huge_pages_everywhere_or_prefaulted_or_in_a_sandbox_has_guards_only_at_full() {
    for prepare in [
        (|world: &World| world.os().give_huge_pages_unasked()) as fn(&World),
        |world| world.set(key::THP, "on"),
        |world| world.set(key::PREFAULT, "populate"),
        |world| world.set(key::SANDBOX, "on"),
    ] {
        for (level, expected) in [("default", false), ("full", true)] {
            let world = World::hardened(4096, level);
            prepare(&world);
            let heap = world.heap();
            let block = allocate(heap, BLOCK);
            assert_eq!(has_guard(&world, block), expected, "{level}");
        }
    }
}

#[test]
fn which_runs_get_guards_depends_on_level_sandbox_and_how_memory_is_faulted_in() {
    let wanted = |level, set: &[(usize, &str)]| {
        let world = World::hardened(4096, level);
        set.iter().for_each(|(index, value)| world.set(*index, value));
        [Kind::Small, Kind::Large, Kind::Metadata].map(|kind| world.shared.pages.guards_wanted(kind))
    };
    let [sandbox, prefault, thp] = [(key::SANDBOX, "on"), (key::PREFAULT, "touch"), (key::THP, "on")];
    let never = [Wanted::Never; 3];
    assert_eq!(wanted("off", &[]), never);
    for level in ["default", "checks"] {
        assert_eq!(wanted(level, &[]), [Wanted::Never, Wanted::WhereCheap, Wanted::Never]);
        for option in [sandbox, prefault, thp] {
            assert_eq!(wanted(level, &[option]), never, "{option:?}");
        }
    }
    let full = [Wanted::AtRandom, Wanted::Always, Wanted::Never];
    assert_eq!(wanted("full", &[]), full);
    assert_eq!(wanted("full", &[prefault, thp]), full);
    assert_eq!(wanted("full", &[sandbox]), [Wanted::WithMarkers, Wanted::WithMarkers, Wanted::Never]);
}

#[test]
fn a_block_that_cannot_grow_far_enough_keeps_its_guard() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    let [block, room, _wall] = [4, 4, 1].map(|n| take_run(&world, n));
    pages.free(room);
    let guard = block.page() + Pages(4);
    assert!(!pages.extend(&block, Pages(20)));
    assert_eq!(pages.state.lock().runs.record(guard).kind.get(), Kind::Guard);
    world.check().unwrap();
}

/// Streams of blocks with every kind of guard: contents and invariants hold, and no guard is written.
#[test]
fn any_stream_keeps_contents_and_invariants_whatever_guards_there_are() {
    let most_bytes = if cfg!(miri) { 300_000 } else { 2 * MIB };
    let mix = Mix { ids: 16, least_bytes: 0, most_bytes, most_align: 128 << 10, reallocations_percent: 40 };
    for seed in 0..if cfg!(miri) { 1 } else { 6 } {
        let stream = generate(mix, 0, if cfg!(miri) { 30 } else { 300 }, seed);
        for (level, has_markers, opens) in [
            ("default", true, true),
            ("full", true, true),
            ("full", false, true),
            ("default", true, false),
            ("full", true, false),
        ] {
            let world = World::hardened(4096, level);
            world.os().refuse_to_open(!opens);
            if !has_markers {
                world.os().refuse_markers();
                world.os().limit_guarded_by_rights(4 * PAGE_BYTES);
            }
            let heap = world.heap();
            let player = play(&stream, OneHeap { world: &world, heap }, 8);
            assert!(player.is_ok(), "{seed}, {level}: {}", player.err().unwrap());
            world.end(heap);
            world.shared.pages.purge();
            world.check().unwrap();
            assert!(world.os().is_untouched_outside(), "{seed}, {level}: a guard was written");
        }
    }
}
