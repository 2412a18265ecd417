//! A program writes to free blocks, wherever they are: it is noticed where the block is next looked at, and no wild link is followed.
#![allow(unsafe_code)]
use super::*;
use crate::misuse::seen;
use crate::size_class::class_of;
use crate::testing::{World, freed};
use crate::thread::heap::own::Own;
use crate::thread::{drain, flush, route};
use freestone_os::fake::Fake;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

const BYTES: usize = 48;
const N: usize = 20;

fn world() -> World {
    World::new(4096).ignoring_misuse()
}

fn blocks(own: Own<'_, Fake>) -> Vec<*mut u8> {
    (0..N).map(|_| own.allocate(BYTES, 1).start).collect()
}

fn free(own: Own<'_, Fake>, block: *mut u8) {
    // SAFETY: the block is the test's, and not used any more but for the test's misuse.
    unsafe { own.free(block) }
}

/// Writes to a free block, as a program should not.
fn write(block: *mut u8, word: usize, value: u64) {
    // SAFETY: the block is in the heap's memory, and the test is in one thread.
    unsafe { block.cast::<u64>().wrapping_add(word).write(value) }
}

/// Asserts that a write to a free block was reported, at this address if one is given, and nothing else.
fn assert_written(at: Option<*mut u8>) {
    let seen = seen::take();
    let block_bytes = block_bytes(class_of(BYTES));
    assert!(!seen.is_empty() && seen.iter().all(|(what, _)| *what == Misuse::link_written(block_bytes)), "{seen:?}");
    if let Some(at) = at {
        assert_eq!(seen[0].1, at.addr());
    }
}

/// The heap works: blocks that it hands out are not handed out twice, and every invariant holds.
fn assert_sound(world: &World, own: Own<'_, Fake>) {
    let all: BTreeSet<_> = (0..500).map(|_| own.allocate(BYTES, 1).start).collect();
    assert_eq!(all.len(), 500);
    assert_eq!(seen::take(), []);
    assert_eq!(world.check(), Ok(()));
}

/// What an attacker or a bug writes: zero, small numbers, addresses, anything.
fn any_value() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..256, Just(0x4141_4141_4141_4141), any::<u64>(), (0u64..1 << 43).prop_map(|at| at << 4)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 400 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_block_of_a_bin_that_is_written_to_is_noticed_by_a_flush(
        at in 0..N,
        word in 0usize..2,
        value in any_value(),
        keep in 0i64..N as i64,
    ) {
        let world = world();
        let heap = world.heap();
        let all = blocks(heap);
        let rest = heap.bins().len(class_of(BYTES));
        all.iter().rev().for_each(|&block| free(heap, block));
        write(all[at], word, value);
        flush::flush(heap, class_of(BYTES), keep);
        // The mark of a block that stays in the bin is not looked at, and its link only if another one stays behind it.
        let at = at as i64;
        if at < if word == 0 { keep - 1 } else { 0 } || at >= keep {
            assert_written(Some(all[at as usize]));
            prop_assert_eq!(heap.bins().len(class_of(BYTES)), keep.min(if at < keep { at + 1 } else { keep }));
            assert_sound(&world, heap);
        } else {
            prop_assert!(rest >= 0);
            let _ = seen::take();
        }
    }

    /// Most of the other thread's blocks are sent in one loop. The link of the last one is not followed.
    #[test]
    fn another_heaps_block_in_a_bin_that_is_written_to_is_noticed_by_a_flush(at in 0..N - 1, word in 0usize..2, value in any_value()) {
        let world = world();
        let (owner, other) = (world.heap(), world.heap());
        let all = blocks(owner);
        for &block in all.iter().rev() {
            let _ = other.bins().push(freed(block, class_of(BYTES)));
        }
        write(all[at], word, value);
        flush::flush(other, class_of(BYTES), 0);
        assert_written(Some(all[at]));
        // What is behind it is lost; what is before it arrives.
        let before = owner.bins().len(class_of(BYTES));
        route::send_all(other);
        drain::drain(owner);
        let arrived = owner.bins().len(class_of(BYTES)) - before;
        prop_assert_eq!(arrived as usize, if word == 0 { at + 1 } else { at });
        assert_sound(&world, owner);
    }

    #[test]
    fn a_block_in_transit_that_is_written_to_is_noticed_by_the_drain(at in 0..N, word in 0usize..2, value in any_value()) {
        let world = world();
        let (owner, other) = (world.heap(), world.heap());
        let all = blocks(owner);
        all.iter().rev().for_each(|&block| free(other, block));
        route::send_all(other);
        write(all[at], word, value);
        drain::drain(owner);
        assert_written(Some(all[at]));
        assert_sound(&world, owner);
    }

    /// What is aligned, or zero, is noticed by the very next allocation, before anything is read from there.
    #[test]
    fn a_link_with_an_address_written_over_it_is_never_followed(at in 0..N, value in (0u64..1 << 43).prop_map(|at| at << 4)) {
        let world = world();
        let heap = world.heap();
        let all = blocks(heap);
        all.iter().rev().for_each(|&block| free(heap, block));
        write(all[at], 0, value);
        for &block in &all[..=at] {
            prop_assert_eq!(heap.allocate(BYTES, 1).start, block);
        }
        prop_assert_eq!(seen::take(), []);
        prop_assert!(!heap.allocate(BYTES, 1).start.is_null());
        assert_written(None);
        assert_sound(&world, heap);
    }
}

#[test]
fn a_free_inside_a_granule_is_reported_with_size_and_offset_whoever_owns_the_block() {
    let world = world();
    let (owner, other) = (world.heap(), world.heap());
    let all = blocks(owner);
    for (heap, offset) in [owner, other].into_iter().flat_map(|heap| (1..BYTES).map(move |offset| (heap, offset))) {
        if offset % 16 != 0 {
            free(heap, all[3].wrapping_add(offset));
            let what = Misuse::Interior { block_bytes: BYTES, offset };
            assert_eq!(seen::take(), [(what, all[3].addr() + offset)]);
            assert_eq!(heap.heap().counts(class_of(BYTES)).frees, 0);
        }
    }
}

#[test]
fn a_free_at_a_granule_inside_a_block_is_reported_by_the_flush() {
    let world = world();
    let heap = world.heap();
    let all = blocks(heap);
    free(heap, all[3].wrapping_add(16));
    flush::flush(heap, class_of(BYTES), 0);
    assert_eq!(seen::take(), [(Misuse::Interior { block_bytes: BYTES, offset: 16 }, all[3].addr() + 16)]);
}

#[test]
fn a_block_whose_span_is_gone_is_told_from_a_link_that_leads_to_no_block() {
    let world = world();
    let own = world.heap();
    let large = own.allocate(100_000, 1).start;
    let (view, before) = (own.renew_view(), (16, class_of(BYTES)));
    let gone = Found::Lost(large.addr()).wrong(&view, Marked::InBin, before);
    assert!(matches!(gone, Some(Found::Lost(address)) if address == large.addr()), "{gone:?}");
    let wild = Found::Lost(48).wrong(&view, Marked::InBin, before);
    assert!(matches!(wild, Some(Found::Wrong(what, 16)) if what == Misuse::link_written(BYTES)), "{wild:?}");
}
