#![allow(unsafe_code)]
use super::*;
use crate::size_class::{N_CLASSES, class_of, span_pages};
use crate::span::Kind;
use crate::testing::{World, span_at};
use freestone_base::units::Pages;
use proptest::prelude::*;
use std::vec::Vec;

const OS_PAGE_BYTES: usize = 4096;

/// A new span of `class`.
fn span(world: &World, class: usize) -> OwnedSpan<'_> {
    let run = world.shared.pages.allocate(span_pages(class), Pages(1), Kind::Small).expect("memory");
    let span = span_at(world, run.page);
    format(&span, class, OS_PAGE_BYTES, false);
    span
}

/// The numbers of the blocks of a chain, as they are linked.
fn numbers(span: &OwnedSpan<'_>, chain: Chain) -> Vec<usize> {
    let (mut all, mut block) = (Vec::new(), chain.first);
    while all.len() < chain.len as usize {
        let (number, is_start) = block_at(span.class.get() as usize, block.addr() - span.start().addr());
        assert!(is_start);
        all.push(number);
        assert_eq!(block == chain.last, all.len() == chain.len as usize, "the last block is the last linked");
        // SAFETY: the block is in the chain, which is the test's: its first word links to the next.
        block = unsafe { (*block).next };
    }
    assert!(chain.len == 0 || block == END_OF_BIN, "the links end with the chain");
    all
}

/// Gives blocks back by their numbers, one by one.
fn give_back(span: OwnedSpan<'_>, numbers: &[usize]) -> Vec<Option<Refused>> {
    let home = Home::of(span);
    let bytes = block_bytes(home.class);
    let block = |number: usize| home.span.start().wrapping_add(number * bytes).cast();
    // SAFETY: the blocks lie in the span and are the test's.
    numbers.iter().map(|&number| unsafe { home.give_back(block(number), LinkKey::PLAIN) }.err()).collect()
}

/// The counters, after checking that they add up.
fn counts(span: &OwnedSpan<'_>) -> (u32, u32) {
    assert_eq!(count_free(span), span.n_free.get());
    let all = span.n_free.get() + span.n_out.get() + count_fresh(span, OS_PAGE_BYTES);
    assert_eq!(all as usize, n_blocks(span));
    (span.n_free.get(), span.n_out.get())
}

/// The blocks that are to be carved: those that start in the lowest unit of `fresh` that has any, and in the units that follow it until the wanted ones are together.
fn expected_batch(span: &OwnedSpan<'_>, n_wanted: usize) -> Vec<usize> {
    let (bytes, unit, fresh) =
        (block_bytes(span.class.get() as usize), carve_bytes(span, OS_PAGE_BYTES), span.fresh.get());
    let first = |at: usize| (at * unit).div_ceil(bytes).min(n_blocks(span));
    let is_fresh = |at: &usize| fresh >> at & 1 == 1;
    let mut batch = Vec::new();
    for at in (0..64).skip_while(|at| !is_fresh(at) || first(*at) == first(at + 1)).take_while(is_fresh) {
        if batch.len() < n_wanted {
            batch.extend(first(at)..first(at + 1));
        }
    }
    batch
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 2000 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// In every class, and in spans of every length that the option `span_size` allows: each block is carved once, in address order, whatever OS pages went back meanwhile.
    #[test]
    fn carving_hands_out_every_block_once_in_address_order(
        class in 0..N_CLASSES,
        pages in 1u32..=4,
        holes in prop_oneof![Just(0u64), any::<u64>(), (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a & b)],
        n in prop_oneof![Just(1u32), Just(7), Just(10_000), 1u32..200],
        has_memory: bool,
    ) {
        let world = World::new(OS_PAGE_BYTES);
        let pages = span_pages(class).max(Pages(pages));
        let run = world.shared.pages.allocate(pages, Pages(1), Kind::Small).expect("memory");
        let span = span_at(&world, run.page);
        format(&span, class, OS_PAGE_BYTES, has_memory);
        span.fresh.set(span.fresh.get() & !holes);
        let n_wanted = if has_memory { n.min(SMALLEST_BATCH) as usize } else { 1 };
        loop {
            let expected = expected_batch(&span, n_wanted);
            let carved = numbers(&span, carve(&span, n, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new()));
            prop_assert_eq!(&carved, &expected);
            if carved.is_empty() {
                break;
            }
        }
        prop_assert_eq!(span.fresh.get(), 0);
    }
}

#[test]
fn a_batch_is_carved_where_there_is_memory_already_and_an_os_page_where_there_is_none() {
    for (has_memory, first, second) in [(false, 1, 1), (true, 6, 4)] {
        let world = World::new(OS_PAGE_BYTES);
        let span = span(&world, class_of(4096));
        span.fresh_has_memory.set(has_memory);
        assert_eq!(
            carve(&span, 6, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new()).len,
            first,
            "memory: {has_memory}"
        );
        // A page further on has been carved and lies between.
        span.fresh.set(span.fresh.get() & !(1 << 10));
        assert_eq!(
            carve(&span, 6, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new()).len,
            second,
            "memory: {has_memory}"
        );
    }
}

#[test]
fn os_pages_are_carved_beside_the_next_one_until_the_batch_is_full() {
    let world = World::new(OS_PAGE_BYTES);
    for (n, more, blocks) in [(1000, 0, 64), (1000, 1, 128), (1000, 3, 256), (100, 3, 128), (1, 3, 64)] {
        let span = span(&world, class_of(64));
        assert_eq!(carve(&span, n, more, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new()).len, blocks, "{n} {more}");
    }
}

#[test]
fn a_block_belongs_to_the_os_page_that_it_starts_in() {
    let world = World::new(OS_PAGE_BYTES);
    let span = span(&world, class_of(1536));
    let bytes = block_bytes(class_of(1536));
    for os_page in 0..3 {
        let starts = numbers(&span, carve(&span, 1, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new()))
            .into_iter()
            .map(|number| number * bytes / OS_PAGE_BYTES);
        assert!(starts.into_iter().all(|page| page == os_page));
    }
}

#[test]
fn the_lowest_free_blocks_are_taken_first_and_no_more_than_there_are() {
    let world = World::new(OS_PAGE_BYTES);
    let page = span(&world, class_of(16)).page();
    let at = || span_at(&world, page);
    assert_eq!(take(&at(), 5, LinkKey::PLAIN).len, 0, "nothing is free in a new span");
    carve(&at(), 1, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new());
    assert_eq!(give_back(at(), &[200, 3, 64, 130]), [None; 4]);
    assert_eq!(counts(&at()), (4, 252));
    let lowest = take(&at(), 2, LinkKey::PLAIN);
    assert_eq!(numbers(&at(), lowest), [3, 64]);
    assert_eq!(give_back(at(), &[1]), [None]);
    let rest = take(&at(), 100, LinkKey::PLAIN);
    assert_eq!(numbers(&at(), rest), [1, 130, 200]);
    assert_eq!(counts(&at()), (0, 256));
}

#[test]
fn an_address_that_is_no_allocated_block_is_refused() {
    let world = World::new(OS_PAGE_BYTES);
    let page = span(&world, class_of(1024)).page();
    let at = || span_at(&world, page);
    carve(&at(), 1, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new());
    let beyond = n_blocks(&at());
    let (again, past) = (Some(Refused::FreeAlready), Some(Refused::NotABlock));
    assert_eq!(give_back(at(), &[0, 0, beyond]), [None, again, past]);
    let home = Home::of(at());
    let inside = home.span.start().wrapping_add(1024 + 16).cast();
    // SAFETY: the address lies in the span, and is no block's.
    assert_eq!(unsafe { home.give_back(inside, LinkKey::PLAIN) }.err(), past);
    assert_eq!(give_back(at(), &[1, 2, 3]), [None; 3]);
    assert_eq!(give_back(at(), &[9]), [again], "no block is out any more");
    assert_eq!(counts(&at()), (4, 0));
}

#[test]
fn a_stretch_goes_back_as_its_blocks_would_or_is_refused_as_a_whole() {
    let world = World::new(OS_PAGE_BYTES);
    for class in [0, 2, class_of(512), class_of(5000)] {
        // All out but the third block from the end.
        let whole = || {
            let span = span(&world, class);
            while carve(&span, u32::MAX, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &world.shared.pages.uncarved).len > 0 {}
            let n = n_blocks(&span);
            let home = Home::of(span);
            // SAFETY: the block lies in the span and is the test's.
            let given = unsafe { home.give_back(at(&home, n - 3).cast(), LinkKey::PLAIN) };
            assert_eq!(given, Ok(()));
            (home, n)
        };
        let n = whole().1;
        for (from, to) in [(0, 1), (0, n - 3), (1, n.min(66)), (n / 3, n / 2), (n - 2, n), (n - 1, n)] {
            let (to, together, apart) = (to.min(n - 3).max(if from > n - 3 { to } else { 0 }), whole().0, whole().0);
            let len = (to - from) as u32;
            assert_eq!(together.give_back_stretch(at(&together, from).addr(), len), Ok(()), "{from} to {to} of {n}");
            for index in from..to {
                // SAFETY: as above.
                assert_eq!(unsafe { apart.give_back(at(&apart, index).cast(), LinkKey::PLAIN) }, Ok(()));
            }
            assert_eq!(counts(&together.span), counts(&apart.span));
            let bits = |home: &Home<'_>| home.span.bitmap().iter().map(Cell::get).collect::<Vec<_>>();
            assert_eq!(bits(&together), bits(&apart));
            assert_eq!(together.span.first_word.get(), apart.span.first_word.get());
        }
        let (home, n) = whole();
        let before = counts(&home.span);
        let give = |address: usize, len: usize| home.give_back_stretch(address, len as u32);
        for (from, len) in [(n - 3, 1), (0, n - 2), (n - 4, 4), (n - 3, 3)] {
            assert_eq!(give(at(&home, from).addr(), len), Err(Refused::FreeAlready), "{from} and {len} of {n}");
        }
        assert_eq!(give(at(&home, n - 2).addr(), 3), Err(Refused::NotABlock), "beyond the last block");
        if block_bytes(class) > 16 {
            assert_eq!(give(at(&home, 1).addr() + 16, 1), Err(Refused::NotABlock));
        }
        assert_eq!(counts(&home.span), before);
    }
}

/// Where a block of a span starts, by its number.
fn at(home: &Home<'_>, number: usize) -> *mut u8 {
    home.span.start().wrapping_add(number * block_bytes(home.class))
}

#[test]
fn a_cleared_span_leaves_no_bit_behind() {
    let world = World::new(OS_PAGE_BYTES);
    let page = span(&world, class_of(16)).page();
    let at = || span_at(&world, page);
    carve(&at(), 1, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &Uncarved::new());
    assert_eq!(give_back(at(), &[0, 100, 255]), [None; 3]);
    assert!(is_free(&at(), 100) && !is_free(&at(), 101) && !is_free(&at(), usize::MAX));
    clear(&at());
    assert!(at().bitmap().iter().all(|word| word.get() == 0) && at().n_free.get() == 0);
}

/// What is behind the last block of a span is none, and neither is what lies inside one.
#[test]
fn a_home_has_its_free_blocks_and_those_that_were_never_carved_and_nothing_else() {
    for class in 0..N_CLASSES {
        let world = World::new(4096);
        let span = span(&world, class);
        let (block, n, bytes) = (block_bytes(class), n_blocks(&span), span_bytes(&span));
        let start = span.start().addr();
        let out = carve(&span, 1, 0, 4096, LinkKey::PLAIN, &Uncarved::new()).len as usize;
        let home = Home::of(span);
        for index in (0..bytes / block + 1).filter(|index| index * block < bytes) {
            // The blocks of the first OS page are out.
            assert_eq!(home.has(start + index * block, 4096), (out..n).contains(&index), "block {index} of {n}");
            assert!(!home.has(start + index * block + 8, 4096));
        }
    }
}
