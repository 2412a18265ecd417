#![allow(unsafe_code)]
use super::*;
use crate::misuse::seen;
use crate::size_class::N_CLASSES;
use crate::testing::{World, fill, free, span_of};
use crate::thread::watched::tests::watched;
use freestone_os::fake::Fake;
use std::vec::Vec;

#[test]
fn an_offset_starts_a_block_if_it_is_a_multiple_and_all_of_the_block_is_in_the_span() {
    for class in 0..N_CLASSES {
        let block_bytes = block_bytes(class);
        for span_bytes in [1 << 16, 3 << 16] {
            let n = span_bytes / block_bytes;
            for offset in (0..span_bytes).step_by(GRANULE_BYTES * (1 + span_bytes / 20_000)).chain([n * block_bytes]) {
                let (index, inside) = (offset / block_bytes, offset % block_bytes);
                let expected = match inside {
                    _ if index >= n => Err(Misuse::Foreign),
                    0 => Ok(index),
                    offset => Err(Misuse::Interior { block_bytes, offset }),
                };
                assert_eq!(check_start(class, offset, span_bytes), expected, "{class}: {offset} of {span_bytes}");
            }
            let last = (n - 1) * block_bytes;
            assert_eq!(check_start(class, last, span_bytes), Ok(n - 1));
        }
    }
}

/// The page of a block of this heap, and its class.
fn at(heap: Own<'_, Fake>, block: *mut u8) -> (PageIndex, (*mut u8, usize)) {
    let (page, class) = heap.lookup().own_page_and_class(block.addr()).expect("the block is this heap's");
    (page, (block, class))
}

#[test]
fn a_block_of_which_nothing_is_said_is_whole_whatever_functions_allocated_it() {
    let world = watched();
    let heap = world.heap();
    let watch = heap.watch().expect("the heap is watched");
    for family in [Family::C, Family::Rust, Family::New, Family::NewArray] {
        let block = heap.allocate_for(Request::new(40, 1, family)).start;
        let is_whole = |claim| if_whole_of_any(watch, at(heap, block), claim).is_some();
        assert!(is_whole(Claim::NOTHING) && is_whole(Claim::of(family)) && is_whole(Claim::NOTHING.sized(40)));
        let other = if family == Family::C { Family::New } else { Family::C };
        assert!(!is_whole(Claim::of(other)) && !is_whole(Claim::NOTHING.sized(41)));
        free(heap, block);
        assert!(!is_whole(Claim::NOTHING));
    }
}

#[test]
fn what_holds_an_address_is_told_by_its_trailer() {
    let world = watched();
    let heap = world.heap();
    for size in [28, 1000, 5000] {
        let block = heap.allocate(size, 1).start;
        let (page, (_, class)) = at(heap, block);
        let bytes = block_bytes(class);
        let span = span_of(&world, block);
        let seen = |address: usize| trailer_at(&world.shared, page, class, address);
        for inside in [0, 1, size - 1, bytes - 1] {
            let found = seen(block.addr() + inside);
            assert!(
                matches!(found, Some((start, Seen::Whole(trailer))) if start == block.addr() && trailer.size == size),
                "{size}: {found:?}"
            );
        }
        // What was never carved has no trailer yet.
        let (start, n) = (span.start().addr(), blocks::n_blocks(&span));
        let last = seen(start + n * bytes - 1);
        assert!(matches!(last, Some((at, Seen::Blank)) if at == start + (n - 1) * bytes), "{size}: {last:?}");
        assert!(seen(start + n * bytes).is_none());
        fill(block.wrapping_add(bytes - TRAILER_BYTES), 0x41, TRAILER_BYTES);
        assert!(matches!(seen(block.addr()), Some((_, Seen::Damaged | Seen::Whole(_)))));
    }
    let plain = World::new(4096);
    let heap = plain.heap();
    let block = heap.allocate(1000, 1).start;
    let (page, (_, class)) = at(heap, block);
    let found = trailer_at(&plain.shared, page, class, block.addr() + 999);
    assert!(matches!(found, Some((start, Seen::None)) if start == block.addr()));
}

/// Of a block that is free, the left neighbour's trailer counts as well: written over, or whole.
#[test]
fn a_trailer_of_the_left_neighbour_is_looked_at_and_no_block_is_left_of_the_first() {
    let world = watched();
    let heap = world.heap();
    let blocks: Vec<_> = (0..256).map(|_| heap.allocate(1000, 1).start).collect();
    let (_, (_, class)) = at(heap, blocks[0]);
    let right_of = |block: *mut u8| block.wrapping_add(block_bytes(class));
    let is_first = |block: *mut u8| block == span_of(&world, block).start() && blocks.contains(&right_of(block));
    let first = *blocks.iter().find(|&&block| is_first(block)).expect("some spans are used up");
    let right = right_of(first);
    for block in [first, right] {
        assert!(examine_own(heap, (block, class), Claim::NOTHING).is_some());
        assert_eq!(seen::take(), []);
    }
    fill(right.wrapping_sub(TRAILER_BYTES), 0, TRAILER_BYTES);
    assert!(examine_own(heap, (right, class), Claim::NOTHING).is_some());
    let block_bytes = block_bytes(class);
    let what = Misuse::Overflow { block_bytes, size: None, offset: block_bytes - TRAILER_BYTES };
    assert_eq!(seen::take(), [(what, first.addr())]);
}
