#![allow(unsafe_code)]
use super::*;
use crate::span::View;
use std::boxed::Box;
use std::vec::Vec;

mod aside;
mod sampling;

const CLASS: usize = 3;

/// Blocks that a test owns: leaked memory, with room for two words each, aligned as blocks are.
struct Blocks(Vec<*mut u8>);

impl Blocks {
    fn new(n: usize) -> Self {
        Self((0..n).map(|_| core::ptr::from_mut(Box::leak(Box::new(0_u128))).cast()).collect())
    }

    fn start(&self, at: usize) -> *mut u8 {
        self.0[at]
    }

    fn free_block(&self, at: usize) -> FreeBlock {
        // SAFETY: the test owns the memory, which has room for two words.
        unsafe { FreeBlock::new(self.start(at), CLASS) }
    }
}

/// All but the first `keep` blocks.
fn cut(bins: &Bins, keep: i64) -> Option<FreeChain> {
    bins.take_all_but(CLASS, keep, &View::EMPTY).expect("no link is damaged")
}

/// Pops all blocks.
fn pop_all(bins: &Bins) -> Vec<*mut u8> {
    core::iter::from_fn(|| Some(bins.pop(CLASS)).filter(|block| !block.is_null())).collect()
}

#[test]
fn the_block_freed_last_is_allocated_first_and_counted() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(3));
    bins.grant(CLASS, 10);
    (0..3).for_each(|at| assert!(!bins.push(blocks.free_block(at))));
    assert_eq!((bins.frees(CLASS), bins.len(CLASS), bins.live(CLASS)), (3, 3, -3));
    assert_eq!(pop_all(&bins), [2, 1, 0].map(|at| blocks.start(at)));
    assert_eq!((bins.allocs(CLASS), bins.len(CLASS), bins.live(CLASS)), (3, 0, 0));
    assert_eq!((bins.len(CLASS + 1), bins.allocs(CLASS - 1)), (0, 0), "other bins do not change");
}

#[test]
fn the_free_that_exceeds_the_room_asks_for_the_slow_path() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(3));
    bins.grant(CLASS, 2);
    let looked_at: Vec<_> = (0..3).map(|at| bins.push(blocks.free_block(at))).collect();
    assert_eq!(looked_at, [false, false, true]);
    assert_eq!((bins.len(CLASS), bins.frees(CLASS)), (3, 3), "the block is in the bin all the same");
}

#[test]
fn room_that_is_withheld_is_there_for_the_slow_path_alone_until_it_is_used_up() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(4));
    bins.grant(CLASS, 7);
    bins.withhold(CLASS, 2);
    assert_eq!((bins.room(CLASS), bins.room_or_withheld(CLASS)), (0, 2));
    assert!(bins.try_push(blocks.free_block(3)).is_err(), "the hot paths find none");
    for left in [1, 0] {
        assert!(bins.push_withheld(blocks.free_block(left)).is_ok());
        assert_eq!(bins.room_or_withheld(CLASS), left as i64);
    }
    assert!(bins.push_withheld(blocks.free_block(2)).is_err());
    assert_eq!((bins.frees(CLASS), bins.len(CLASS)), (2, 2));
    assert_eq!(pop_all(&bins), [0, 1].map(|at| blocks.start(at)));
    bins.grant(CLASS, 5);
    assert_eq!(bins.room_or_withheld(CLASS), 5);
}

#[test]
fn the_allocations_within_reach_are_those_of_all_frees_there_is_room_for() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(4));
    bins.grant(CLASS, 4);
    assert!(!bins.push(blocks.free_block(0)));
    bins.put(blocks.free_block(1));
    let reach = bins.allocs_within_reach(CLASS);
    assert_eq!(pop_all(&bins).len(), 2);
    (0..3).for_each(|at| assert!(!bins.push(blocks.free_block(at))));
    assert_eq!(pop_all(&bins).len(), 3);
    assert_eq!((bins.room(CLASS), bins.allocs(CLASS), bins.allocs_within_reach(CLASS)), (0, reach, reach));
}

#[test]
fn a_block_is_not_pushed_into_a_bin_without_room() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(2));
    assert!(bins.try_push(blocks.free_block(0)).is_err(), "a placeholder never has room");
    assert!(bins.is_empty(CLASS) && bins.frees(CLASS) == 0);
    bins.grant(CLASS, 1);
    assert!(bins.try_push(blocks.free_block(0)).is_ok());
    let refused = bins.try_push(blocks.free_block(1)).unwrap_err();
    assert_eq!((refused.node().cast(), bins.len(CLASS)), (blocks.start(1), 1));
}

#[test]
fn granting_room_changes_no_count_of_frees() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(2));
    for room in [5, 0, 3] {
        bins.grant(CLASS, room);
        assert_eq!((bins.room(CLASS), bins.frees(CLASS), bins.len(CLASS)), (room, 0, 0));
    }
    let _ = bins.push(blocks.free_block(0));
    bins.grant(CLASS, 100);
    assert_eq!((bins.room(CLASS), bins.frees(CLASS)), (100, 1));
}

#[test]
fn a_block_that_was_freed_remotely_is_in_the_bin_and_not_counted_as_a_free() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(1));
    bins.put(blocks.free_block(0));
    assert_eq!((bins.len(CLASS), bins.frees(CLASS), bins.room(CLASS)), (1, 0, 0));
    assert_eq!(pop_all(&bins), [blocks.start(0)]);
}

#[test]
fn a_batch_comes_before_what_is_in_the_bin() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(3));
    bins.put(blocks.free_block(2));
    let mut chain = crate::span::free_node::Chain::EMPTY;
    for at in [1, 0] {
        // SAFETY: the block is the test's.
        unsafe { chain.push(blocks.start(at).cast(), LinkKey::PLAIN) };
    }
    // SAFETY: the blocks are the test's.
    bins.put_batch(unsafe { FreeBatch::new(chain, CLASS) }.unwrap());
    assert_eq!(bins.len(CLASS), 3);
    assert_eq!(pop_all(&bins), [0, 1, 2].map(|at| blocks.start(at)));
}

#[test]
fn a_cut_keeps_the_blocks_freed_last() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(5));
    bins.grant(CLASS, 10);
    (0..5).for_each(|at| assert!(!bins.push(blocks.free_block(at))));
    let mut cut = cut(&bins, 2).unwrap();
    assert_eq!((cut.n_left(), cut.class()), (3, CLASS));
    let mut taken = Vec::new();
    while !cut.first().is_null() {
        taken.push(cut.first().cast());
        let _ = cut.pop(&View::EMPTY, 0);
    }
    assert_eq!(taken, [2, 1, 0].map(|at| blocks.start(at)));
    bins.count_moved(CLASS, -3);
    assert_eq!(bins.len(CLASS), 2);
    assert_eq!(pop_all(&bins), [4, 3].map(|at| blocks.start(at)));
}

#[test]
fn nothing_is_taken_from_a_bin_that_has_no_more_than_it_keeps() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(2));
    (0..2).for_each(|at| bins.put(blocks.free_block(at)));
    assert!(cut(&bins, 3).is_none());
    assert!(cut(&bins, 2).unwrap().first().is_null());
    assert_eq!(bins.len(CLASS), 2);
}

/// A block freed twice in a row links to itself.
#[test]
fn a_cut_ends_after_as_many_blocks_as_were_counted_even_if_the_links_form_a_ring() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(1));
    (0..4).for_each(|_| bins.put(blocks.free_block(0)));
    let mut cut = cut(&bins, 0).unwrap();
    assert_eq!(core::iter::from_fn(|| cut.pop(&View::EMPTY, 0)).count(), 4);
}

#[test]
fn a_bin_computes_its_first_capacity_once_and_keeps_what_was_set() {
    let bins = Bins::empty();
    assert_eq!(bins.capacity(CLASS, || 40), 40);
    assert_eq!(bins.capacity(CLASS, || panic!("it is set")), 40);
    bins.set_capacity(CLASS, 100);
    assert_eq!(bins.capacity(CLASS, || 1), 100);
}

#[test]
fn what_was_flushed_adds_up_until_the_bin_runs_empty() {
    let bins = Bins::empty();
    bins.count_flushed(CLASS, 10);
    bins.count_flushed(CLASS, u32::MAX - 5);
    assert_eq!((bins.flushed(CLASS), bins.restart_flushed(CLASS)), (u32::MAX, u32::MAX));
    assert_eq!(bins.flushed(CLASS), 0);
}

#[test]
fn a_bin_is_idle_when_it_has_blocks_and_none_was_taken_since_the_last_tick() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(2));
    assert!(!bins.is_idle_since_last_asked(CLASS), "it is empty");
    (0..2).for_each(|at| bins.put(blocks.free_block(at)));
    assert!(bins.is_idle_since_last_asked(CLASS));
    let _ = bins.pop(CLASS);
    assert!(!bins.is_idle_since_last_asked(CLASS));
    assert!(bins.is_idle_since_last_asked(CLASS));
}

#[test]
fn remote_frees_count_for_the_thread_and_not_for_the_bin() {
    let bins = Bins::empty();
    bins.count_remote_frees(CLASS, 3);
    assert_eq!((bins.remote_frees(CLASS), bins.frees(CLASS), bins.live(CLASS), bins.len(CLASS)), (3, 0, -3, 0));
}

#[test]
fn a_bin_that_is_reset_has_no_room_and_keeps_its_counters() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(1));
    bins.grant(CLASS, 9);
    let _ = bins.push(blocks.free_block(0));
    let _ = bins.pop(CLASS);
    bins.count_flushed(CLASS, 5);
    bins.set_capacity(CLASS, 7);
    bins.reset(CLASS);
    assert_eq!((bins.room(CLASS), bins.flushed(CLASS), bins.capacity(CLASS, || 1)), (0, 0, 1));
    assert_eq!((bins.frees(CLASS), bins.allocs(CLASS)), (1, 1));
}

/// Leaves `keep` blocks in the bin. Returns how many are in it and beside it.
fn keep_only(bins: &Bins, keep: i64) -> (i64, i64) {
    let stay = bins.set_aside_all_but(CLASS, keep, bins.len(CLASS), &View::EMPTY);
    assert_eq!(stay, bins.len(CLASS));
    (stay, bins.len_with_aside(CLASS))
}

#[test]
fn blocks_are_set_aside_from_either_end_and_all_come_back_behind_the_newer_ones() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(9));
    (0..6).for_each(|at| bins.put(blocks.free_block(at)));
    assert_eq!(keep_only(&bins, 2), (2, 6));
    (6..9).for_each(|at| bins.put(blocks.free_block(at)));
    assert_eq!(keep_only(&bins, 4), (4, 9), "one goes to those aside");
    assert_eq!(keep_only(&bins, 1), (1, 9));
    assert_eq!(pop_all(&bins), [4].map(|at| blocks.start(at)));
    bins.put(blocks.free_block(4));
    assert_eq!(bins.put_back(CLASS, || View::EMPTY), Ok(true));
    assert_eq!((bins.len(CLASS), bins.has_aside(CLASS)), (9, false));
    let mut all = pop_all(&bins);
    assert_eq!(all[0], blocks.start(4));
    all.sort();
    let mut expected: Vec<_> = (0..9).map(|at| blocks.start(at)).collect();
    expected.sort();
    assert_eq!(all, expected, "each once");
}

#[test]
fn more_blocks_than_half_of_a_bin_stay_and_none_need_stay() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(5));
    (0..5).for_each(|at| bins.put(blocks.free_block(at)));
    assert_eq!(keep_only(&bins, 4), (4, 5), "the newest goes");
    assert_eq!(keep_only(&bins, 0), (0, 5));
    assert!(bins.is_empty(CLASS) && pop_all(&bins).is_empty());
    assert_eq!(bins.put_back(CLASS, || View::EMPTY), Ok(true));
    assert_eq!(pop_all(&bins).len(), 5);
}

#[test]
fn a_chain_that_is_abandoned_has_no_block_left() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(3));
    (0..3).for_each(|at| bins.put(blocks.free_block(at)));
    let mut cut = cut(&bins, 1).unwrap();
    cut.abandon();
    assert!(cut.n_left() == 0 && cut.first().is_null() && cut.pop(&View::EMPTY, 0).is_none());
}
