extern crate std;
use super::*;
use crate::testing::{World, span_of};
use std::collections::BTreeSet;

#[test]
fn every_block_of_a_span_is_taken_once_whatever_the_random_numbers() {
    for size in [28, 100, 3000, 20_000] {
        let world = World::hardened(4096, "checks");
        let heap = world.heap();
        let span = span_of(&world, heap.allocate(size, 1).start);
        let mut taken = BTreeSet::new();
        let mut random = 1u32;
        loop {
            random = random.wrapping_mul(0x9E37_79B1).wrapping_add(7);
            match take(&span, random) {
                Some(block) => assert!(taken.insert(block.addr()), "a block is taken twice"),
                None if carve(&span, 4096, |_| {}) > 0 => {}
                None => break,
            }
        }
        assert_eq!(taken.len() + 1, n_blocks(&span), "one was allocated before");
        assert!((0..n_blocks(&span)).all(|index| whereabouts(&span, index, 4096) == Whereabouts::Out));
    }
}

#[test]
fn blocks_of_os_pages_that_were_not_carved_are_neither_free_nor_out() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let span = span_of(&world, heap.allocate(60, 1).start);
    assert_ne!(whereabouts(&span, 0, 4096), Whereabouts::Uncarved);
    assert_eq!(whereabouts(&span, n_blocks(&span) - 1, 4096), Whereabouts::Uncarved);
}
