use super::*;
use crate::config::{Settings, key};
use crate::testing::{World, free};
use crate::thread::heap::own::Own;
use freestone_os::fake::Fake;
use std::collections::VecDeque;
use std::vec::Vec;

const CLASS: usize = 3;

/// Whether the bound on bytes free inside spans is passed, if it is `bound_bytes`.
fn has_more_than(usage: &Usage, bound_bytes: usize) -> bool {
    let settings = Settings::new();
    settings.set(key::DIRTY_MAX, std::format!("{bound_bytes}").as_bytes()).unwrap();
    usage.exceeds_bound_in_spans(&settings, false)
}

#[test]
fn free_blocks_are_published_as_bytes_and_once() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.add_free(CLASS, 10);
    accounts.add_free(CLASS, -4);
    accounts.publish_free(&usage);
    accounts.publish_free(&usage);
    let bytes = 6 * block_bytes(CLASS);
    assert!(has_more_than(&usage, bytes - 1) && !has_more_than(&usage, bytes));
}

#[test]
fn only_the_change_of_live_blocks_is_published() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.publish_live(CLASS, 100, &usage);
    accounts.publish_live(CLASS, 100, &usage);
    accounts.publish_live(CLASS, 150, &usage);
    assert_eq!(usage.peak_live_bytes(), 150 * block_bytes(CLASS) as u64);
    accounts.publish_live(CLASS, 20, &usage);
    accounts.publish_live(CLASS + 1, 1, &usage);
    assert_eq!(usage.peak_live_bytes(), 150 * block_bytes(CLASS) as u64, "the peak stays");
}

#[test]
fn a_cached_run_that_comes_and_goes_is_not_published_unless_more_is_live_than_was() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.publish_large(1 << 20, &usage);
    assert!(!accounts.add_large(-65536));
    assert_eq!(accounts.unpublished_large(), -65536);
    assert!(!accounts.add_large(65536), "as before");
    assert!(accounts.add_large(65536), "one more than was published");
    accounts.publish_large(0, &usage);
    assert_eq!((accounts.unpublished_large(), usage.peak_live_bytes()), (0, (1 << 20) + 65536));
}

#[test]
fn what_was_counted_is_published_with_the_next_change() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.publish_large(1 << 20, &usage);
    let _ = accounts.add_large(-(1 << 20));
    accounts.publish_large(1 << 20, &usage);
    assert_eq!(usage.peak_live_bytes(), 1 << 20, "two blocks were never live at once");
}

const MIB: i64 = 1 << 20;

/// Blocks of a wave, of 8 MiB together.
const WAVE: usize = 8192;

fn wave(heap: Own<'_, Fake>) -> Vec<*mut u8> {
    (0..WAVE).map(|_| heap.allocate(1024, 1).start).collect()
}

/// Checks that the sum of live bytes is about this, and was never much more than a wave.
fn check_sums(world: &World, live_bytes: i64, what: &str) {
    let (sum, peak) = (world.shared.usage.live_bytes(), world.shared.usage.peak_live_bytes() as i64);
    assert!((sum - live_bytes).abs() <= 6 * MIB, "{what}: {sum} bytes are said to be live where {live_bytes} are");
    assert!(peak <= 15 * MIB, "{what}: at most 8 MiB were live, not {peak}");
}

/// Runs a test in a world of each kind of heap, and checks the world after it.
fn at_each_level(test: impl Fn(&World, &str)) {
    for level in ["off", "checks"] {
        let world = World::hardened(4096, level);
        test(&world, level);
        world.check().unwrap();
    }
}

/// All blocks but every 16th, which keeps each span in use.
fn most_of(blocks: &mut [*mut u8]) -> impl Iterator<Item = &mut *mut u8> {
    blocks.iter_mut().enumerate().filter(|(at, _)| at % 16 != 0).map(|(_, block)| block)
}

/// Whoever frees what others have allocated publishes that, else the sum would rise with each wave.
#[test]
fn the_sum_of_live_bytes_follows_blocks_that_other_threads_free() {
    for end in [false, true] {
        at_each_level(|world, level| {
            let (mut producer, consumer) = (world.heap(), world.heap());
            for round in 0..12 {
                let blocks = wave(producer);
                check_sums(world, 8 * MIB, level);
                if end {
                    world.end(producer);
                    producer = world.heap();
                }
                blocks.into_iter().for_each(|block| free(consumer, block));
                check_sums(world, 0, &std::format!("{level}, with threads that end: {end}, round {round}"));
            }
        });
    }
}

/// Whoever allocates what came back from others, without a new span, publishes that, else the sum would fall with each block.
#[test]
fn the_sum_of_live_bytes_follows_blocks_that_come_back_and_are_allocated_again() {
    at_each_level(|world, level| {
        let (producer, consumer) = (world.heap(), world.heap());
        let mut blocks = wave(producer);
        for round in 0..64 {
            // No span becomes empty.
            for block in blocks.iter_mut().skip(round % 8).step_by(8) {
                free(consumer, core::mem::replace(block, core::ptr::null_mut()));
            }
            for block in blocks.iter_mut().skip(round % 8).step_by(8) {
                *block = producer.allocate(1024, 1).start;
            }
            check_sums(world, 8 * MIB, &std::format!("{level}, round {round}"));
        }
        blocks.into_iter().for_each(|block| free(consumer, block));
    });
}

/// Whoever frees blocks of spans that stay in use publishes that, and whoever allocates them again.
#[test]
fn the_sum_of_live_bytes_follows_blocks_of_spans_that_neither_come_nor_go() {
    at_each_level(|world, level| {
        let heap = world.heap();
        let mut blocks = wave(heap);
        for _ in 0..4 {
            most_of(&mut blocks).for_each(|block| free(heap, *block));
            check_sums(world, MIB / 2, level);
            most_of(&mut blocks).for_each(|block| *block = heap.allocate(1024, 1).start);
            check_sums(world, 8 * MIB, level);
        }
        blocks.into_iter().for_each(|block| free(heap, block));
    });
}

/// Blocks of several classes come back together, so that those of one fill the bins of the others: these neither run empty nor overflow.
#[test]
fn the_sum_of_live_bytes_follows_blocks_of_bins_that_others_keep_filled() {
    at_each_level(|world, level| {
        let (producer, consumer) = (world.heap(), world.heap());
        let mut blocks = VecDeque::new();
        for round in 0..60_000 {
            blocks.push_back(producer.allocate(16 + round * 37 % 4000, 1).start);
            if blocks.len() > 1000 {
                free(consumer, blocks.pop_front().unwrap());
            }
        }
        check_sums(world, 2 * MIB, level);
        blocks.into_iter().for_each(|block| free(producer, block));
    });
}

/// Each of many threads frees little.
#[test]
fn the_sum_of_live_bytes_follows_blocks_that_many_threads_free() {
    at_each_level(|world, level| {
        let producer = world.heap();
        let consumers: Vec<_> = (0..16).map(|_| world.heap()).collect();
        for _ in 0..6 {
            for (at, block) in wave(producer).into_iter().enumerate() {
                free(consumers[at % consumers.len()], block);
            }
            check_sums(world, 0, level);
        }
    });
}

/// What a thread hands over because it needs new spans counts as well as what it hands over because it has many.
#[test]
fn the_sum_of_live_bytes_follows_blocks_that_are_handed_over_with_a_new_span() {
    at_each_level(|world, level| {
        let (producer, consumer) = (world.heap(), world.heap());
        let mut own = Vec::new();
        for _ in 0..1500 {
            let blocks: Vec<_> = (0..7).map(|_| producer.allocate(7000, 1).start).collect();
            blocks.into_iter().for_each(|block| free(consumer, block));
            // More than a span: new ones come.
            own.extend((0..32).map(|_| consumer.allocate(8000, 1).start));
            if own.len() == 512 {
                own.drain(..).for_each(|block| free(consumer, block));
            }
        }
        own.into_iter().for_each(|block| free(consumer, block));
        check_sums(world, 0, level);
    });
}

/// A thread that takes back what it has freed, and sleeps then.
#[test]
fn what_is_free_inside_spans_is_published_when_it_is_taken_again() {
    at_each_level(|world, level| {
        let heap = world.heap();
        let mut blocks = wave(heap);
        for _ in 0..3 {
            most_of(&mut blocks).for_each(|block| free(heap, *block));
            most_of(&mut blocks).for_each(|block| *block = heap.allocate(1024, 1).start);
            let free_bytes = world.shared.usage.free_in_spans();
            assert!(free_bytes < MIB, "{level}: {free_bytes} bytes are said to be free");
        }
        blocks.into_iter().for_each(|block| free(heap, block));
    });
}
