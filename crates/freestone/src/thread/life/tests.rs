use super::*;
use crate::testing::{OneHeap, World, fill, free, is_filled, resize_in_place};
use crate::thread::route;
use crate::thread::upkeep;
use freestone_base::units::PAGE_BYTES;
use freestone_testkit::ops::{Player, any_stream};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

const BLOCK: usize = 64;

fn allocate(heap: Own<'_, freestone_os::fake::Fake>) -> *mut u8 {
    heap.allocate(BLOCK, 1).start
}

fn allocate_in(heap: &ExplicitHeap<freestone_os::fake::Fake>) -> *mut u8 {
    allocate(heap.enter().own())
}

#[test]
fn deleting_an_explicit_heap_changes_no_block_of_an_abandoned_span() {
    let world = World::new(4096);
    let (dying, other) = (world.heap(), world.heap());
    let kept: Vec<_> = (0..40).map(|_| allocate(dying)).collect();
    kept.iter().for_each(|&block| fill(block, b'K', BLOCK));
    world.end(dying);
    let explicit = world.explicit_heap();
    (0..100).for_each(|_| fill(allocate_in(explicit), b'E', BLOCK));
    world.check().unwrap();
    world.destroy(explicit);
    world.check().unwrap();
    (0..3000).for_each(|_| fill(allocate(other), b'O', BLOCK));
    assert!(kept.iter().all(|&block| is_filled(block, b'K', BLOCK)));
}

#[test]
fn an_explicit_heap_takes_no_orphaned_blocks() {
    let world = World::new(4096);
    let (own, gone) = (world.heap(), world.heap());
    let blocks: Vec<_> = (0..10).map(|_| allocate(gone)).collect();
    world.orphan_others(own);
    blocks.iter().for_each(|&block| free(own, block));
    upkeep::flush_all(own);
    let explicit = world.explicit_heap();
    let taken: Vec<_> = (0..2000).map(|_| allocate_in(explicit)).collect();
    assert!(taken.iter().all(|block| !blocks.contains(block)));
    world.destroy(explicit);
    world.check().unwrap();
}

/// The blocks are freed by a thread that hands its remote frees over only later, the heap is deleted, its record and its pages are used
/// again: none of the blocks may turn up there.
#[test]
fn blocks_freed_before_their_explicit_heap_was_deleted_never_come_back() {
    let world = World::new(4096);
    let heap = world.heap();
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        let explicit = world.explicit_heap();
        let blocks: Vec<_> = (0..20).map(|_| allocate_in(explicit)).collect();
        blocks.into_iter().for_each(|block| free(heap, block));
        world.destroy(explicit);
        let next = world.explicit_heap();
        let mut live: BTreeSet<_> = (0..900).map(|_| allocate_in(next)).collect();
        route::send_all(heap);
        world.check().unwrap();
        live.iter().for_each(|&block| fill(block, b'L', BLOCK));
        for _ in 0..900 {
            let block = allocate_in(next);
            assert!(live.insert(block), "round {round}: {block:?} is handed out twice");
        }
        world.destroy(next);
        world.check().unwrap();
    }
}

#[test]
fn a_child_counts_only_the_heaps_that_exist_in_it() {
    let world = World::new(4096);
    let n: u32 = if cfg!(miri) { 40 } else { 400 };
    let heaps: Vec<_> = (0..n).map(|_| world.heap()).collect();
    let explicit = world.explicit_heap();
    assert_eq!((world.threads.n_alive(), world.shared.usage.n_heaps()), (n + 1, n + 1));
    world.orphan_others(heaps[0]);
    assert_eq!((world.threads.n_alive(), world.shared.usage.n_heaps()), (2, 2));
    world.destroy(explicit);
    world.end(heaps[0]);
    assert_eq!((world.threads.n_alive(), world.shared.usage.n_heaps()), (0, 0));
}

#[test]
fn room_that_threads_had_borrowed_is_free_again_in_a_child_in_which_they_do_not_exist() {
    let world = World::new(4096);
    let (own, other) = (world.heap(), world.heap());
    world.shared.usage.set_n_heaps(1000, 0);
    for _ in 0..3 {
        let block = other.allocate(4096, 1).start;
        crate::testing::free(other, block);
    }
    assert!(world.shared.usage.room().lent_bytes() > 0);
    world.orphan_others(own);
    assert_eq!(world.shared.usage.room().lent_bytes(), 0);
}

#[test]
fn the_page_map_distinguishes_blocks_of_explicit_heaps_from_others() {
    let world = World::new(4096);
    let (thread, explicit) = (world.heap(), world.explicit_heap());
    assert!(!thread.generation().is_explicit() && explicit.gated().heap().generation().is_explicit());
}

#[test]
fn only_its_own_heap_grows_a_large_block_of_an_explicit_heap_in_place() {
    let world = World::new(4096);
    let (heap, explicit) = (world.heap(), world.explicit_heap());
    explicit.set_limit(Some(32)).unwrap();
    let block = explicit.enter().own().allocate(20 * PAGE_BYTES, 1).start;
    assert!(!resize_in_place(heap, block, 21 * PAGE_BYTES), "another heap does not check the limit");
    assert!(resize_in_place(explicit.enter().own(), block, 30 * PAGE_BYTES));
    assert!(!resize_in_place(explicit.enter().own(), block, 33 * PAGE_BYTES), "beyond the limit");
    assert!(resize_in_place(heap, block, 10 * PAGE_BYTES), "any heap may shrink a block");
    let own = heap.allocate(20 * PAGE_BYTES, 1).start;
    assert!(!resize_in_place(explicit.enter().own(), own, 21 * PAGE_BYTES), "it would not count towards the limit");
    free(heap, own);
    world.destroy(explicit);
    world.check().unwrap();
}

#[test]
fn the_spans_of_an_ended_heap_are_adopted_and_its_late_blocks_are_returned() {
    let world = World::new(4096);
    let other = world.heap();
    for round in 0..if cfg!(miri) { 4 } else { 100 } {
        let dying = world.heap();
        let kept = dying.allocate(48, 1).start;
        let also = dying.allocate(48, 1).start;
        // Buffered for an owner that ends before the handover.
        free(other, also);
        world.end(dying);
        world.check().unwrap();
        let heir = world.heap();
        let block = heir.allocate(48, 1).start;
        free(heir, block);
        free(other, kept);
        route::send_all(other);
        world.end(heir);
        world.check().unwrap_or_else(|broken| panic!("round {round}: {broken}"));
    }
    world.end(other);
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0);
}

mod records;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Thread heaps and explicit heaps take turns with one stream, each freeing and resizing blocks of all; from time to time a thread ends
    /// and another begins, and an explicit heap without live blocks is deleted and made anew.
    #[test]
    fn explicit_heaps_live_beside_thread_heaps(
        stream in any_stream(24, if cfg!(miri) { 15 } else { 400 }, vec![0]),
        turns in proptest::collection::vec((0usize..4, 0u8..40), 400),
        bin_max in 1u32..=8,
    ) {
        let world = World::new(4096);
        world.set(crate::config::key::BIN_MAX, &std::format!("{bin_max}"));
        world.set(crate::config::key::DIRTY_MAX, "0");
        let mut threads = [world.heap(), world.heap(), world.heap()];
        let mut player = Player::new(OneHeap { world: &world, heap: threads[0] });
        for (op, (turn, event)) in stream.ops.iter().zip(&turns) {
            // The stream's blocks are in thread heaps; an explicit heap is made and deleted beside them, with blocks freed by all.
            if let Some(heap) = threads.get_mut(*turn) {
                if *event == 0 {
                    world.end(*heap);
                    *heap = world.heap();
                }
                player.subject.heap = *heap;
            } else {
                let explicit = world.explicit_heap();
                for size in [8, 64, 300, 64, 40_000, 64, 3000] {
                        let block = explicit.enter().own().allocate(size, 1).start;
                        prop_assert!(!block.is_null());
                        fill(block, 0xEE, size);
                        if size != 300 {
                            free(player.subject.heap, block);
                        }
                    }
                    world.destroy(explicit);
            }
            player.step(*op).unwrap();
        }
        world.check().unwrap();
        player.drain().unwrap();
        for heap in threads {
            world.end(heap);
        }
        world.check().unwrap();
        let (stats, freed) = (world.shared.pages.stats(), world.shared.pages.freed_pages());
        prop_assert_eq!(stats.large_pages, u64::from(freed.0), "every block was returned");
    }
}

/// In the child, what was on its way to a thread that does not exist there is not lost.
#[test]
fn blocks_on_their_way_to_an_orphaned_heap_are_handed_out_again() {
    let world = World::new(4096);
    let (own, other) = (world.heap(), world.heap());
    let blocks: Vec<_> = (0..5).map(|_| allocate(other)).collect();
    blocks.iter().for_each(|&block| free(own, block));
    upkeep::flush_all(own);
    world.orphan_others(own);
    let mut again = Vec::new();
    while !blocks.iter().all(|block| again.contains(block)) {
        assert!(again.len() < 2000, "a block is lost");
        again.push(allocate(own));
    }
}

#[test]
fn nobody_enters_an_explicit_heap_while_the_process_forks() {
    let world = World::new(4096);
    let [one, other] = [world.explicit_heap(), world.explicit_heap()];
    world.threads.lock_for_fork();
    assert!(one.try_enter().is_none() && other.try_enter().is_none());
    // SAFETY: this thread took the locks, and goes on after the fork.
    world.threads.unlock_after_fork(unsafe { Forker::new() });
    assert!(one.try_enter().is_some() && other.try_enter().is_some());
}

#[test]
fn in_a_sandbox_the_kernel_gives_no_random_number_after_the_first_heap_began() {
    for (level, sandbox) in [("off", "on"), ("default", "on"), ("checks", "on"), ("full", "on"), ("checks", "off")] {
        let world = World::hardened(4096, level);
        world.set(crate::config::key::SANDBOX, sandbox);
        let first = world.heap();
        let [one, next] = [(); 2].map(|()| world.os().random());
        let second = world.heap();
        // SAFETY: what the heaps share outlives this test's use of them.
        let explicit = unsafe { world.threads.create_explicit(&world.shared, Harden::Full) };
        let is_next = world.os().random().wrapping_sub(next) == next.wrapping_sub(one);
        assert_eq!(is_next, sandbox == "on", "{level}");
        allocate(first);
        allocate(second);
        allocate_in(explicit.expect("the fake kernel has memory"));
    }
}
