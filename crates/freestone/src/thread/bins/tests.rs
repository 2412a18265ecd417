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
fn the_frees_within_reach_are_those_that_there_is_room_for() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(4));
    bins.grant(CLASS, 3);
    assert!(!bins.push(blocks.free_block(0)));
    bins.put(blocks.free_block(1));
    let reach = bins.frees_within_reach(CLASS);
    assert_eq!(pop_all(&bins).len(), 2);
    (2..4).for_each(|at| assert!(!bins.push(blocks.free_block(at))));
    assert_eq!((bins.room(CLASS), bins.frees(CLASS), bins.frees_within_reach(CLASS)), (0, reach, reach));
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
fn who_reads_the_frees_while_room_is_granted_reads_what_they_are() {
    assert_eq!((room::frees_in_change(-1), room::frees_in_change(3)), (None, None));
    let (bins, blocks) = (Bins::empty(), Blocks::new(2));
    bins.grant(CLASS, 2);
    let _ = bins.push(blocks.free_block(0));
    let (granted, room) = (&bins.granted[CLASS], &bins.room[CLASS]);
    // The steps of a grant, one by one.
    room.store(i64::MIN + 1, Ordering::Relaxed);
    assert_eq!(bins.frees(CLASS), 1);
    granted.store(1 + 100, Ordering::Relaxed);
    assert_eq!((bins.frees(CLASS), bins.len_elsewhere(CLASS)), (1, 1));
    room.store(100, Ordering::Relaxed);
    assert_eq!((bins.frees(CLASS), bins.len_elsewhere(CLASS), bins.len(CLASS)), (1, 1, 1));
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
    let taken = crate::span::blocks::Taken { chain, less_free: 2, is_zero: false };
    // SAFETY: the blocks are the test's.
    bins.put_batch(unsafe { FreeBatch::new(taken, CLASS) }.unwrap());
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
fn a_bin_is_idle_when_no_block_was_taken_since_the_last_tick() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(2));
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

#[test]
fn blocks_that_are_set_aside_come_back_behind_the_newer_ones() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(6));
    (0..4).for_each(|at| bins.put(blocks.free_block(at)));
    bins.set_aside(CLASS);
    (4..6).for_each(|at| bins.put(blocks.free_block(at)));
    assert_eq!((bins.len(CLASS), bins.len_with_aside(CLASS)), (2, 6));
    assert_eq!(bins.put_back(CLASS, || View::EMPTY), Ok(true));
    assert_eq!((bins.len(CLASS), bins.has_aside(CLASS)), (6, false));
    assert_eq!(pop_all(&bins), [5, 4, 3, 2, 1, 0].map(|at| blocks.start(at)));
}

/// A bin of `n` blocks with these numbers from the front chosen, from 1 on.
fn bin_with_chosen(n: usize, chosen: &[u64], key: LinkKey) -> (Bins, Blocks) {
    let (bins, blocks) = (Bins::empty(), Blocks::new(n));
    bins.key.set(key);
    (0..n).rev().for_each(|at| bins.put(blocks.free_block(at)));
    let mut steps = chosen.iter().scan(0, |before, &at| Some(at - core::mem::replace(before, at)));
    let first = steps.next().unwrap_or(n as u64 + 1);
    bins.choose_among(CLASS, n as u64, first, || steps.next().unwrap_or(n as u64 + 1));
    (bins, blocks)
}

/// Pops blocks up to the first that is chosen or the end.
fn n_popped(bins: &Bins) -> usize {
    pop_all(bins).len()
}

proptest::proptest! {
    #[test]
    fn the_hot_path_stops_before_each_chosen_block_and_the_slow_one_finds_all(
        n in 1usize..40,
        chosen in proptest::collection::btree_set(1u64..40, 0..40),
        key in proptest::sample::select(std::vec![0usize, 0x5A5A_5A5A_5A5A_5A50]),
    ) {
        let chosen: Vec<u64> = chosen.into_iter().filter(|&at| at <= n as u64).collect();
        let (bins, blocks) = bin_with_chosen(n, &chosen, LinkKey::new(key));
        let (mut at, plain) = (0, || View::EMPTY);
        for &next in &chosen {
            let expected: Vec<_> = (at..next as usize - 1).map(|at| blocks.start(at)).collect();
            proptest::prop_assert_eq!(pop_all(&bins), expected);
            proptest::prop_assert!(!bins.is_empty(CLASS));
            if key == 0 {
                proptest::prop_assert!(bins.is_first_chosen(CLASS, plain));
            }
            bins.unchoose_first(CLASS);
            proptest::prop_assert!(!bins.is_first_chosen(CLASS, plain));
            proptest::prop_assert_eq!(bins.pop(CLASS), blocks.start(next as usize - 1));
            at = next as usize;
        }
        proptest::prop_assert_eq!(n_popped(&bins), n - at);
        proptest::prop_assert!(bins.is_empty(CLASS));
    }
}

#[test]
fn what_the_batch_leaves_of_a_countdown_is_for_the_next_block() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(5));
    (0..5).for_each(|at| bins.put(blocks.free_block(at)));
    assert_eq!(bins.choose_among(CLASS, 5, 6, || panic!("none was chosen")), 1);
    assert_eq!(bins.choose_among(CLASS, 5, 5, || 3), 3);
    assert_eq!(bins.choose_among(CLASS, 5, 2, || 10), 7);
    assert_eq!(n_popped(&bins), 1);
}

#[test]
fn chosen_blocks_are_found_and_flushed_like_others() {
    let (bins, blocks) = bin_with_chosen(6, &[1, 3, 4, 6], LinkKey::PLAIN);
    assert!((0..6).all(|at| bins.contains(CLASS, blocks.start(at).cast(), &View::EMPTY)));
    assert_eq!(bins.first(CLASS), blocks.start(0).cast());
    bins.set_aside(CLASS);
    assert_eq!(bins.put_back(CLASS, || View::EMPTY), Ok(true));
    assert!(bins.is_first_chosen(CLASS, || View::EMPTY));
    let mut chain = cut(&bins, 2).expect("there are more");
    assert_eq!(chain.first(), blocks.start(2).cast());
    let next: Vec<_> = core::iter::from_fn(|| {
        let first = chain.first();
        (!first.is_null()).then(|| {
            let second = chain.second();
            chain.advance(1, second, first);
            first.cast()
        })
    })
    .collect();
    assert_eq!(next, [2, 3, 4, 5].map(|at| blocks.start(at)));
    bins.unchoose_first(CLASS);
    assert_eq!(pop_all(&bins), [0, 1].map(|at| blocks.start(at)));
}

#[test]
fn an_empty_bin_and_a_damaged_one_have_no_chosen_block() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(1));
    assert!(!bins.is_first_chosen(CLASS, || View::EMPTY));
    bins.put(blocks.free_block(0));
    assert!(!bins.is_first_chosen(CLASS, || View::EMPTY));
    bins.choose_first(CLASS);
    assert!(bins.is_first_chosen(CLASS, || View::EMPTY));
    // With a key, what a link leads to is looked up: a view that covers nothing has no block.
    bins.key.set(LinkKey::new(0x70));
    assert!(!bins.is_first_chosen(CLASS, || View::EMPTY));
}

#[test]
fn a_chain_that_is_abandoned_has_no_block_left() {
    let (bins, blocks) = (Bins::empty(), Blocks::new(3));
    (0..3).for_each(|at| bins.put(blocks.free_block(at)));
    let mut cut = cut(&bins, 1).unwrap();
    cut.abandon();
    assert!(cut.n_left() == 0 && cut.first().is_null() && cut.pop(&View::EMPTY, 0).is_none());
}
