use super::*;
use crate::size_class::{block_bytes, class_of, span_pages};
use crate::span::Kind;
use crate::span::Uncarved;
use crate::span::blocks::{carve, count_free, format, is_free, n_blocks};
use crate::span::free_node::{END_OF_BIN, clear_mark, write_in_bin};
use crate::testing::{World, span_at};
use freestone_base::units::Pages;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

const OS_PAGE_BYTES: usize = 4096;

/// A span of `class` of which all blocks are out.
fn full_span(world: &World, class: usize) -> OwnedSpan<'_> {
    let run = world.shared.pages.allocate(span_pages(class), Pages(1), Kind::Small).expect("memory");
    let span = span_at(world, run.page);
    format(&span, class, OS_PAGE_BYTES, false);
    while carve(&span, u32::MAX, 63, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new()).len > 0 {}
    assert_eq!(span.n_out.get() as usize, n_blocks(&span));
    span
}

/// A part of a chain: blocks from one number on, in steps.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: usize,
    step: isize,
    len: usize,
}

fn piece() -> impl Strategy<Value = Piece> {
    let step = prop_oneof![4 => Just(1isize), 4 => Just(-1), 1 => Just(2), 1 => Just(-3)];
    (0usize..5000, step, 1usize..90).prop_map(|(from, step, len)| Piece { from, step, len })
}

/// The numbers of blocks of all pieces, each once, of a span of `n` blocks.
fn numbers(pieces: &[Piece], n: usize) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let of = |piece: &Piece| {
        let Piece { from, step, len } = *piece;
        (0..len as isize)
            .map(move |at| (from % n) as isize + at * step)
            .take_while(move |at| (0..n as isize).contains(at))
    };
    pieces.iter().flat_map(of).map(|at| at as usize).filter(|&at| seen.insert(at)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 400 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever runs a chain has: its blocks go back up to the first that is wrong, or as many as may be, and no other bit is set.
    #[test]
    fn a_chain_goes_back_up_to_the_first_block_that_is_wrong(
        bytes in prop::sample::select(vec![16usize, 48, 112, 1000, 5000, 20_000]),
        pieces in prop::collection::vec(piece(), 1..8),
        wrong in prop::option::of((any::<prop::sample::Index>(), 0..3)),
        most in prop_oneof![3 => Just(u32::MAX), 1 => 1u32..200],
        key in prop::sample::select(vec![0usize, 0x5a5a_0000_1230]),
    ) {
        let world = World::new(OS_PAGE_BYTES);
        let (class, key) = (class_of(bytes), LinkKey::new(key));
        let (span, other) = (full_span(&world, class), full_span(&world, class));
        let numbers = numbers(&pieces, n_blocks(&span));
        let block = |number: usize| span.start().wrapping_add(number * block_bytes(class)).cast::<Node>();
        let mut chain: Vec<_> = numbers.iter().map(|&number| block(number)).collect();
        let wrong = wrong.map(|(at, what)| (at.index(chain.len()), what)).filter(|(_, what)| *what != 2 || bytes > 16);
        if let Some((at, 2)) = wrong {
            chain[at] = chain[at].wrapping_byte_add(16);
        }
        // The chain goes on in another span, as if it were there that the first span's neighbours are.
        chain.push(if pieces[0].len % 2 == 0 { other.start().cast() } else { END_OF_BIN });
        for pair in chain.windows(2).rev() {
            // SAFETY: the blocks are the test's, and have room for two words where the chain names them.
            unsafe { write_in_bin(pair[0], pair[1], key) };
        }
        let expected_why = wrong.map(|(at, what)| match what {
            0 => {
                let word = &span.bitmap()[numbers[at] / 64];
                word.set(word.get() | 1 << (numbers[at] % 64));
                Refused::FreeAlready
            }
            1 => {
                // SAFETY: the block is the test's.
                unsafe { clear_mark(chain[at]) };
                Refused::Written
            }
            _ => Refused::NotABlock,
        });
        let n_expected = wrong.map_or(numbers.len(), |(at, _)| at).min(most as usize);
        let is_refused = wrong.is_some_and(|(at, _)| at < most as usize);
        let (n_out, before) = (span.n_out.get(), count_free(&span));

        // SAFETY: the blocks are the test's, and linked.
        let intake = unsafe { take_in(&span, BlockDivision::of(class), chain[0], most, key) };

        prop_assert_eq!(intake.n as usize, n_expected);
        prop_assert_eq!(intake.next, chain[n_expected]);
        let end = match expected_why {
            Some(why) if is_refused => End::Refused(why),
            _ => End::Behind(chain[n_expected - 1]),
        };
        prop_assert_eq!(intake.end, end);
        prop_assert_eq!((span.n_out.get(), span.n_free.get()), (n_out - intake.n, intake.n));
        prop_assert_eq!(count_free(&span) - before, intake.n);
        prop_assert!(numbers[..n_expected].iter().all(|&number| is_free(&span, number)));
        prop_assert_eq!((count_free(&other), other.n_free.get()), (0, 0));
    }
}

/// Links a span's blocks with these numbers to a chain, the first of which was taken in last, and takes in the run that follows. Returns the number of its last
/// block, and how many were taken in.
fn take_run(span: &OwnedSpan<'_>, numbers: &[usize], left: usize) -> (Option<usize>, usize) {
    let class = class_of(16);
    let block = |number: usize| span.start().wrapping_add(number * 16).cast::<Node>();
    for pair in numbers.windows(2) {
        // SAFETY: the blocks are the test's.
        unsafe { write_in_bin(block(pair[0]), block(pair[1]), LinkKey::PLAIN) };
    }
    let mut walk = Walk {
        words: span.bitmap().as_ptr(),
        start: span.start().addr(),
        division: BlockDivision::of(class),
        n_blocks: n_blocks(span),
        key: LinkKey::PLAIN,
        left,
        index: numbers[1],
        next: block(numbers[1]),
    };
    let (before, last) = (count_free(span), walk.take_run(block(numbers[0])));
    let n = left - walk.left;
    assert_eq!(walk.next, block(numbers[1 + n]), "the chain goes on behind the run");
    assert_eq!((count_free(span) - before) as usize, n);
    (last.map(|last| (last.addr() - span.start().addr()) / 16), n)
}

#[test]
fn a_run_goes_back_at_once_by_fours_as_far_as_it_and_the_span_reach() {
    let world = World::new(OS_PAGE_BYTES);
    let span = || full_span(&world, class_of(16));
    let n = n_blocks(&span());
    let (rising, falling) = ((n - 14..n).chain([5]), (0..13).rev().chain([500]));
    assert_eq!(take_run(&span(), &rising.collect::<Vec<_>>(), 12), (Some(n - 2), 12), "as many as may be");
    assert_eq!(take_run(&span(), &falling.collect::<Vec<_>>(), 12), (Some(0), 12), "to the first block of the span");
    let broken: Vec<_> = (60..72).chain([500, 501]).collect();
    assert_eq!(take_run(&span(), &broken, 4000), (Some(71), 11), "to where the chain leaves it");
    assert_eq!(take_run(&span(), &broken, 3), (None, 0), "no four of them may be taken in");
}

/// The free blocks are just those of one word: none of it is to be taken for a run.
#[test]
fn a_run_whose_blocks_are_all_free_already_is_not_taken_in() {
    let world = World::new(OS_PAGE_BYTES);
    let span = full_span(&world, class_of(16));
    span.bitmap()[1].set(0b1111);
    assert_eq!(take_run(&span, &[63, 64, 65, 66, 67, 500, 501], 100), (None, 0));
}

/// Blocks of 16 bytes fill a span, so those of the next one lie beside them.
#[test]
fn a_run_ends_with_its_span_where_the_next_one_goes_on() {
    let world = World::new(OS_PAGE_BYTES);
    let class = class_of(16);
    let (low, high) = (full_span(&world, class), full_span(&world, class));
    let n = n_blocks(&low);
    assert_eq!(low.start().addr() + n * 16, high.start().addr(), "the test needs them side by side");
    let rising: Vec<_> = (n - 6..n + 6).map(|at| low.start().wrapping_add(at * 16).cast::<Node>()).collect();
    let falling: Vec<_> = rising.iter().rev().copied().collect();
    for (chain, first, second) in [(rising, &low, &high), (falling, &high, &low)] {
        for (at, &node) in chain.iter().enumerate() {
            // SAFETY: the blocks are the test's.
            unsafe { write_in_bin(node, chain.get(at + 1).copied().unwrap_or(END_OF_BIN), LinkKey::PLAIN) };
        }
        let before = (count_free(first), count_free(second));
        // SAFETY: the blocks are the test's, and linked.
        let intake = unsafe { take_in(first, BlockDivision::of(class), chain[0], u32::MAX, LinkKey::PLAIN) };
        assert_eq!((intake.n, intake.next, intake.end), (6, chain[6], End::Behind(chain[5])));
        assert_eq!((count_free(first), count_free(second)), (before.0 + 6, before.1));
    }
}
