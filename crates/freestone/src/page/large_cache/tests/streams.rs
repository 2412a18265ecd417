//! Streams of large blocks in several threads, with time that passes.
use super::{MIB, open_pages};
use crate::testing::{OneHeap, World, fill, free, is_filled};
use core::sync::atomic::{AtomicU64, Ordering};
use freestone_base::units::PAGE_BYTES;
use freestone_testkit::ops::{Op, Player};
use proptest::prelude::*;

/// One step of a program with several threads.
#[derive(Clone, Debug)]
enum Step {
    Play(usize, Op),
    Wait(u64),
    Purge,
    Recreate(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    // Few lengths, so that they come back; sizes beyond what is cached, and small ones, among them.
    let bytes = prop_oneof![6 => (1usize..4).prop_map(|n| n * PAGE_BYTES - 100), 1 => 1usize..3 * MIB / 2];
    let op = (0u32..8, bytes, 0u32..10).prop_map(|(id, bytes, choice)| match choice {
        0..5 => Op::Allocate { id, bytes, align: if choice == 0 { 128 << 10 } else { 16 } },
        5 => Op::Reallocate { id, bytes },
        _ => Op::Deallocate { id },
    });
    prop_oneof![
        40 => (0usize..3, op).prop_map(|(turn, op)| Step::Play(turn, op)),
        2 => (1u64..600).prop_map(Step::Wait),
        1 => Just(Step::Purge),
        1 => (0usize..3).prop_map(Step::Recreate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 200 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Three threads, which end and begin, and time that passes. The shadow checks contents; every invariant is checked after every step.
    #[test]
    fn any_stream_of_large_blocks_keeps_contents_and_invariants(
        steps in proptest::collection::vec(any_step(), 0..if cfg!(miri) { 40 } else { 300 }),
        turns_log2 in 0u32..3,
    ) {
        let world = World::new(4096);
        let mut heaps = [world.heap(), world.heap(), world.heap()];
        let mut player = Player::new(OneHeap { world: &world, heap: heaps[0] });
        for step in steps {
            match step {
                Step::Play(turn, op) => {
                    // From one thread alone to all of them.
                    player.subject.heap = heaps[turn >> (2 - turns_log2)];
                    player.step(op).unwrap();
                }
                Step::Wait(ms) => world.os().advance_ms(ms),
                Step::Purge => {
                    world.shared.pages.purge();
                }
                Step::Recreate(turn) => {
                    world.end(heaps[turn]);
                    heaps[turn] = world.heap();
                }
            }
            world.check().unwrap();
            let freed = u64::from(world.shared.pages.freed_pages().0);
            let dirty = world.shared.pages.stats().dirty_pages + open_pages(&world) + freed;
            prop_assert!(dirty as usize <= 16 * MIB / PAGE_BYTES);
        }
        player.subject.heap = heaps[0];
        player.drain().unwrap();
        for heap in heaps {
            world.end(heap);
        }
        world.check().unwrap();
        let (stats, freed) = (world.shared.pages.stats(), u64::from(world.shared.pages.freed_pages().0));
        prop_assert_eq!((stats.large_pages - freed, open_pages(&world)), (0, 0), "no large block is left");
        let cached = world.threads.iter().map(|heap| heap.cache().puts_and_takes());
        let (puts, takes) = cached.fold((0, 0), |sum, (puts, takes)| (sum.0 + puts, sum.1 + takes));
        prop_assert_eq!(stats.large_allocs + takes, stats.large_frees + puts, "every block that was allocated was freed");
    }
}

/// A thread uses its cache while another purges: no run is given to both.
#[test]
fn a_thread_and_the_threads_that_empty_its_cache_never_have_the_same_run() {
    let world = World::new(4096);
    let n = if cfg!(miri) { 60 } else { 200_000 };
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let keeper = world.heap();
            for round in 0..n {
                let size = (1 + round / 20 % 3) * PAGE_BYTES;
                let block = keeper.allocate(size, 1).start;
                let ends = [block, block.wrapping_add(size - 1)];
                ends.iter().for_each(|&end| fill(end, round as u8, 1));
                assert!(ends.iter().all(|&end| is_filled(end, round as u8, 1)));
                free(keeper, block);
            }
            assert!(keeper.cache().puts_and_takes().1 > 0, "nothing was ever cached");
            done.store(1, Ordering::Release);
        });
        let other = world.heap();
        while done.load(Ordering::Acquire) == 0 {
            let block = other.allocate(PAGE_BYTES, 1).start;
            fill(block, 0xA5, 1);
            world.shared.pages.purge();
            (0..500).for_each(|_| core::hint::spin_loop());
            assert!(is_filled(block, 0xA5, 1));
            free(other, block);
        }
    });
    world.check().unwrap();
}
