#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::misuse::{Misuse, seen};
use crate::size_class::{block_bytes, class_of};
use crate::testing::World;
use crate::thread::{drain, flush, route, upkeep};
use freestone_os::fake::Fake;
use proptest::prelude::*;
use std::vec::Vec;

mod buffered;

/// A world whose heaps go on after a misuse.
fn world() -> World {
    World::new(4096).ignoring_misuse()
}

fn blocks(own: Own<'_, Fake>, bytes: usize, n: usize) -> Vec<*mut u8> {
    (0..n).map(|_| own.allocate(bytes, 1).start).collect()
}

/// Frees a block as C's `free` does.
fn free(own: Own<'_, Fake>, block: *mut u8) {
    // SAFETY: the heap is the test's.
    let current = unsafe { own.heap().as_current() };
    // SAFETY: the block is the test's, and its page has the entry; that it is freed twice is the point.
    let free = |(own, entry): (Own<'_, _>, _)| unsafe { own.free_remote(block, entry) };
    if !current.entry_of_block(block.addr()).is_some_and(free) {
        // SAFETY: as above.
        unsafe { own.free(block) }
    }
}

/// Frees a block as a Rust program's drop does.
fn drop_sized(own: Own<'_, Fake>, block: *mut u8, bytes: usize) {
    // SAFETY: as above.
    let block = unsafe { FreeBlock::new(block, class_of(bytes)) };
    if let Err(block) = own.bins().try_push(block) {
        // SAFETY: as above.
        unsafe { own.free_layout(block, bytes, 1) };
    }
}

/// Asserts that a double free of this block was reported, and nothing else.
fn assert_seen(block: *mut u8, bytes: usize) {
    let what = Misuse::DoubleFree { block_bytes: block_bytes(class_of(bytes)) };
    assert_eq!(seen::take(), [(what, block.addr())]);
}

fn write(block: *mut u8, word: usize, value: u64) {
    // SAFETY: the block lies in the heap's memory.
    unsafe { block.cast::<u64>().wrapping_add(word).write(value) };
}

const SIZES: [usize; 4] = [8, 48, 4096, 32768];

/// Calls `f` for each size with two heaps, five blocks of the first one, and the size. Afterwards every invariant holds.
fn with_two_heaps(sizes: &[usize], f: impl Fn(Own<'_, Fake>, Own<'_, Fake>, &[*mut u8], usize)) {
    for &bytes in sizes {
        let world = world();
        let (owner, other) = (world.heap(), world.heap());
        let all = blocks(owner, bytes, 5);
        f(owner, other, &all, bytes);
        assert_eq!(world.check(), Ok(()));
    }
}

#[test]
fn a_block_freed_twice_at_once_is_reported_and_stays_free_once() {
    with_two_heaps(&SIZES, |heap, _, all, bytes| {
        free(heap, all[0]);
        free(heap, all[0]);
        assert_seen(all[0], bytes);
    });
}

#[test]
fn a_block_freed_twice_with_other_frees_between_is_reported() {
    with_two_heaps(&SIZES, |heap, _, all, bytes| {
        // One is left, so that the span stays.
        all[1..].iter().for_each(|&block| free(heap, block));
        free(heap, all[2]);
        assert_seen(all[2], bytes);
    });
}

#[test]
fn a_block_freed_twice_with_a_flush_between_is_reported() {
    with_two_heaps(&SIZES, |heap, _, all, bytes| {
        free(heap, all[1]);
        flush::flush(heap, class_of(bytes), 0);
        free(heap, all[1]);
        assert_seen(all[1], bytes);
    });
}

#[test]
fn a_block_freed_by_its_owner_and_then_by_another_is_reported_when_it_arrives() {
    for is_flushed in [false, true] {
        with_two_heaps(&SIZES, |owner, other, all, bytes| {
            free(owner, all[0]);
            free(owner, all[1]);
            if is_flushed {
                flush::flush(owner, class_of(bytes), 0);
            }
            // The first block begins a batch, which the second one could join.
            free(other, all[2]);
            free(other, all[1]);
            assert_eq!(seen::take(), []);
            drain::drain(owner);
            assert_seen(all[1], bytes);
        });
    }
}

#[test]
fn a_block_freed_by_another_and_then_by_its_owner_is_reported_when_it_is_handed_over_or_arrives() {
    for is_handed_over in [false, true] {
        with_two_heaps(&SIZES, |owner, other, all, bytes| {
            free(other, all[1]);
            if is_handed_over {
                route::send_all(other);
            }
            free(owner, all[1]);
            route::send_all(other);
            drain::drain(owner);
            assert_seen(all[1], bytes);
        });
    }
}

#[test]
fn a_block_dropped_and_then_freed_is_reported_whoever_owns_it() {
    with_two_heaps(&SIZES, |owner, other, all, bytes| {
        other.bins().grant(class_of(bytes), 10);
        for (heap, block) in [(owner, all[0]), (other, all[1])] {
            drop_sized(heap, block, bytes);
            free(heap, block);
            assert_seen(block, bytes);
            drop_sized(heap, block, bytes);
            assert_seen(block, bytes);
        }
    });
}

#[test]
fn a_block_of_an_explicit_heap_freed_twice_is_reported_when_it_arrives() {
    let world = world();
    let (heap, explicit) = (world.heap(), world.explicit_heap());
    let all = blocks(explicit.enter().own(), 48, 3);
    free(heap, all[0]);
    free(heap, all[0]);
    drain::drain(explicit.enter().own());
    assert_eq!(seen::take().len(), 1);
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn a_block_of_a_span_without_owner_freed_twice_is_reported() {
    let world = world();
    let (owner, heap, other) = (world.heap(), world.heap(), world.heap());
    let all = blocks(owner, 48, 4);
    // SAFETY: the heap is not used any more.
    unsafe { world.threads.end(owner) };
    free(heap, all[0]);
    free(heap, all[0]);
    assert_seen(all[0], 48);
    flush::flush(heap, class_of(48), 0);
    free(other, all[0]);
    assert_seen(all[0], 48);
    assert_eq!(world.check(), Ok(()));
}

/// Nobody finds the block in the bin of another thread, which does when it takes the block out: with many threads that is where blocks of shared spans are.
#[test]
fn a_block_of_a_shared_span_freed_again_by_another_thread_is_reported_by_the_first() {
    let world = world();
    let (one, other) = (world.heap(), world.heap());
    world.shared.usage.set_n_heaps(17, 0);
    let all = blocks(one, 2048, 2);
    all.iter().for_each(|&block| free(one, block));
    free(other, all[1]);
    assert_eq!(seen::take(), []);
    assert_eq!(blocks(one, 2048, 1), [all[1]]);
    blocks(one, 2048, 1);
    assert_eq!(seen::take(), [(Misuse::link_written(2048), 0)]);
}

#[test]
fn a_block_that_was_never_allocated_is_reported_if_it_has_a_mark() {
    let world = world();
    let heap = world.heap();
    let block = heap.allocate(48, 1).start;
    flush::flush(heap, class_of(48), 0);
    let fresh = block.wrapping_add(48 * 600);
    // SAFETY: the address lies in the span, behind what was carved.
    unsafe { crate::span::free_node::write_in_bin(fresh.cast(), core::ptr::null_mut(), heap.bins().key()) };
    free(heap, fresh);
    assert_seen(fresh, 48);
}

/// The program's data is what a mark is, in every shape that a mark has.
#[test]
fn a_program_whose_data_equals_the_mark_is_never_accused() {
    let world = world();
    let (heap, other, explicit) = (world.heap(), world.heap(), world.explicit_heap());
    for &bytes in if cfg!(miri) { &[48][..] } else { &[16, 48, 4096] } {
        let mark = heap.allocate(bytes, 1).start;
        free(heap, mark);
        // SAFETY: the block lies in the heap's memory.
        let word = unsafe { mark.cast::<u64>().wrapping_add(1).read() };
        for place in [0, 1, 1 << 31, u64::from(u32::MAX)].into_iter().step_by(if cfg!(miri) { 3 } else { 1 }) {
            let word = word & u64::from(u32::MAX) | place << 32;
            let all = blocks(heap, bytes, 100);
            let of_explicit = blocks(explicit.enter().own(), bytes, 10);
            for &block in all.iter().chain(&of_explicit) {
                write(block, 1, word);
            }
            all[..30].iter().for_each(|&block| free(heap, block));
            all[30..60].iter().for_each(|&block| free(other, block));
            all[60..80].iter().for_each(|&block| drop_sized(heap, block, bytes));
            all[80..].iter().for_each(|&block| drop_sized(other, block, bytes));
            of_explicit.iter().for_each(|&block| free(heap, block));
            route::send_all(other);
            drain::drain(heap);
            drain::drain(explicit.enter().own());
            upkeep::flush_all(other);
            upkeep::flush_all(heap);
        }
    }
    assert_eq!(seen::take(), []);
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn without_hardening_nothing_is_looked_for() {
    let world = world();
    world.set(key::HARDEN, "off");
    let heap = world.heap();
    let block = heap.allocate(48, 1).start;
    free(heap, block);
    free(heap, block);
    assert_eq!(seen::take(), []);
    flush::flush(heap, class_of(48), 0);
    assert!(!seen::take().is_empty(), "the span refuses the block");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 300 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Three heaps free each other's blocks in any order, one of them twice; buffers are sent and inboxes drained at any time in between.
    #[test]
    fn a_block_freed_twice_by_any_two_heaps_is_noticed_by_the_time_all_is_drained(
        frees in proptest::collection::vec((0usize..3, 0usize..20, 0usize..8), 10..40),
        twice in (0usize..3, 0usize..3, 0usize..20),
        at in 0usize..40,
        bytes in proptest::sample::select(vec![16usize, 48, 1000]),
    ) {
        let world = world();
        let heaps = [world.heap(), world.heap(), world.heap()];
        let all = blocks(heaps[0], bytes, 20);
        let mut is_free = [false; 20];
        let free_once = |heap: usize, block: usize, is_free: &mut [bool; 20]| {
            if !core::mem::replace(&mut is_free[block], true) {
                free(heaps[heap], all[block]);
            }
        };
        for (step, &(heap, block, what)) in frees.iter().enumerate() {
            if step == at % frees.len() {
                let (one, _, block) = twice;
                free_once(one, block, &mut is_free);
            }
            // The one that is freed twice stays free: an allocation in between would make the second free an ordinary one.
            match what {
                0 => route::send_all(heaps[heap]),
                1 => drain::drain(heaps[heap]),
                2 => flush::flush(heaps[heap], class_of(bytes), 1),
                _ => free_once(heap, block, &mut is_free),
            }
        }
        free(heaps[twice.1], all[twice.2]);
        for _ in 0..2 {
            heaps.iter().for_each(|&heap| route::send_all(heap));
            heaps.iter().for_each(|&heap| drain::drain(heap));
            heaps.iter().for_each(|&heap| upkeep::flush_all(heap));
        }
        let seen = seen::take();
        prop_assert!(!seen.is_empty(), "nothing was noticed");
        let is_foreign = |(what, _): &(Misuse, usize)| matches!(what, Misuse::Foreign | Misuse::Interior { .. });
        prop_assert!(!seen.iter().any(is_foreign), "{:?}", seen);
    }
}

#[test]
fn a_block_that_another_thread_has_handed_over_is_not_freed_again_by_its_owner() {
    let world = world();
    let (owner, other) = (world.heap(), world.heap());
    let blocks = blocks(owner, 100, 10);
    blocks.iter().for_each(|&block| free(other, block));
    route::send_all(other);
    for &block in &blocks {
        free(owner, block);
    }
    let seen = seen::take();
    let expected: Vec<_> = blocks.iter().map(|block| (Misuse::DoubleFree { block_bytes: 112 }, block.addr())).collect();
    assert_eq!(seen, expected);
    world.check().unwrap();
}
