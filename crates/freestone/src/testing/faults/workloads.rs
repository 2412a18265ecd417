//! The micro workloads: each exercises one path that memory takes.
#![allow(unsafe_code)]
//!
//! # Safety
//! An explicit heap is destroyed when the play has forgotten its blocks.

use super::play::Play;
use crate::config::key;
use crate::thread::route;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

pub(super) type Workload = fn(&mut Play<'_>);

/// An option and its value, if a workload needs one.
pub(super) type Setting = Option<(usize, &'static str)>;

fn small_blocks(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    (0..600).for_each(|at| play.allocate(heap, 16 + at * 7 % 3000, 1));
    play.free(heap, 2);
    (0..400).for_each(|at| play.allocate(heap, 16 + at * 11 % 900, 1));
    play.free(heap, 3);
}

fn large_blocks(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    for round in 0..3 {
        (0..8).for_each(|at| play.allocate(heap, 70 * KIB + at * 40 * KIB, 1));
        play.free(heap, 2 + round);
    }
}

/// Long enough for huge pages.
fn long_blocks(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    for _ in 0..2 {
        play.allocate(heap, 4 * MIB, 1);
        play.allocate(heap, 100 * KIB, 1);
        play.resize(heap, 0, 5 * MIB);
        play.free(heap, 1);
        (0..50).for_each(|_| play.allocate(heap, 2000, 1));
    }
}

/// Blocks grow in turn, each with others behind it; then they shrink.
fn growth(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    (0..3).for_each(|at| play.allocate(heap, 20 * KIB + at * 100 * KIB, 1));
    for step in 1..7 {
        (0..3).for_each(|at| play.resize(heap, at, (at + 1) * 40 * KIB * step * step / 4));
        play.allocate(heap, 70 * KIB, 1);
    }
    (0..3).for_each(|at| play.resize(heap, at, 100 * KIB + at));
    (0..3).for_each(|at| play.resize(heap, at, 100 + at));
}

fn aligned(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    for align_log2 in 4..22 {
        [1, 5000, 100 * KIB].into_iter().for_each(|bytes| play.allocate(heap, bytes, 1 << align_log2));
    }
    play.free(heap, 2);
}

/// Dirty memory becomes zero memory and is allocated again: each block said to be zero is checked.
fn zeroed(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    for _ in 0..3 {
        (0..4).for_each(|at| play.allocate(heap, 70 * KIB + at * 60 * KIB, 1));
        play.free(heap, 1);
        play.purge();
    }
}

fn explicit_heaps(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    for _ in 0..3 {
        let Some(explicit) = play.world.try_explicit_heap() else { return };
        let before = play.blocks.len();
        (0..200).for_each(|at| play.allocate(explicit.enter().own(), 16 + at * 5, 1));
        (0..4).for_each(|at| play.allocate(explicit.enter().own(), 90 * KIB + at * 100 * KIB, 1));
        play.blocks.truncate(before);
        play.allocate(heap, 200 * KIB, 1);
        // SAFETY: neither the heap nor its blocks are used any more.
        unsafe { play.world.threads.destroy(explicit) };
    }
}

fn purges(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    for round in 0..3 {
        (0..6).for_each(|_| play.allocate(heap, 200 * KIB, 1));
        (0..300).for_each(|_| play.allocate(heap, 1000, 1));
        play.free(heap, 2);
        play.world.os().advance_ms(600);
        play.world.shared.pages.purge_due_now();
        if round > 0 {
            play.purge();
        }
    }
}

fn heaps_that_begin_and_end(play: &mut Play<'_>) {
    for round in 0..6 {
        let (Some(first), Some(second)) = (play.create(), play.create()) else { continue };
        (0..150).for_each(|at| play.allocate(first, 16 + at * 13, 1));
        play.allocate(second, 300 * KIB, 1);
        play.free(second, 2);
        play.end_heap(first);
        (0..50).for_each(|_| play.allocate(second, 48, 1));
        if round % 2 == 0 {
            play.end_heap(second);
        }
    }
}

fn remote_frees(play: &mut Play<'_>) {
    let (Some(producer), Some(consumer)) = (play.create(), play.create()) else { return };
    for _ in 0..4 {
        (0..300).for_each(|at| play.allocate(producer, 16 + at % 5 * 100, 1));
        (0..3).for_each(|_| play.allocate(producer, 128 * KIB, 1));
        play.free(consumer, 1);
    }
    route::send_all(consumer);
}

/// As under `ulimit -v`: clean holes are unmapped for longer blocks, and mapped again.
fn little_address_space(play: &mut Play<'_>) {
    let Some(heap) = play.create() else { return };
    (0..12).for_each(|_| play.allocate(heap, 250 * KIB, 1));
    play.free(heap, 2);
    play.purge();
    play.world.os().limit_committed(play.world.os().committed_bytes() + 256 * KIB);
    (0..2).for_each(|_| play.allocate(heap, 700 * KIB, 1));
    play.free(heap, 3);
    (0..8).for_each(|_| play.allocate(heap, 250 * KIB, 1));
}

/// A micro workload, and an option that changes how it gets memory.
pub(super) const WORKLOADS: [(&str, Workload, Setting); 13] = [
    ("small blocks", small_blocks, None),
    ("large blocks", large_blocks, None),
    ("long blocks, huge pages", long_blocks, Some((key::THP, "auto"))),
    ("large blocks, touched", large_blocks, Some((key::PREFAULT, "populate"))),
    ("growth", growth, None),
    ("aligned", aligned, None),
    ("zeroed", zeroed, Some((key::DIRTY_MAX, "0"))),
    ("explicit heaps", explicit_heaps, None),
    ("purges", purges, None),
    ("purges, lazily", purges, Some((key::PURGE, "free"))),
    ("heaps that begin and end", heaps_that_begin_and_end, None),
    ("remote frees", remote_frees, Some((key::DIRTY_MAX, "0"))),
    ("little address space", little_address_space, None),
];
