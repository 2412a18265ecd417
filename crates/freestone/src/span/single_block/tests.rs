extern crate std;
use super::*;
use crate::span::Uncarved;
use crate::span::blocks::carve_free;
use crate::testing::{World, span_of};
use std::collections::BTreeSet;

/// So many blocks at random, from a word that blocks came from last.
fn choice(n: u32, random: u64, word: &Cell<u32>) -> Choice<'_> {
    Choice { n, random, word, in_order: false }
}

/// Takes one block.
fn take_one(span: &OwnedSpan<'_>, random: u64) -> Option<*mut u8> {
    let mut taken = None;
    let n = take(span, 4096, choice(1, random, &Cell::new(NO_WORD)), |start| taken = Some(start));
    assert_eq!(n == 1, taken.is_some());
    taken
}

/// Numbers that look random.
fn numbers() -> impl Iterator<Item = u64> {
    (1_u64..).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).map(|n| n ^ n >> 29)
}

#[test]
fn every_block_of_a_span_is_taken_once_whatever_the_random_numbers() {
    for size in [28, 100, 3000, 20_000] {
        let world = World::hardened(4096, "checks");
        let heap = world.heap();
        let span = span_of(&world, heap.allocate(size, 1).start);
        let (mut taken, out_before) = (BTreeSet::new(), span.n_out.get() as usize);
        let word = Cell::new(NO_WORD);
        for (n, random) in (1..).zip(numbers()) {
            let others = span.n_free.get() - u32::from(is_free(&span, 0));
            let free = others.max(span.n_free.get().min(1));
            let put = |block: *mut u8| assert!(taken.insert(block.addr()), "a block is taken twice");
            let choice = Choice { in_order: size < 1000, ..choice(n % 12, random, &word) };
            assert_eq!(take(&span, 4096, choice, put), free.min(n % 12));
            if span.n_free.get() == 0 && carve_free(&span, 4096, &Uncarved::new()).is_empty() {
                break;
            }
        }
        assert_eq!(taken.len() + out_before, n_blocks(&span));
        assert!((0..n_blocks(&span)).all(|index| whereabouts(&span, index, 4096) == Whereabouts::Out));
    }
}

#[test]
fn blocks_in_order_come_from_one_word_after_the_other_and_ascend_in_each() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let span = span_of(&world, heap.allocate(28, 1).start);
    while !carve_free(&span, 4096, &Uncarved::new()).is_empty() {}
    let (word, mut taken) = (Cell::new(NO_WORD), std::vec::Vec::new());
    let index = |block: *mut u8| (block.addr() - span.start().addr()) / block_bytes(span.class.get() as usize);
    for (n, random) in (1..).zip(numbers()) {
        let n = n % 12;
        if take(&span, 4096, Choice { in_order: true, ..choice(n, random, &word) }, |block| taken.push(index(block)))
            < n
        {
            break;
        }
    }
    // The span's first block is handed out last, apart from the others of its word.
    let taken: std::vec::Vec<usize> = taken.into_iter().filter(|&index| index > 0).collect();
    let descents = taken.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let changes = taken.windows(2).filter(|pair| pair[1] / 64 != pair[0] / 64).count();
    assert_eq!(changes, n_blocks(&span).div_ceil(64) - 1, "each word is used up before the next");
    assert!((1..=changes).contains(&descents), "blocks ascend in a word, and words come at random: {descents}");
}

#[test]
fn blocks_of_os_pages_that_were_not_carved_are_neither_free_nor_out() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let span = span_of(&world, heap.allocate(60, 1).start);
    assert_ne!(whereabouts(&span, 0, 4096), Whereabouts::Uncarved);
    assert_eq!(whereabouts(&span, n_blocks(&span) - 1, 4096), Whereabouts::Uncarved);
}

#[test]
fn the_first_block_of_a_span_is_handed_out_last() {
    for size in [28, 3000, 20_000] {
        let world = World::hardened(4096, "checks");
        let heap = world.heap();
        let span = span_of(&world, heap.allocate(size, 1).start);
        let mut taken = span.n_out.get();
        for random in numbers() {
            while !has_free(&span) && !carve_free(&span, 4096, &Uncarved::new()).is_empty() {}
            if !has_free(&span) {
                break;
            }
            let block = take_one(&span, random).unwrap();
            assert!(block != span.start(), "{size}: after {taken} blocks");
            taken += 1;
        }
        assert_eq!(taken as usize + 1, n_blocks(&span));
        assert_eq!(take_one(&span, 7), Some(span.start()));
    }
}

#[test]
fn any_free_block_but_the_first_may_be_the_next() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let span = span_of(&world, heap.allocate(28, 1).start);
    let (mut firsts, n_free) = (BTreeSet::new(), span.n_free.get() as usize);
    for random in numbers().take(if cfg!(miri) { 300 } else { 4096 }) {
        let block = take_one(&span, random).unwrap();
        firsts.insert(block.addr());
        give_back(&span, block);
    }
    assert!(cfg!(miri) || firsts.len() + 1 >= n_free, "{} of {n_free}", firsts.len());
}

/// Makes a block free that was taken.
fn give_back(span: &OwnedSpan<'_>, block: *mut u8) {
    let index = (block.addr() - span.start().addr()) / block_bytes(span.class.get() as usize);
    let word = &span.bitmap()[index / 64];
    word.set(word.get() | 1 << (index % 64));
    span.n_free.set(span.n_free.get() + 1);
    span.n_out.set(span.n_out.get() - 1);
}

#[test]
fn a_block_is_put_back_if_others_are_out_and_others_free() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let span = span_of(&world, heap.allocate(3000, 1).start);
    while !carve_free(&span, 4096, &Uncarved::new()).is_empty() {}
    let (block, class) = (take_one(&span, 7).unwrap(), usize::from(span.class.get()));
    let (n_free, n_out) = (span.n_free.get(), span.n_out.get());
    assert!(!put_back(&span, class, block.wrapping_add(16)), "no block starts there");
    assert!(put_back(&span, class, block) && !put_back(&span, class, block), "once");
    assert_eq!((span.n_free.get(), span.n_out.get()), (n_free + 1, n_out - 1));
    assert!(take_one(&span, 7).is_some());
    span.listed.set(Listed::Full);
    assert!(!put_back(&span, class, block), "a full span has to be listed elsewhere");
    span.listed.set(Listed::No);
    span.n_out.set(1);
    assert!(!put_back(&span, class, block), "the last block goes with its span");
    span.n_out.set(n_out);
}

/// Of a span that is all free, each random number names a block, and all blocks are named about equally often.
#[test]
fn every_block_is_as_likely_as_every_other() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let first = heap.allocate(100, 1).start;
    let span = span_of(&world, first);
    while !carve_free(&span, 4096, &Uncarved::new()).is_empty() {}
    let block_bytes = block_bytes(span.class.get() as usize);
    let n = n_blocks(&span);
    let mut times = std::vec![0; n];
    for random in numbers().take(if cfg!(miri) { 300 } else { 100 * n }) {
        let block = take_one(&span, random).expect("all blocks but one are free");
        times[(block.addr() - span.start().addr()) / block_bytes] += 1;
        give_back(&span, block);
    }
    // The last word has fewer blocks, each as likely as those of its word together with the place behind the last.
    let often = times.iter().filter(|&&n| (30..500).contains(&n)).count();
    assert!(cfg!(miri) || often * 10 >= 9 * n, "{times:?}");
}
