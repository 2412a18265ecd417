#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::misuse::seen;
use crate::size_class::class_of;
use crate::span::free_node::MARK;
use crate::testing::World;
use crate::thread::life::succession::Which;
use crate::thread::upkeep;
use freestone_os::fake::Fake;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

const BYTES: usize = 64;

/// More blocks than those that wait, and a few spans.
const MANY: usize = if cfg!(miri) { 400 } else { 5000 };

fn world() -> World {
    World::new(4096).ignoring_misuse()
}

fn blocks(own: Own<'_, Fake>, bytes: usize, n: usize) -> Vec<*mut u8> {
    (0..n).map(|_| own.allocate(bytes, 1).start).collect()
}

/// Frees blocks, and hands them over.
fn free_all(own: Own<'_, Fake>, blocks: &[*mut u8]) {
    for &block in blocks {
        // SAFETY: the block is the test's; some tests free one twice.
        unsafe { own.free(block) };
    }
    upkeep::flush_all(own);
}

/// Allocates until `wanted` blocks were handed out, and checks that none is handed out twice. Returns all.
fn allocate_until(own: Own<'_, Fake>, bytes: usize, wanted: &[*mut u8]) -> BTreeSet<*mut u8> {
    let (mut live, mut wanted): (BTreeSet<_>, BTreeSet<_>) = (BTreeSet::new(), wanted.iter().copied().collect());
    while !wanted.is_empty() {
        assert!(live.len() < 100_000, "{} blocks are lost", wanted.len());
        let block = own.allocate(bytes, 1).start;
        wanted.remove(&block);
        assert!(live.insert(block), "{block:?} is handed out twice");
    }
    live
}

/// Allocates blocks, and checks that none is handed out twice.
fn allocate_many(own: Own<'_, Fake>, case: usize) {
    let live = blocks(own, BYTES, MANY);
    assert_eq!(live.iter().collect::<BTreeSet<_>>().len(), live.len(), "{case}");
}

#[test]
fn a_fork_leaves_alone_what_waits() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let waiting = blocks(lost, BYTES, MANY / 4);
    free_all(own, &waiting);
    let newest = lost.heap().mailbox().inbox().newest();
    world.orphan_others(own);
    assert_eq!(lost.heap().mailbox().inbox().newest(), newest);
    assert!(newest != 0);
    allocate_until(own, BYTES, &waiting);
    world.check().unwrap();
    assert_eq!(seen::take(), []);
}

/// The child forks again: those orphaned before stay so.
#[test]
fn blocks_of_many_orphaned_heaps_are_handed_out_again_in_children_of_children() {
    let world = world();
    let (own, first, second) = (world.heap(), world.heap(), world.heap());
    let (of_first, of_second) = (blocks(first, BYTES, 300), blocks(second, BYTES, 10));
    free_all(own, &of_first[..100]);
    world.orphan_others(own);
    let others: Vec<_> = (0..20).map(|_| world.heap()).collect();
    let of_others: Vec<_> = others.iter().flat_map(|&other| blocks(other, 400, 50)).collect();
    free_all(own, &of_first[100..200]);
    free_all(own, &of_others);
    world.orphan_others(own);
    free_all(own, &of_first[200..]);
    free_all(own, &of_second);
    allocate_until(own, BYTES, &[of_first, of_second].concat());
    allocate_until(own, 400, &of_others);
    world.check().unwrap();
    assert_eq!(seen::take(), []);
}

#[test]
fn what_is_freed_to_a_heap_that_was_ending_at_the_fork_is_handed_out_again() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let waiting = blocks(lost, BYTES, 100);
    // Its thread was about to abandon the spans.
    lost.heap().mailbox().close(|late| assert!(late.is_empty()));
    world.orphan_others(own);
    free_all(own, &waiting);
    allocate_until(own, BYTES, &waiting);
    world.check().unwrap();
}

#[test]
fn few_blocks_are_sorted_at_a_time() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let (small, large) = (blocks(lost, BYTES, 5000), blocks(lost, 512, 10));
    free_all(own, &large);
    free_all(own, &small);
    world.orphan_others(own);
    assert!(take(own, class_of(512), 10, Effort::LITTLE).is_none());
    assert!(lost.heap().mailbox().inbox().newest() != 0);
}

/// Their memory went back: what is sorted takes some again.
#[test]
fn one_stretch_is_sorted_at_a_time_and_only_where_its_class_is_needed() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let (n, class) = (if cfg!(miri) { 600 } else { 3000 }, class_of(512));
    free_all(own, &blocks(lost, 512, n));
    world.threads.purge_inboxes(&world.shared, Which::All, &|| false);
    world.orphan_others(own);
    for _ in 0..10 {
        assert!(take_one(own, class_of(2000), Effort::LITTLE).is_none());
    }
    assert_eq!(world.shared.central.take_orphaned(class).len, 0);
    assert!(take_one(own, class, Effort::LITTLE).is_some());
    let sorted = world.shared.central.take_orphaned(class).len;
    assert!(sorted > 0 && (sorted as usize) < n / 2, "{sorted}");
}

/// Others free blocks while some are sorted, after an idle purge: what was out of the inbox goes back behind them.
#[test]
fn few_are_sorted_whatever_comes_meanwhile() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let (first, second) = (blocks(lost, 512, 1000), blocks(lost, BYTES, 3000));
    free_all(own, &first);
    world.threads.purge_inboxes(&world.shared, Which::All, &|| false);
    free_all(own, &second[1..]);
    world.orphan_others(own);
    let mailbox = lost.heap().mailbox();
    assert!(mailbox.looked_through().newest() != 0);
    let out = mailbox.inbox().take_for_owner(|| mailbox.key());
    free_all(own, &second[..1]);
    assert!(idle::put_back(&world.shared, mailbox, out).is_ok());
    assert_eq!(mailbox.inbox().newest(), second[0].addr());
    allocate_until(own, BYTES, &second);
}

#[test]
fn without_memory_for_a_span_every_block_that_waits_is_looked_at() {
    for level in ["default", "checks"] {
        let world = World::hardened(4096, level).ignoring_misuse();
        let (own, lost) = (world.heap(), world.heap());
        let n = if cfg!(miri) { 300 } else { 3000 };
        let (wanted, others) = (blocks(lost, 400, n), blocks(lost, 1000, 2 * n));
        free_all(own, &wanted);
        free_all(own, &others);
        world.orphan_others(own);
        upkeep::flush_all(own);
        let used = world.shared.pages.limited_bytes();
        world.set(key::LIMIT_HARD, &std::format!("{used}"));
        let got = (0..n).take_while(|_| !own.allocate(400, 1).start.is_null()).count();
        assert!(got * 10 > n * 9, "{level}: {got}");
    }
}

/// Who did not wait would make a new span.
#[test]
fn a_thread_waits_for_another_that_takes_orphaned_blocks() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let waiting = blocks(lost, BYTES, 100);
    free_all(own, &waiting);
    world.orphan_others(own);
    let (central, holds) = (&world.shared.central, std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _held = central.lock_orphan();
            holds.wait();
            std::thread::sleep(std::time::Duration::from_millis(50));
        });
        holds.wait();
        assert!(take_one(own, class_of(BYTES), Effort::LITTLE).is_some());
    });
}

#[test]
fn blocks_are_taken_as_many_as_are_asked_for() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let waiting = blocks(lost, BYTES, 100);
    free_all(own, &waiting);
    world.orphan_others(own);
    let class = class_of(BYTES);
    assert_eq!(take(own, class, 30, Effort::LITTLE).unwrap().len(), 30);
    assert!(take_one(own, class, Effort::LITTLE).is_some());
    assert_eq!(take(own, class, 100, Effort::LITTLE).unwrap().len(), 69);
    assert!(take(own, class, 1, Effort::LITTLE).is_none());
}

/// As a second free of a block that is on its way, or waits to be handed out again.
#[test]
fn a_second_free_of_an_orphaned_block_is_reported_and_hands_out_no_block_twice() {
    for case in (0..8).step_by(if cfg!(miri) { 3 } else { 1 }) {
        let [before, between, sorted] = [1, 2, 4].map(|bit| case & bit != 0);
        let world = world();
        let (own, lost) = (world.heap(), world.heap());
        let waiting = blocks(lost, BYTES, MANY / 4);
        if before {
            free_all(own, &waiting[..64]);
        }
        world.orphan_others(own);
        if !before {
            free_all(own, &waiting[..64]);
        }
        if between {
            // Sorts some, and takes one.
            let class = class_of(BYTES);
            let taken = take_one(own, class, Effort::LITTLE).unwrap();
            assert!(waiting.contains(&taken.into_node().cast()));
        }
        free_all(own, &waiting[20..30]);
        if sorted {
            // Sorts what was freed again while the rest is in the chain.
            assert!(take_one(own, class_of(2000), Effort::LITTLE).is_none());
        }
        allocate_many(own, case);
        let seen = seen::take();
        assert!(!seen.is_empty(), "{case}");
        assert!(seen.iter().all(|(what, _)| *what == Misuse::DoubleFree { block_bytes: BYTES }), "{case} {seen:?}");
        world.check().unwrap();
    }
}

#[test]
fn a_write_to_an_orphaned_block_is_reported_and_followed_nowhere() {
    for word in [0, 1] {
        let world = world();
        let (own, lost) = (world.heap(), world.heap());
        let waiting = blocks(lost, BYTES, 200);
        world.orphan_others(own);
        free_all(own, &waiting);
        assert_eq!(take(own, class_of(BYTES), 1, Effort::LITTLE).unwrap().len(), 1);
        for block in &waiting {
            // SAFETY: the block is the test's, which writes where a program must not.
            unsafe { block.cast::<usize>().wrapping_add(word).write(0xBAD0_BAD0_BAD0_BAD0) };
        }
        allocate_many(own, word);
        assert!(seen::take().iter().any(|(what, _)| *what == Misuse::link_written(BYTES)), "{word}");
        world.check().unwrap();
    }
}

#[test]
fn a_block_whose_data_is_the_mark_is_freed_and_no_misuse() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let waiting = blocks(lost, BYTES, 100);
    world.orphan_others(own);
    for block in &waiting {
        // SAFETY: the block is the test's.
        unsafe { block.cast::<u64>().wrapping_add(1).write(u64::from(MARK)) };
    }
    free_all(own, &waiting);
    allocate_many(own, 0);
    assert_eq!(seen::take(), []);
    world.check().unwrap();
}

/// The memory of what waits for an orphaned heap goes back as that of an idle thread's blocks does, also while it is being sorted.
#[test]
fn what_nothing_needs_goes_back_to_the_operating_system() {
    let world = world();
    let (own, lost) = (world.heap(), world.heap());
    let waiting = blocks(lost, 512, if cfg!(miri) { 600 } else { 6000 });
    world.orphan_others(own);
    free_all(own, &waiting);
    let class = class_of(512);
    let look = || {
        let before = world.shared.pages.stats().purged_bytes;
        world.threads.purge_inboxes(&world.shared, Which::All, &|| false);
        world.shared.pages.stats().purged_bytes - before
    };
    let n_taken = take(own, class, 10, Effort::LITTLE).unwrap().len();
    assert!(look() > waiting.len() as u64 * 512 / 2);
    let mut n_left = waiting.len() - n_taken as usize;
    while let Some(batch) = take(own, class, 1000, Effort::LITTLE) {
        n_left -= batch.len() as usize;
    }
    assert_eq!(n_left, 0);
    assert_eq!(seen::take(), []);
}

proptest! {
    /// Two heaps of a child take and free blocks of orphaned heaps in any order: none is handed out twice, and the invariants hold.
    #[test]
    fn orphaned_blocks_have_one_owner_at_a_time(
        steps in proptest::collection::vec((0_usize..2, 0_usize..5, 1_usize..80), 1..60),
    ) {
        let world = world();
        let lost: Vec<_> = (0..3).map(|_| world.heap()).collect();
        let heaps = [world.heap(), world.heap()];
        let mut live: Vec<(*mut u8, usize)> = Vec::new();
        for (index, &own) in lost.iter().enumerate() {
            for bytes in [48, 400, 2000] {
                live.extend(blocks(own, bytes, 40 * (index + 1)).into_iter().map(|block| (block, bytes)));
            }
        }
        free_all(heaps[0], &live.split_off(live.len() / 2).into_iter().map(|(block, _)| block).collect::<Vec<_>>());
        upkeep::flush_all(heaps[1]);
        world.orphan_others(heaps[0]);
        let heaps = [heaps[0], world.heap()];
        for (which, what, n) in steps {
            let own = heaps[which];
            match what {
                0..3 => {
                    let bytes = [48, 400, 2000][what];
                    live.extend(blocks(own, bytes, n).into_iter().map(|block| (block, bytes)));
                }
                3 => {
                    let from = live.len().saturating_sub(n);
                    free_all(own, &live.split_off(from).into_iter().map(|(block, _)| block).collect::<Vec<_>>());
                }
                _ => {
                    world.threads.purge_inboxes(&world.shared, Which::All, &|| false);
                }
            }
            let distinct: BTreeSet<_> = live.iter().map(|(block, _)| *block).collect();
            prop_assert_eq!(distinct.len(), live.len());
        }
        world.check().unwrap();
        prop_assert_eq!(seen::take(), []);
    }
}
