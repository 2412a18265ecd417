#![allow(unsafe_code)]
use crate::span::family::Family;
use crate::testing::{LEVELS, OneHeap, World, fill, free, is_filled, reallocate};
use crate::thread::any_block::is_possible;
use crate::thread::large::ALIGN_MAX;
use crate::thread::route;
use crate::thread::watched::request::Claim;
use freestone_os::Errno;
use freestone_os::fake::Failure;
use freestone_testkit::ops::{Mix, Player, any_stream, generate, play};
use proptest::prelude::*;
use std::vec::Vec;

const N_CASES: u32 = if cfg!(miri) { 2 } else { 96 };

proptest! {
    #![proptest_config(ProptestConfig { cases: N_CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Contents, alignment and disjointness by the shadow; every invariant every few operations; on several OS page sizes.
    #[test]
    fn any_stream_keeps_contents_and_invariants(
        stream in any_stream(24, if cfg!(miri) { 40 } else { 400 }, vec![0]),
        os_page_log2 in 12u32..=16,
        bin_max in BIN_MAX,
        level in proptest::sample::select(&LEVELS[..]),
    ) {
        let world = World::hardened(1 << os_page_log2, level);
        small_bins(&world, bin_max);
        let player = play(&stream, OneHeap { world: &world, heap: world.heap() }, 16);
        prop_assert!(player.is_ok(), "{}", player.err().unwrap());
    }

    /// Two heaps in turn: blocks are freed and resized by whichever heap's turn it is.
    #[test]
    fn blocks_may_be_freed_by_any_heap(
        stream in any_stream(24, if cfg!(miri) { 40 } else { 400 }, vec![0]),
        turns in proptest::collection::vec(0usize..3, 400),
        bin_max in BIN_MAX,
        level in proptest::sample::select(&LEVELS[..]),
    ) {
        let world = World::hardened(4096, level);
        small_bins(&world, bin_max);
        let heaps = [world.heap(), world.heap(), world.heap()];
        let mut player = Player::new(OneHeap { world: &world, heap: heaps[0] });
        for (op, turn) in stream.ops.iter().zip(&turns) {
            player.subject.heap = heaps[*turn];
            player.step(*op).unwrap();
        }
        world.check().unwrap();
        player.drain().unwrap();
        for heap in heaps {
            world.end(heap);
        }
        world.check().unwrap();
        let (stats, listed) = (world.shared.pages.stats(), u64::from(world.shared.pages.freed_pages().0));
        prop_assert_eq!((stats.large_pages - listed, world.small_span_pages()), (0, 0), "every block was returned");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: N_CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever was allocated, written, freed and purged before. New memory is known to be zero: the first block of a world is.
    #[test]
    fn a_block_that_is_said_to_read_as_zero_does(
        ops in proptest::collection::vec((0usize..6, 0usize..40), 1..if cfg!(miri) { 20 } else { 300 }),
        os_page_log2 in 12u32..=14,
        bin_max in BIN_MAX,
    ) {
        let world = World::new(1 << os_page_log2);
        small_bins(&world, bin_max);
        let heap = world.heap();
        prop_assert!(heap.allocate(5000, 1).zero);
        let mut live = Vec::new();
        for (what, at) in ops {
            let size = [16, 700, 4096, 5000, 20_000, 40_000][what];
            if at < live.len() {
                let block = live.swap_remove(at);
                free(heap, block);
            } else {
                let block = heap.allocate(size, 1);
                prop_assert!(!block.zero || is_filled(block.start, 0, size), "{size} bytes");
                fill(block.start, 0xA5, heap.usable_bytes(block.start).unwrap());
                live.push(block.start);
            }
            if at == 0 {
                crate::thread::upkeep::flush_all(heap);
                let mut stretches = crate::span::os_pages::EmptyStretches::new();
                heap.spans().for_each_mostly_free(heap.layout(), |page| {
                    let _ =
                        crate::thread::spans::release_os_pages(heap.shared(), heap.lookup(), page, &mut stretches);
                });
                heap.shared().pages.purge_inside(&mut stretches);
            }
        }
    }
}

/// Streams are short: they fill, flush and empty only small bins.
const BIN_MAX: core::ops::RangeInclusive<u32> = 1..=8;

/// Lets bins hold at most `blocks`, and nothing stay dirty.
fn small_bins(world: &World, blocks: u32) {
    world.set(crate::config::key::BIN_MAX, &std::format!("{blocks}"));
    world.set(crate::config::key::DIRTY_MAX, "0");
}

/// A mixed load that goes through every path: many classes, large blocks, resizing.
fn mixed(n_ops: usize) -> freestone_testkit::ops::Stream {
    let mix = Mix { ids: 60, least_bytes: 0, most_bytes: 150_000, most_align: 128 << 10, reallocations_percent: 30 };
    generate(mix, 0, n_ops, 7)
}

/// Fails every call of the kernel in turn, with each errno, once and for good: each operation returns null or succeeds, every invariant
/// holds, and no block is lost.
#[test]
fn after_each_failing_call_of_the_kernel_every_invariant_holds() {
    let stream = mixed(if cfg!(miri) { 30 } else { 200 });
    for level in LEVELS {
        fail_every_call(&stream, level);
    }
}

fn fail_every_call(stream: &freestone_testkit::ops::Stream, level: &str) {
    let n_calls = {
        let world = World::hardened(4096, level);
        let player = play(stream, OneHeap { world: &world, heap: world.heap() }, usize::MAX);
        assert!(player.is_ok());
        world.os().n_calls()
    };
    assert!(n_calls > 4);
    let all = [Errno::NOMEM, Errno::AGAIN, Errno::INVAL];
    let (stride, errnos) = if cfg!(miri) { (11, &all[..1]) } else { (1, &all[..]) };
    for nth_call in (0..n_calls).step_by(stride) {
        for &errno in errnos {
            for for_good in [false, true] {
                let world = World::hardened(4096, level);
                world.os().plan(Some(Failure { nth_call, errno, for_good }));
                let heap = world.try_heap();
                // The address range itself may have failed; the next attempt must not depend on that.
                let Some(heap) = heap else {
                    world.os().plan(None);
                    assert!(world.try_heap().is_some());
                    continue;
                };
                let player = play(stream, OneHeap { world: &world, heap }, 64);
                assert!(
                    player.is_ok(),
                    "call {nth_call} fails with {errno:?}, for good: {for_good}: {}",
                    player.err().unwrap()
                );
                world.os().plan(None);
                world.end(heap);
                world.check().unwrap();
                assert_eq!(world.small_span_pages(), 0, "blocks were lost");
            }
        }
    }
}

#[test]
fn absurd_requests_are_refused() {
    let world = World::new(4096);
    let heap = world.heap();
    for (size, align) in
        [(usize::MAX, 1), (isize::MAX as usize + 1, 1), (isize::MAX as usize, 1), (1, 1 << 62), (1 << 45, 1)]
    {
        assert!(heap.allocate(size, align).start.is_null(), "{size} aligned to {align}");
    }
    world.check().unwrap();
}

#[test]
fn alignments_are_served_up_to_the_size_of_the_address_range() {
    let world = World::new(4096);
    let heap = world.heap();
    for align_log2 in 0..=if cfg!(miri) { 20 } else { 24 } {
        for size in [1, 100, 5000, 100_000] {
            let block = heap.allocate(size, 1 << align_log2).start;
            assert!(!block.is_null() && block.addr().is_multiple_of(1 << align_log2));
            free(heap, block);
        }
    }
    world.check().unwrap();
}

#[test]
fn a_batch_of_32_remote_frees_costs_one_handover() {
    let world = World::new(4096);
    let (producer, consumer) = (world.heap(), world.heap());
    let n = if cfg!(miri) { 320 } else { 3200 };
    // SAFETY: the heaps and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..n).map(|_| producer.allocate(64, 1).start).collect();
        blocks.into_iter().for_each(|block| consumer.free(block));
    }
    assert_eq!(consumer.heap().n_handovers(), n / 32);
    world.check().unwrap();
}

#[test]
fn blocks_of_orphaned_heaps_are_handed_out_again() {
    let world = World::new(4096);
    let (own, lost) = (world.heap(), world.heap());
    let blocks: Vec<_> = (0..10).map(|_| lost.allocate(96, 1).start).collect();
    world.orphan_others(own);
    for &block in &blocks {
        free(own, block);
    }
    route::send_all(own);
    let again: Vec<_> = (0..10).map(|_| own.allocate(96, 1).start).collect();
    assert!(blocks.iter().all(|block| again.contains(block)));
    again.into_iter().for_each(|block| free(own, block));
    world.check().unwrap();
}

#[test]
fn a_buffer_that_grows_by_eighths_moves_few_times_and_keeps_its_contents() {
    let world = World::new(4096);
    let heap = world.heap();
    let (mut size, mut n_moves) = (27, 0);
    let mut block = heap.allocate(size, 1).start;
    fill(block, 7, size);
    while size < if cfg!(miri) { 100_000 } else { 20 << 20 } {
        let next = size + size / 8;
        let moved = reallocate(heap, block, next);
        n_moves += u32::from(moved != block);
        block = moved;
        let at = (0..size).step_by(1 + size / 4096).chain([size - 1]);
        assert!(at.into_iter().all(|at| is_filled(block.wrapping_add(at), 7, 1)));
        fill(block.wrapping_add(size), 7, next - size);
        size = next;
    }
    free(heap, block);
    assert!(n_moves <= 14, "{n_moves} moves");
    world.check().unwrap();
}

#[test]
fn a_request_is_possible_below_2_to_the_56_bytes_and_up_to_the_greatest_alignment() {
    for (size, align, expected) in [
        (0, 1, true),
        ((1 << 56) - 1, 1, true),
        (1 << 56, 1, false),
        (usize::MAX, 1, false),
        (1, ALIGN_MAX, true),
        (1, 2 * ALIGN_MAX, false),
        (1 << 56, 2 * ALIGN_MAX, false),
    ] {
        assert_eq!(is_possible(size, align), expected, "{size} bytes aligned to {align}");
    }
}

/// Sized deletes of small blocks take the hot path and are not compared; a large block that is longer than its size says is no crime.
#[test]
fn a_large_block_that_is_freed_with_a_size_beyond_its_end_is_reported_and_left_alone() {
    for (level, size, is_freed) in [("default", 400_000, false), ("default", 300_000, true), ("off", 400_000, true)] {
        let world = World::hardened(4096, level).ignoring_misuse();
        let heap = world.heap();
        let block = heap.allocate(300_000, 1).start;
        // SAFETY: the block is this test's, and used no more if it is freed.
        unsafe { heap.free_as(block, Claim::of(Family::C).sized(size)) };
        assert_eq!(heap.usable_bytes(block).is_none(), is_freed, "{level}: {size}");
    }
}
