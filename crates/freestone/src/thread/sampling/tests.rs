use super::*;
use crate::config::key;
use crate::guarded::geometry::N_SLOTS;
use crate::misuse::seen;
use crate::size_class::class_of;
use crate::testing::{LEVELS, OneHeap, World, fill, free, free_as, is_filled, reallocate};
use crate::thread::upkeep;
use freestone_os::fake::Fake;
use freestone_testkit::ops::{Player, any_stream};
use proptest::prelude::*;
use std::vec::Vec;

mod steps;

fn world_with(rate: &str, level: &str) -> World {
    let world = World::hardened(4096, level);
    world.set(key::GUARD_SAMPLE, rate);
    world
}

fn is_guarded(world: &World, block: *mut u8) -> bool {
    world.shared.guarded.contains(block.addr())
}

fn allocate(heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    heap.allocate(size, 1).start
}

#[test]
fn every_small_block_is_guarded_at_a_rate_of_one_until_all_slots_are_in_use_and_again_when_some_are_free() {
    for level in if cfg!(miri) { &LEVELS[..1] } else { &LEVELS } {
        let world = world_with("1", level);
        let heap = world.heap();
        let blocks: Vec<_> = (0..N_SLOTS).map(|n| (allocate(heap, n), n)).collect();
        assert!(blocks.iter().all(|&(block, _)| is_guarded(&world, block)), "{level}");
        let ordinary = allocate(heap, 40);
        assert!(!ordinary.is_null() && !is_guarded(&world, ordinary), "{level}: all slots are in use");
        assert!(!is_guarded(&world, allocate(heap, 100_000)), "{level}: a large block");
        blocks.iter().for_each(|&(block, size)| fill(block, 7, size));
        assert!(blocks.iter().all(|&(block, size)| is_filled(block, 7, size)));
        free(heap, blocks[9].0);
        let again = (0..10_000).map(|_| allocate(heap, 40)).find(|&block| is_guarded(&world, block));
        assert!(again.is_some_and(|again| again.addr().abs_diff(blocks[9].0.addr()) < 40_000), "{level}");
        world.check().unwrap();
    }
}

#[test]
fn a_thread_that_frees_what_it_allocates_has_one_in_so_many_guarded() {
    for level in LEVELS {
        let (rate, n) = (100, if cfg!(miri) { 1500 } else { 100_000 });
        let world = world_with("100", level);
        let heap = world.heap();
        let kept: Vec<_> = (0..200).map(|_| allocate(heap, 64)).collect();
        let n_guarded = (0..n)
            .filter(|_| {
                let block = allocate(heap, 64);
                let guarded = is_guarded(&world, block);
                free(heap, block);
                guarded
            })
            .count();
        // A sample is up to 16 allocations late.
        let expected = if cfg!(miri) { n / 300..n / 50 } else { n / (rate + 20)..n / (rate - 8) };
        assert!(expected.contains(&n_guarded), "{level}: {n_guarded}");
        kept.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}

/// As the hot paths: what the bin has is not looked at.
fn allocate_hot(heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    let block = heap.bins().pop(class_of(size));
    if block.is_null() { allocate(heap, size) } else { block }
}

/// The bin never runs empty by itself: samples come only from looks at a bin whose room is used up.
#[test]
fn a_thread_whose_bin_always_has_a_block_has_one_in_so_many_guarded() {
    let (rates, expected) = if cfg!(miri) { (&[40][..], 12..38) } else { (&[40, 400][..], 880..1120) };
    for rate in rates {
        let (n, world) = ((expected.start + expected.end) / 2 * rate, world_with(&std::format!("{rate}"), "default"));
        let heap = world.heap();
        let kept: Vec<_> = (0..200).map(|_| allocate(heap, 64)).collect();
        let is_next_guarded = |_: &usize| {
            let block = allocate_hot(heap, 64);
            free(heap, block);
            is_guarded(&world, block)
        };
        let n_guarded = (0..n).filter(is_next_guarded).count();
        // A sample is late by the frees that a bin has room for, twice, and then all that fell due are taken.
        assert!(expected.contains(&n_guarded), "{rate}: {n_guarded}");
        kept.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}

#[test]
fn a_guarded_block_is_at_either_end_of_its_pages_as_often() {
    let world = world_with("1", "default");
    let heap = world.heap();
    let at_start = (0..200).filter(|_| allocate(heap, 100).addr().is_multiple_of(4096)).count();
    assert!((60..140).contains(&at_start), "{at_start} of 200 begin with their page, so that reads before them fault");
}

#[test]
fn a_thread_that_only_allocates_has_one_in_so_many_guarded() {
    let (rate, n, expected) = if cfg!(miri) { ("50", 2000, 20..60) } else { ("1000", 100_000, 70..130) };
    let world = world_with(rate, "default");
    let heap = world.heap();
    let n_guarded = (0..n).filter(|_| is_guarded(&world, allocate(heap, 32))).count();
    assert!(expected.contains(&n_guarded), "{n_guarded}");
    world.check().unwrap();
}

#[test]
fn classes_are_sampled_in_proportion_to_their_allocations() {
    let (rate, rounds, expected) = if cfg!(miri) { (20, 300, 0.3..1.7) } else { (500, 40_000, 0.6..1.4) };
    let world = world_with(&std::format!("{rate}"), "default");
    let heap = world.heap();
    let mut n_guarded = [0; 3];
    for _ in 0..rounds {
        for (size, n, count) in [(16, 6, 0), (100, 3, 1), (1000, 1, 2)] {
            let blocks: Vec<_> = (0..n).map(|_| allocate(heap, size)).collect();
            n_guarded[count] += blocks.iter().filter(|&&block| is_guarded(&world, block)).count();
            blocks.into_iter().for_each(|block| free(heap, block));
        }
    }
    let samples_of = |n: i32| f64::from(n * rounds) / f64::from(rate);
    let shares = n_guarded.map(|n| n as f64).into_iter().zip([6, 3, 1]).map(|(n, all)| n / samples_of(all));
    assert!(shares.into_iter().all(|share| expected.contains(&share)), "{n_guarded:?}");
    world.check().unwrap();
}

#[test]
fn blocks_that_are_set_aside_come_back_when_the_thread_only_frees() {
    let world = world_with("50", "default");
    let heap = world.heap();
    let blocks: Vec<_> = (0..if cfg!(miri) { 600 } else { 5000 }).map(|_| allocate(heap, 48)).collect();
    for block in blocks {
        free(heap, block);
        debug_assert!(heap.bins().len(class_of(48)) >= 0);
    }
    world.check().unwrap();
    upkeep::flush_all(heap);
    world.check().unwrap();
    assert!(heap.bins().is_empty(class_of(48)) && !heap.bins().has_aside(class_of(48)));
    assert_eq!(heap.bins().live(class_of(48)), 0);
    world.end(heap);
    world.check().unwrap();
}

#[test]
fn a_double_free_of_a_block_that_is_set_aside_is_reported() {
    let world = world_with("1000", "default");
    world.set(key::MISUSE, "report");
    let heap = world.heap();
    let class = class_of(48);
    let blocks: Vec<_> = (0..8).map(|_| allocate(heap, 48)).collect();
    blocks.iter().for_each(|&block| free(heap, block));
    heap.bins().set_aside(class);
    free(heap, blocks[3]);
    assert_eq!(seen::take(), [(Misuse::DoubleFree { block_bytes: 48 }, blocks[3].addr())]);
    assert!(put_back(heap, class));
    world.check().unwrap();
}

#[test]
fn other_threads_free_guarded_blocks_and_their_thread_may_be_gone() {
    let world = world_with("1", "default");
    let (first, second) = (world.heap(), world.heap());
    let blocks: Vec<_> = (0..10).map(|_| allocate(first, 100)).collect();
    free(second, blocks[0]);
    world.end(first);
    blocks[1..].iter().for_each(|&block| free(second, block));
    assert_eq!((world.shared.guarded.live_classes().count(), world.shared.guarded.open_bytes()), (0, 0));
    let class = class_of(100);
    assert_eq!(first.heap().counts(class).allocs - second.heap().counts(class).frees, 0);
    world.check().unwrap();
}

#[test]
fn explicit_heaps_have_no_guarded_blocks() {
    let world = world_with("1", "default");
    let explicit = world.explicit_heap();
    for _ in 0..100 {
        assert!(!is_guarded(&world, allocate(explicit.enter().own(), 100)));
    }
    world.destroy(explicit);
    world.check().unwrap();
}

#[test]
fn blocks_of_rusts_allocator_are_guarded_in_watched_heaps_only() {
    for (level, guarded) in [("default", false), ("checks", true)] {
        let world = world_with("1", level);
        let heap = world.heap();
        let block = heap.allocate_for(Request::new(40, 8, Family::Rust)).start;
        assert_eq!(is_guarded(&world, block), guarded, "{level}");
    }
}

#[test]
fn a_guarded_block_has_the_size_that_was_asked_for_and_moves_when_it_is_resized() {
    for level in LEVELS {
        let world = world_with("1", level);
        let heap = world.heap();
        let block = allocate(heap, 41);
        assert_eq!(heap.usable_bytes(block), Some(41));
        fill(block, 5, 41);
        let grown = reallocate(heap, block, 50_000);
        assert!(is_filled(grown, 5, 41) && !is_guarded(&world, grown));
        let shrunk = reallocate(heap, grown, 10);
        assert!(is_filled(shrunk, 5, 10));
        assert!(world.shared.guarded.history(block.addr()).is_some_and(|history| history.freed.is_some()));
        world.check().unwrap();
    }
}

#[test]
fn a_guarded_block_that_is_freed_twice_is_reported_and_so_is_its_use_for_anything() {
    let world = world_with("1", "default");
    world.set(key::MISUSE, "report");
    let heap = world.heap();
    let block = allocate(heap, 41);
    free(heap, block);
    let twice = (Misuse::DoubleFree { block_bytes: 48 }, block.addr());
    free(heap, block);
    assert!(reallocate(heap, block, 100).is_null() && heap.usable_bytes(block).is_none());
    assert_eq!(seen::take(), [twice; 3]);
    free(heap, block.wrapping_add(16));
    assert_eq!(seen::take(), [(Misuse::Interior { block_bytes: 48, offset: 16 }, block.addr() + 16)]);
}

/// Frees a guarded block of 40 bytes, allocated by `operator new` for this alignment, with a claim.
fn seen_of_claim(level: &str, align: usize, claim: Claim) -> Vec<Misuse> {
    let world = world_with("1", level).ignoring_misuse();
    let heap = world.heap();
    let block = heap.allocate_for(Request::new(40, align, Family::New)).start;
    assert!(is_guarded(&world, block));
    free_as(heap, block, claim);
    assert_eq!(world.shared.guarded.live_classes().count(), 0, "it was freed");
    seen::take().into_iter().map(|(what, _)| what).collect()
}

#[test]
fn what_a_program_says_of_a_guarded_block_that_it_frees_is_checked_where_that_of_other_blocks_is() {
    for level in LEVELS {
        let expect = |align: usize, claim: Claim, wrong: Misuse| {
            let expected = if level == "default" { Vec::new() } else { std::vec![wrong] };
            assert_eq!(seen_of_claim(level, align, claim), expected, "{level} {claim:?}");
        };
        expect(16, Claim::of(Family::C), Misuse::WrongFamily { size: 40 });
        expect(16, Claim::of(Family::New).sized(80), Misuse::WrongSize { size: 40, claimed: 80 });
        expect(64, Claim::of(Family::New).aligned(128), Misuse::WrongAlign { size: 40, align: 64, claimed: 128 });
        for right in [Claim::NOTHING, Claim::of(Family::New), Claim::of(Family::New).sized(40).aligned(64)] {
            assert_eq!(seen_of_claim(level, 64, right), [], "{level} {right:?}");
        }
    }
}

#[test]
fn a_guarded_block_that_is_resized_keeps_its_family_and_can_be_freed_as_smaller_if_it_had_to_stay() {
    let world = world_with("1", "checks").ignoring_misuse();
    let heap = world.heap();
    let block = heap.allocate_for(Request::new(40, 1, Family::Rust)).start;
    let grown = reallocate(heap, block, 5000);
    assert!(is_guarded(&world, grown) && grown != block);
    let no_limit = world.shared.settings().get(key::LIMIT_HARD);
    world.shared.settings().store(key::LIMIT_HARD, world.shared.pages.limited_bytes());
    assert_eq!(reallocate(heap, grown, 100), grown, "there is no memory for another block");
    world.shared.settings().store(key::LIMIT_HARD, no_limit);
    free_as(heap, grown, Claim::layout(100, 1));
    assert_eq!(seen::take(), []);
    let block = reallocate(heap, heap.allocate_for(Request::new(40, 1, Family::Rust)).start, 100);
    free_as(heap, block, Claim::of(Family::C));
    assert_eq!(seen::take(), [(Misuse::WrongFamily { size: 100 }, block.addr())]);
    world.check().unwrap();
}

#[test]
fn no_block_is_guarded_beyond_the_hard_limit_and_guarded_blocks_count_towards_it() {
    let world = world_with("1", "default");
    let heap = world.heap();
    let before = world.shared.pages.limited_bytes();
    let block = allocate(heap, 5000);
    assert!(world.shared.pages.limited_bytes() >= before + 5000);
    free(heap, block);
    assert_eq!(world.shared.pages.limited_bytes(), before);
    world.shared.settings().store(key::LIMIT_HARD, before + 4 * 4096);
    let block = allocate(heap, 5000);
    assert!(is_guarded(&world, block), "there is room for its pages");
    free(heap, block);
    world.shared.settings().store(key::LIMIT_HARD, before + 4096);
    assert!(!is_guarded(&world, allocate(heap, 5000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 24 }))]

    #[test]
    fn no_block_overlaps_another_or_loses_its_contents_whatever_is_guarded(
        stream in any_stream(40, if cfg!(miri) { 40 } else { 300 }, std::vec![1 << 20]),
        rate in 1usize..20,
        at in 0..LEVELS.len(),
    ) {
        let world = world_with(&std::format!("{rate}"), LEVELS[at]);
        let mut player = Player::new(OneHeap { world: &world, heap: world.heap() });
        for &op in &stream.ops {
            player.step(op).map_err(|violation| TestCaseError::fail(violation.0))?;
        }
        world.check().map_err(TestCaseError::fail)?;
        player.drain().map_err(|violation| TestCaseError::fail(violation.0))?;
        prop_assert_eq!((world.shared.guarded.live_classes().count(), world.shared.guarded.open_bytes()), (0, 0));
        prop_assert!(seen::take().is_empty());
    }
}

/// They are due no more: else those that can be guarded would be, one after the other.
#[test]
fn allocations_that_cannot_be_guarded_leave_nothing_due_to_others() {
    let world = world_with("100", "default");
    let heap = world.heap();
    (0..2000).for_each(|_| assert!(!heap.allocate_for(Request::new(64, 1, Family::Rust)).start.is_null()));
    let n_guarded = (0..500).filter(|_| is_guarded(&world, allocate(heap, 64))).count();
    assert!(n_guarded < 15, "{n_guarded} of 500, and five are right");
}
