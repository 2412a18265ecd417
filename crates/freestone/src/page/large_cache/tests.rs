//! What threads keep on their shelves: over the fake kernel, through whole heaps.
//!
//! Long because: one test for each rule of opening and closing slots, over shared helpers.
use super::*;
use crate::config::key;
use crate::span::{Kind, PageIndex};
use crate::testing::{OneHeap, World};
use crate::thread::heap::own::Own;
use crate::thread::upkeep;
use freestone_base::units::PAGE_BYTES;
use freestone_os::fake::Fake;
use freestone_testkit::ops::{Op, Player};
use proptest::prelude::*;
use std::vec::Vec;

const MIB: usize = 1 << 20;

/// Pages of open slots, of all shelves.
fn open_pages(world: &World) -> u64 {
    world.shared.pages.inspect(|state| u64::from(state.cached_pages().0))
}

/// A block of `size` comes and goes `n` times.
fn pairs(heap: Own<'_, Fake>, size: usize, n: usize) {
    for _ in 0..n {
        let block = heap.allocate(size, 1).start;
        assert!(!block.is_null());
        // SAFETY: the block is this test's.
        unsafe { heap.free(block) };
    }
}

/// A heap with a block of `size` on its shelf, and that block's address.
fn with_one_kept(world: &World, size: usize) -> (Own<'_, Fake>, *mut u8) {
    let heap = world.heap();
    pairs(heap, size, 3);
    let block = heap.allocate(size, 1).start;
    // SAFETY: the block is this test's.
    unsafe { heap.free(block) };
    assert!(heap.cache().cached_pages() > 0, "nothing is kept");
    (heap, block)
}

#[test]
fn a_block_that_comes_and_goes_leaves_the_page_heap_alone() {
    let world = World::new(4096);
    for size in [40_000, 100_000, 500_000, MIB] {
        let (heap, block) = with_one_kept(&world, size);
        let before = (world.shared.pages.stats(), heap.cache().puts_and_takes());
        for _ in 0..100 {
            assert_eq!(heap.allocate(size, 1).start, block);
            // SAFETY: the block is this test's.
            unsafe { heap.free(block) };
        }
        assert_eq!(world.shared.pages.stats(), before.0);
        let (puts, takes) = before.1;
        assert_eq!(heap.cache().puts_and_takes(), (puts + 100, takes + 100));
        world.check().unwrap();
    }
}

#[test]
fn lengths_that_do_not_come_back_and_long_blocks_are_not_kept() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (1..=16).map(|n| heap.allocate(n * PAGE_BYTES, 1).start).collect();
        blocks.into_iter().for_each(|block| heap.free(block));
    }
    pairs(heap, MIB + 1, 10);
    assert_eq!(open_pages(&world), 0);
    pairs(heap, MIB, 3);
    assert_eq!(open_pages(&world), 16);
}

#[test]
fn a_second_free_of_what_is_kept_is_seen_by_every_heap() {
    let world = World::new(4096);
    world.set(key::MISUSE, "ignore");
    let ((heap, block), other) = (with_one_kept(&world, 300_000), world.heap());
    let before = (world.shared.pages.stats(), heap.cache().puts_and_takes());
    // SAFETY: wrong on purpose; the policy lets it go on.
    unsafe {
        for wrong in [heap, other] {
            wrong.free(block);
            wrong.free(block.add(PAGE_BYTES));
            assert_eq!(wrong.usable_bytes(block), None);
            assert!(wrong.reallocate(block, 100, 1).is_null() && !wrong.resize_in_place(block, MIB));
        }
    }
    assert_eq!((world.shared.pages.stats(), heap.cache().puts_and_takes()), before);
    world.check().unwrap();
    assert_eq!(heap.allocate(300_000, 1).start, block);
}

#[test]
fn what_is_kept_is_dirty_for_calloc() {
    let world = World::new(4096);
    let (heap, block) = with_one_kept(&world, 70_000);
    // Asked for through the door that `calloc` takes.
    let again = heap.allocate(70_000, 16);
    assert!(again.start == block && !again.zero);
}

#[test]
fn what_a_thread_that_sleeps_has_kept_goes_back_with_age() {
    for size in [40_000, MIB] {
        let world = World::new(4096);
        let (heap, _) = with_one_kept(&world, size);
        let mut waited_ms = 0;
        // As the background thread does.
        while world.shared.pages.purge_due_now() {
            world.os().advance_ms(250);
            waited_ms += 250;
            world.check().unwrap();
            assert!(waited_ms <= 1500, "{waited_ms} ms, and still not given back");
        }
        assert!(waited_ms >= 1000, "given back after {waited_ms} ms");
        assert_eq!((heap.cache().cached_pages(), open_pages(&world)), (0, 0));
        let stats = world.shared.pages.stats();
        assert_eq!((stats.large_pages, stats.dirty_pages), (0, 0));
        // And the length has to come back again before it is kept.
        pairs(heap, size, 1);
        assert_eq!(open_pages(&world), 0);
    }
}

#[test]
fn a_slot_that_is_used_stays_open_however_long() {
    let world = World::new(4096);
    let (heap, _) = with_one_kept(&world, 200_000);
    for _ in 0..40 {
        world.os().advance_ms(100);
        world.shared.pages.purge_due_now();
        pairs(heap, 200_000, 1);
    }
    assert_eq!(open_pages(&world), 4);
    // With the block out for long, its slot closes.
    let block = heap.allocate(200_000, 1).start;
    for _ in 0..3 {
        world.os().advance_ms(250);
        world.shared.pages.purge_due_now();
    }
    assert_eq!(open_pages(&world), 0);
    // SAFETY: the block is this test's.
    unsafe { heap.free(block) };
    world.check().unwrap();
}

/// Frees that never come to the page heap are activity: what others left dirty goes back.
#[test]
fn pairs_alone_give_back_what_is_old() {
    let world = World::new(4096);
    let heap = world.heap();
    let old = heap.allocate(8 * MIB, 1).start;
    pairs(heap, 100_000, 3);
    // SAFETY: the block is this test's.
    unsafe { heap.free(old) };
    for _ in 0..12 {
        world.os().advance_ms(100);
        pairs(heap, 100_000, 1);
    }
    assert!(world.os().purged_bytes() >= 8 * MIB as u64, "8 MiB are older than the decay time");
    world.check().unwrap();
}

#[test]
fn everything_that_empties_caches_empties_shelves() {
    type Empties = fn(&World, Own<'_, Fake>);
    let empties: [(&str, Empties); 5] = [
        ("purge", |world, _| assert!(world.shared.pages.purge() > 0)),
        ("flush", |_, heap| upkeep::flush_all(heap)),
        ("death", |world, heap| {
            // SAFETY: the heap is not used afterwards.
            unsafe { world.threads.death(heap) }
        }),
        ("fork", |world, _| {
            let survivor = world.heap();
            // SAFETY: no other heap is used afterwards.
            unsafe { world.threads.orphan_others(Some(survivor)) }
        }),
        ("limit", |world, _| {
            world.set(key::LIMIT, "1m");
            pairs(world.heap(), 17 * PAGE_BYTES, 1);
            assert!(world.shared.pages.is_pressed());
        }),
    ];
    for (name, empty) in empties {
        let world = World::new(4096);
        let (heap, _) = with_one_kept(&world, 300_000);
        empty(&world, heap);
        assert_eq!((heap.cache().cached_pages(), open_pages(&world)), (0, 0), "{name}");
        assert_eq!(world.shared.pages.stats().large_pages, 0, "{name}");
        world.check().unwrap();
    }
}

/// The soft limit counts what is kept only until it is needed: nobody is told of pressure that is none.
#[test]
fn what_is_kept_makes_way_before_a_limit_is_called_passed() {
    let world = World::new(4096);
    world.set(key::LIMIT, "9m");
    world.set(key::LIMIT_HARD, "9m");
    let (heap, _) = with_one_kept(&world, MIB);
    let other = world.heap();
    let block = other.allocate(8 * MIB, 1).start;
    assert!(!block.is_null() && !world.shared.pages.is_pressed());
    assert_eq!(heap.cache().cached_pages(), 0);
    world.check().unwrap();
}

#[test]
fn what_is_kept_and_what_is_dirty_obey_the_bound_together() {
    let world = World::new(4096);
    let (n_heaps, rounds, step) = if cfg!(miri) { (2, 1, 7) } else { (12, 6, 1) };
    let heaps: Vec<_> = (0..n_heaps).map(|_| world.heap()).collect();
    let mut most_open = 0;
    for _ in 0..rounds {
        for heap in &heaps {
            for n in (1..=16).step_by(step) {
                pairs(*heap, n * PAGE_BYTES, 2);
                let n_long = if n == 16 { 6 } else { 0 };
                let blocks: Vec<_> = (0..n_long).map(|_| heap.allocate(3 * MIB, 1).start).collect();
                // SAFETY: the blocks are this test's.
                unsafe { blocks.into_iter().for_each(|block| heap.free(block)) };
                let dirty = world.shared.pages.stats().dirty_pages;
                assert!((dirty + open_pages(&world)) as usize <= 16 * MIB / PAGE_BYTES);
                assert!(open_pages(&world) as usize <= 4 * MIB / PAGE_BYTES);
                most_open = most_open.max(open_pages(&world));
            }
        }
        world.check().unwrap();
    }
    assert!(cfg!(miri) || most_open as usize > 3 * MIB / PAGE_BYTES, "{most_open}: the test does not reach the bound");
    for off in [(key::DIRTY_MAX, "0"), (key::DECAY_MS, "0")] {
        let world = World::new(4096);
        world.set(off.0, off.1);
        pairs(world.heap(), 100_000, 10);
        assert_eq!(open_pages(&world), 0, "nothing is to be kept");
    }
}

#[test]
fn dirt_that_would_pass_the_bound_empties_shelves() {
    let world = World::new(4096);
    let heap = world.heap();
    let mut blocks: Vec<_> = (0..6).map(|_| heap.allocate(3 * MIB, 1).start).collect();
    // SAFETY: the blocks are this test's. The first gives the memory that is kept.
    unsafe { heap.free(blocks.remove(0)) };
    let _kept = [with_one_kept(&world, MIB), with_one_kept(&world, MIB)];
    assert_eq!(open_pages(&world) as usize, 2 * MIB / PAGE_BYTES);
    // SAFETY: as above.
    unsafe { blocks.into_iter().for_each(|block| heap.free(block)) };
    assert_eq!(open_pages(&world), 0);
    assert!(world.shared.pages.stats().dirty_pages as usize <= 16 * MIB / PAGE_BYTES);
    world.check().unwrap();
}

/// No page comes from the kernel while a thread keeps one that it does not use.
#[test]
fn what_is_kept_comes_before_clean_memory() {
    for by_another in [false, true] {
        let world = World::new(4096);
        let ((heap, block), other) = (with_one_kept(&world, MIB), world.heap());
        let fresh = world.shared.pages.stats().fresh_bytes;
        let longer = if by_another { other } else { heap }.allocate(700_000, 1).start;
        assert_eq!((longer, world.shared.pages.stats().fresh_bytes), (block, fresh));
        assert_eq!((heap.cache().cached_pages(), open_pages(&world)), (0, 0));
        world.check().unwrap();
    }
}

#[test]
fn explicit_heaps_keep_nothing_and_their_blocks_are_not_kept() {
    let world = World::new(4096);
    let explicit = world.explicit_heap();
    pairs(explicit.enter().own(), 100_000, 10);
    assert_eq!(open_pages(&world), 0);
    let (heap, _) = with_one_kept(&world, 100_000);
    let (puts, _) = heap.cache().puts_and_takes();
    let (listed, own) = (explicit.enter().own().allocate(100_000, 1).start, heap.allocate(100_000, 1).start);
    // SAFETY: the blocks are this test's.
    unsafe {
        heap.free(listed);
        assert_eq!((heap.cache().cached_pages(), heap.cache().puts_and_takes().0), (0, puts));
        heap.free(own);
        assert_eq!(heap.cache().puts_and_takes().0, puts + 1);
        world.check().unwrap();
        world.threads.destroy(explicit);
    }
    world.check().unwrap();
}

#[test]
fn the_peak_of_what_is_live_does_not_count_what_is_kept() {
    let world = World::new(4096);
    let (heap, _) = with_one_kept(&world, MIB);
    let (pages, peak) = (|n: usize| (n * PAGE_BYTES) as u64, || world.shared.usage.peak_live_bytes());
    assert_eq!(peak(), pages(16));
    // SAFETY: the blocks are this test's.
    unsafe {
        let other = heap.allocate(2 * MIB, 1).start;
        assert_eq!(peak(), pages(32), "1 MiB is kept, 2 are live");
        let again = heap.allocate(MIB, 1).start;
        assert_eq!(peak(), pages(48), "3 MiB are live");
        heap.free(again);
        assert_eq!(heap.allocate(MIB, 1).start, again);
        heap.free(again);
        heap.free(other);
        let next = world.heap();
        pairs(heap, MIB, 1);
        world.threads.death(heap);
        next.free(next.allocate(3 * MIB, 1).start);
        assert_eq!(peak(), pages(48), "what a dead thread kept is not live");
    }
}

/// One step of a program with several threads.
#[derive(Clone, Debug)]
enum Step {
    Play(usize, Op),
    Wait(u64),
    Purge,
    Rebirth(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    // Few lengths, so that they come back; sizes beyond what is kept, and small ones, among them.
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
        1 => (0usize..3).prop_map(Step::Rebirth),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 200 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Three threads, which end and begin, and time that passes: contents and disjointness by the shadow, every invariant after every step.
    #[test]
    fn any_stream_of_large_blocks_keeps_every_promise(
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
                Step::Rebirth(turn) => {
                    // SAFETY: the heap is not used afterwards.
                    unsafe { world.threads.death(heaps[turn]) };
                    heaps[turn] = world.heap();
                }
            }
            world.check().unwrap();
            let dirty = world.shared.pages.stats().dirty_pages + open_pages(&world);
            prop_assert!(dirty as usize <= 16 * MIB / PAGE_BYTES);
        }
        player.subject.heap = heaps[0];
        player.drain().unwrap();
        for heap in heaps {
            // SAFETY: no heap is used afterwards.
            unsafe { world.threads.death(heap) };
        }
        world.check().unwrap();
        let stats = world.shared.pages.stats();
        prop_assert_eq!((stats.large_pages, open_pages(&world)), (0, 0), "everything came home");
        let kept = world.threads.iter().map(|heap| heap.cache().puts_and_takes());
        let (puts, takes) = kept.fold((0, 0), |sum, (puts, takes)| (sum.0 + puts, sum.1 + takes));
        prop_assert_eq!(stats.large_allocs + takes, stats.large_frees + puts, "every block that came went");
    }
}

/// A thread uses its shelf while another looks, purges and runs into limits: every run is somebody's, once.
#[test]
fn a_thread_and_those_who_empty_its_shelf_never_have_the_same_run() {
    let world = World::new(4096);
    let n = if cfg!(miri) { 60 } else { 200_000 };
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let keeper = world.heap();
            for round in 0..n {
                let size = (1 + round / 20 % 3) * PAGE_BYTES;
                let block = keeper.allocate(size, 1).start;
                // SAFETY: the block is this thread's; whoever else had it would write to it, too.
                unsafe {
                    block.write(round as u8);
                    block.add(size - 1).write(round as u8);
                    assert_eq!((block.read(), block.add(size - 1).read()), (round as u8, round as u8));
                    keeper.free(block);
                }
            }
            assert!(keeper.cache().puts_and_takes().1 > 0, "nothing was ever kept");
            done.store(1, Ordering::Release);
        });
        let other = world.heap();
        while done.load(Ordering::Acquire) == 0 {
            let block = other.allocate(PAGE_BYTES, 1).start;
            // SAFETY: as above.
            unsafe {
                block.write(0xA5);
                world.shared.pages.purge();
                (0..500).for_each(|_| core::hint::spin_loop());
                assert_eq!(block.read(), 0xA5);
                other.free(block);
            }
        }
    });
    world.check().unwrap();
}

#[test]
fn runs_on_shelves_are_in_use_for_the_page_heap() {
    let world = World::new(4096);
    let (_, block) = with_one_kept(&world, 100_000);
    world.shared.pages.inspect(|state| {
        let page = PageIndex(world.shared.pages.view().page_of(block.addr()).unwrap() as u32);
        let found = (state.runs.record(page).kind.get(), state.runs.entry(page));
        assert_eq!(found, (Kind::Large, Entry::CACHED));
    });
}
