use super::*;
use crate::span::{Kind, Span};
use crate::testing::{OneHeap, World};
use crate::thread::route;
use freestone_os::Errno;
use freestone_os::fake::Failure;
use freestone_testkit::ops::{Mix, Player, any_stream, generate, play};
use proptest::prelude::*;
use std::vec::Vec;

const N_CASES: u32 = if cfg!(miri) { 4 } else { 96 };

proptest! {
    #![proptest_config(ProptestConfig { cases: N_CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Contents, alignment and disjointness by the shadow; every invariant every few operations; on several OS page sizes.
    #[test]
    fn any_stream_keeps_every_promise(
        stream in any_stream(24, if cfg!(miri) { 40 } else { 400 }, vec![0]),
        os_page_log2 in 12u32..=16,
        bin_max in BIN_MAX,
    ) {
        let world = World::new(1 << os_page_log2);
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
    ) {
        let world = World::new(4096);
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
            // SAFETY: no heap is used afterwards.
            unsafe { world.threads.death(heap) };
        }
        world.check().unwrap();
        let stats = world.shared.pages.stats();
        prop_assert_eq!((stats.large_pages, small_spans(&world)), (0, 0), "everything came home");
    }
}

/// Streams are short: they fill, flush and empty only small bins.
const BIN_MAX: core::ops::RangeInclusive<u32> = 1..=8;

/// Lets bins hold at most `blocks`, and nothing stay dirty.
fn small_bins(world: &World, blocks: u32) {
    world.set(crate::config::key::BIN_MAX, &std::format!("{blocks}"));
    world.set(crate::config::key::DIRTY_MAX, "0");
}

/// Pages of small spans that are still in use.
fn small_spans(world: &World) -> u64 {
    let is_small = |run: &Span| run.kind.get() == Kind::Small;
    world.shared.pages.inspect(|state| state.runs.iter().filter(|(_, run)| is_small(run)).count() as u64)
}

/// A mixed load that goes through every path: many classes, large blocks, resizing.
fn mixed(n_ops: usize) -> freestone_testkit::ops::Stream {
    let mix = Mix { ids: 60, least_bytes: 0, most_bytes: 150_000, most_align: 128 << 10, reallocations_percent: 30 };
    generate(mix, 0, n_ops, 7)
}

/// Fails every call of the kernel in turn, with each errno, once and for good: null or success, the heap whole, nothing lost.
#[test]
fn every_failing_call_of_the_kernel_leaves_the_heap_whole() {
    let stream = mixed(if cfg!(miri) { 30 } else { 200 });
    let n_calls = {
        let world = World::new(4096);
        let player = play(&stream, OneHeap { world: &world, heap: world.heap() }, usize::MAX);
        assert!(player.is_ok());
        world.os().n_calls()
    };
    assert!(n_calls > 4);
    let stride = if cfg!(miri) { 3 } else { 1 };
    for nth_call in (0..n_calls).step_by(stride) {
        for errno in [Errno::NOMEM, Errno::AGAIN, Errno::INVAL] {
            for for_good in [false, true] {
                let world = World::new(4096);
                world.os().plan(Some(Failure { nth_call, errno, for_good }));
                let heap = world.try_heap();
                // The window itself may have failed; the next attempt must not remember that.
                let Some(heap) = heap else {
                    world.os().plan(None);
                    assert!(world.try_heap().is_some());
                    continue;
                };
                let player = play(&stream, OneHeap { world: &world, heap }, 64);
                assert!(
                    player.is_ok(),
                    "call {nth_call} fails with {errno:?}, for good: {for_good}: {}",
                    player.err().unwrap()
                );
                world.os().plan(None);
                // SAFETY: the heap is not used afterwards.
                unsafe { world.threads.death(heap) };
                world.check().unwrap();
                assert_eq!(small_spans(&world), 0, "blocks were lost");
            }
        }
    }
}

#[test]
fn calloc_is_zero_whatever_purging_did() {
    for keeps_contents in [false, true] {
        let world = World::new(4096);
        if keeps_contents {
            world.os().keep_contents_on_purge();
        }
        let heap = world.heap();
        for size in [70_000, 1 << 20, 5 << 20] {
            // SAFETY: the heap and the blocks are this test's.
            unsafe {
                let block = heap.allocate(size, 1).start;
                block.write_bytes(0xA5, size);
                heap.free(block);
                world.shared.pages.purge();
                let again = heap.allocate(size, 1);
                if again.zero {
                    let bytes = core::slice::from_raw_parts(again.start, size);
                    assert!(bytes.iter().all(|&byte| byte == 0), "memory said to be zero is not");
                }
                heap.free(again.start);
            }
        }
        world.check().unwrap();
    }
}

#[test]
fn dirty_memory_is_bounded_by_amount_and_by_age() {
    let world = World::new(4096);
    let heap = world.heap();
    let mebibyte = 1 << 20;
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..40).map(|_| heap.allocate(mebibyte, 1).start).collect();
        assert_eq!(world.os().purged_bytes(), 0);
        blocks.into_iter().for_each(|block| heap.free(block));
        let dirty = world.shared.pages.stats().dirty_pages << PAGE_BYTES_LOG2;
        assert!(dirty <= 16 << 20, "{dirty} bytes are dirty, more than the bound");
        assert!(world.os().purged_bytes() >= 20 << 20);
        world.os().advance_ms(2000);
        heap.free(heap.allocate(mebibyte, 1).start);
        let dirty = world.shared.pages.stats().dirty_pages << PAGE_BYTES_LOG2;
        assert!(dirty <= mebibyte as u64, "{dirty} bytes are older than the decay time and still dirty");
    }
    world.check().unwrap();
}

#[test]
fn large_blocks_grow_where_they_are_when_there_is_room_and_give_their_tail_back() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(200_000, 1).start;
        let mut size = 200_000;
        for _ in 0..20 {
            size += size / 8;
            assert_eq!(heap.reallocate(block, size, 1), block, "moved at {size}");
        }
        assert_eq!(heap.reallocate(block, 100_000, 1), block);
        assert_eq!(heap.usable_bytes(block), Some(2 * 65536));
        let small = heap.reallocate(block, 100, 1);
        assert_ne!(small, block);
        heap.free(small);
    }
    world.check().unwrap();
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
fn alignments_are_given_up_to_the_window() {
    let world = World::new(4096);
    let heap = world.heap();
    for align_log2 in 0..=if cfg!(miri) { 20 } else { 24 } {
        for size in [1, 100, 5000, 100_000] {
            // SAFETY: the heap and the block are this test's.
            unsafe {
                let block = heap.allocate(size, 1 << align_log2).start;
                assert!(!block.is_null() && block.addr().is_multiple_of(1 << align_log2));
                heap.free(block);
            }
        }
    }
    world.check().unwrap();
}

#[test]
fn a_batch_of_32_remote_frees_costs_one_handover() {
    let world = World::new(4096);
    let (producer, consumer) = (world.heap(), world.heap());
    let n = 3200;
    // SAFETY: the heaps and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..n).map(|_| producer.allocate(64, 1).start).collect();
        blocks.into_iter().for_each(|block| consumer.free(block));
    }
    assert_eq!(consumer.heap().n_handovers(), n / 32);
    world.check().unwrap();
}

#[test]
fn a_dead_heaps_spans_are_adopted_and_its_late_blocks_come_home() {
    let world = World::new(4096);
    let other = world.heap();
    // SAFETY: the heaps and the blocks are this test's; a dead heap is not used.
    unsafe {
        for round in 0..100 {
            let dying = world.heap();
            let kept = dying.allocate(48, 1).start;
            let also = dying.allocate(48, 1).start;
            // Collected for an owner that dies before it is handed over.
            other.free(also);
            world.threads.death(dying);
            world.check().unwrap();
            let heir = world.heap();
            let block = heir.allocate(48, 1).start;
            heir.free(block);
            other.free(kept);
            route::send_all(other);
            world.threads.death(heir);
            world.check().unwrap_or_else(|broken| panic!("round {round}: {broken}"));
        }
        world.threads.death(other);
    }
    world.check().unwrap();
    assert_eq!(small_spans(&world), 0);
}

#[test]
fn orphans_blocks_are_handed_out_again() {
    let world = World::new(4096);
    let (own, lost) = (world.heap(), world.heap());
    // SAFETY: the heaps and the blocks are this test's; the orphan is not used.
    unsafe {
        let blocks: Vec<_> = (0..10).map(|_| lost.allocate(96, 1).start).collect();
        world.threads.orphan_others(Some(own));
        for &block in &blocks {
            own.free(block);
        }
        route::send_all(own);
        let again: Vec<_> = (0..10).map(|_| own.allocate(96, 1).start).collect();
        assert!(blocks.iter().all(|block| again.contains(block)));
        again.into_iter().for_each(|block| own.free(block));
    }
    world.check().unwrap();
}

#[test]
fn generations_that_wrapped_pass_over_those_in_use() {
    let world = World::new(4096);
    let kept = world.heap();
    for _ in 0..50 {
        let heap = world.heap();
        assert_ne!(heap.generation(), kept.generation());
        // SAFETY: the heap is not used afterwards.
        unsafe { world.threads.death(heap) };
    }
    world.check().unwrap();
}

#[test]
fn a_buffer_that_grows_by_eighths_moves_few_times_and_keeps_its_contents() {
    let world = World::new(4096);
    let heap = world.heap();
    let (mut size, mut n_moves) = (27, 0);
    // SAFETY: the heap and the block are this test's.
    unsafe {
        let mut block = heap.allocate(size, 1).start;
        block.write_bytes(7, size);
        while size < if cfg!(miri) { 100_000 } else { 20 << 20 } {
            let next = size + size / 8;
            let moved = heap.reallocate(block, next, 1);
            n_moves += u32::from(moved != block);
            block = moved;
            let bytes = core::slice::from_raw_parts(block, next);
            assert!(bytes.iter().take(size).step_by(1 + size / 4096).all(|&byte| byte == 7) && bytes[size - 1] == 7);
            block.add(size).write_bytes(7, next - size);
            size = next;
        }
        heap.free(block);
    }
    assert!(n_moves <= 11, "{n_moves} moves");
    world.check().unwrap();
}

/// Something is in the way behind the block: its memory moves, its contents stay, and what it leaves is clean.
#[test]
fn a_large_block_that_cannot_grow_in_place_moves_without_copying() {
    let world = World::new(4096);
    let heap = world.heap();
    let size = 1 << 20;
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(size, 1).start;
        let wall = heap.allocate(size, 1).start;
        block.write_bytes(9, size);
        let moved = heap.reallocate(block, 3 * size, 1);
        assert_ne!(moved, block);
        assert!(core::slice::from_raw_parts(moved, size).iter().all(|&byte| byte == 9));
        let again = heap.allocate(size, 1);
        if again.start == block {
            assert!(again.zero && core::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0));
        }
        [moved, wall, again.start].into_iter().for_each(|block| heap.free(block));
    }
    world.check().unwrap();
}

#[test]
fn caches_that_nobody_uses_go_home_at_the_decay_tick_and_their_memory_after_another() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..5000).map(|i| heap.allocate(16 + i % 900, 1).start).collect();
        blocks.into_iter().for_each(|block| heap.free(block));
        for _ in 0..2 {
            world.os().advance_ms(1500);
            heap.free(heap.allocate(1 << 20, 1).start);
            world.check().unwrap();
        }
        let pages = world.shared.pages.stats();
        // Current spans stay, and the block just freed, with what it was joined to.
        assert!((0..crate::size_class::N_CLASSES).all(|class| heap.bins().len(class) == 0));
        assert!(pages.dirty_pages <= 32, "{} pages are still dirty", pages.dirty_pages);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 24 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// A thread has a burst of many sizes, frees all of it in any order, and sleeps: no bin and no span stays with it.
    #[test]
    fn a_thread_whose_burst_is_over_keeps_nothing_of_it(
        sizes in proptest::collection::vec(16usize..1100, if cfg!(miri) { 400..401 } else { 4000..9000 }),
        order in 0usize..3,
        n_heaps in proptest::sample::select(vec![1u32, 2, 40, 1000]),
    ) {
        let world = World::new(4096);
        let heap = world.heap();
        // Some classes never overflow, so the burst needs one that does.
        let many = core::iter::repeat_n(700, if cfg!(miri) { 300 } else { 0 });
        world.shared.usage.set_n_heaps(n_heaps);
        // SAFETY: the heap and the blocks are this test's.
        unsafe {
            let mut blocks: Vec<_> = sizes.iter().copied().chain(many).map(|size| heap.allocate(size, 1).start).collect();
            match order {
                0 => {}
                1 => blocks.reverse(),
                _ => blocks.sort_by_key(|block| block.addr().wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            }
            blocks.into_iter().for_each(|block| heap.free(block));
        }
        for class in 0..crate::size_class::N_CLASSES {
            prop_assert_eq!(heap.bins().len(class), 0, "bin of class {}", class);
        }
        prop_assert_eq!(small_spans(&world), 0);
        world.check().unwrap();
    }
}

/// The bins of a program that does the same again and again are not emptied each time: what fits them stays.
#[test]
fn a_loop_whose_blocks_fit_its_bins_never_gives_its_spans_back() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let mut held = 0;
        for round in 0..50 {
            let blocks: Vec<_> = (0..60).map(|i| heap.allocate(16 + i * 16, 1).start).collect();
            blocks.into_iter().for_each(|block| heap.free(block));
            if round == 0 {
                held = world.shared.pages.stats().small_pages;
            }
            assert_eq!(world.shared.pages.stats().small_pages, held, "round {round}");
        }
        assert!(held > 0);
    }
}

/// What is put off until a flush turns to another span must not outlast the heap's hold on the span.
#[test]
fn a_block_that_comes_home_outside_a_flush_leaves_nothing_to_do_later() {
    let world = World::new(4096);
    world.set(crate::config::key::DIRTY_MAX, "0");
    let heap = world.heap();
    let class = crate::size_class::class_of(1024);
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..64).map(|_| heap.allocate(1024, 1).start).collect();
        for &block in blocks.iter().skip(1) {
            flush::free_remote(heap, FreeBlock::new(block, class), heap.generation());
            assert_eq!(heap.purge().turn_to(0), None, "something is left to do");
        }
        assert!(world.os().purged_bytes() > 0, "no OS page was given back");
        heap.free(blocks[0]);
        world.threads.death(heap);
    }
    world.check().unwrap();
}
