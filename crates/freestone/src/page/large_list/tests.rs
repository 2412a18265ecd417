#![allow(unsafe_code)]
//! Lists over runs of a fake kernel, without a heap.
use super::*;
use crate::page::runs::{FreeState, MetadataArrays};
use crate::span::Layout;
use crate::testing::RANGE_BYTES;
use freestone_os::Os;
use freestone_os::fake::Fake;
use std::vec::Vec;

const N_PAGES: u32 = 60;

/// Runs with five large blocks of 3 pages and one of another kind.
fn runs(os: &Fake) -> (Runs, Vec<Extent>, Extent) {
    let base = os.propose_range(RANGE_BYTES, 0).unwrap();
    let mut runs = Runs::empty();
    runs.begin(MetadataArrays::begin(os, Layout::new(base, RANGE_BYTES, os.os_page_bytes(), 0).unwrap()).unwrap());
    runs.extend_metadata(os, Pages(N_PAGES)).unwrap();
    runs.add(Pages(N_PAGES), FreeState::CLEAN);
    let mut take = |kind| {
        let page = runs.find_clean(Pages(3)).unwrap();
        runs.take_aligned(page, Pages(3), Pages(1), kind).0
    };
    let blocks = (0..5).map(|_| take(Kind::Large)).collect();
    let other = take(Kind::Small);
    (runs, blocks, other)
}

/// Adds a block to a list that the test keeps as long as blocks are in it.
fn add(list: &LargeList, runs: &Runs, block: Extent) {
    // SAFETY: the tests' lists live longer than their runs are used.
    unsafe { list.pinned() }.add(runs, block);
}

#[test]
fn a_block_is_in_the_list_it_was_added_to_and_in_no_other() {
    let os = Fake::new(4096, RANGE_BYTES);
    let (runs, blocks, _) = runs(&os);
    let (first, second) = (LargeList::default(), LargeList::default());
    add(&first, &runs, blocks[0]);
    add(&second, &runs, blocks[1]);
    let lists_of = |block: Extent| {
        let record = runs.record(block.first);
        [Some(&first), Some(&second), None].map(|list| LargeList::has(list, record))
    };
    assert_eq!(lists_of(blocks[0]), [true, false, false]);
    assert_eq!(lists_of(blocks[1]), [false, true, false]);
    assert_eq!(lists_of(blocks[2]), [false, false, true]);
    let list_of = |block: Extent| LargeList::of(runs.record(block.first)).map(ptr::from_ref);
    assert_eq!([list_of(blocks[1]), list_of(blocks[2])], [Some(ptr::from_ref(&second)), None]);
}

/// The record of a span of another kind has its owner in the same field.
#[test]
fn what_is_no_large_block_is_in_no_list() {
    let os = Fake::new(4096, RANGE_BYTES);
    let (runs, _, other) = runs(&os);
    runs.record(other.first).owner.store(ptr::dangling_mut(), Ordering::Relaxed);
    assert!(LargeList::of(runs.record(other.first)).is_none());
}

#[test]
fn blocks_leave_in_any_order_and_take_their_pages_with_them() {
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let os = Fake::new(4096, RANGE_BYTES);
        let (runs, blocks, _) = runs(&os);
        let list = LargeList::default();
        assert_eq!((list.first(), list.pages()), (None, 0));
        blocks.iter().for_each(|&block| add(&list, &runs, block));
        for (n_gone, at) in (1..).zip(order) {
            list.remove(&runs, blocks[at]);
            assert_eq!(list.pages(), 3 * (5 - n_gone));
            let left = order.iter().skip(n_gone as usize).map(|&at| blocks[at].first);
            assert_eq!(list.first().is_some(), n_gone < 5);
            assert!(list.first().is_none_or(|first| left.clone().any(|page| page == first)));
        }
    }
}

#[test]
fn pages_grow_and_shrink_with_a_block() {
    let os = Fake::new(4096, RANGE_BYTES);
    let (runs, blocks, _) = runs(&os);
    let list = LargeList::default();
    add(&list, &runs, blocks[0]);
    add(&list, &runs, blocks[1]);
    list.grow(Pages(10));
    assert_eq!(list.pages(), 16);
    list.shrink(Pages(7));
    assert_eq!(list.pages(), 9);
}
