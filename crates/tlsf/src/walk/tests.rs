#![allow(unsafe_code)]

use crate::{BlockInfo, Error, Policy, Standard, Tlsf, WithFooters};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 1024]);

const ZEROED: Memory = Memory([const { MaybeUninit::zeroed() }; 1024]);

/// A heap with, in this order: a used block of 40 bytes, a free one of 104, a used one of 24, and the top.
fn heap<P: Policy>(memory: &mut Memory) -> (Tlsf<'_, P>, [NonNull<u8>; 3]) {
    let mut heap = Tlsf::<P>::with_policy();
    heap.add_region(&mut memory.0).unwrap();
    let blocks = [40, 104, 24].map(|bytes| heap.allocate(bytes, 16).unwrap());
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(blocks[1]).unwrap() };
    (heap, blocks)
}

fn diagnosis(heap: &Tlsf<'_>, block: NonNull<u8>, offset: isize) -> Error {
    Tlsf::diagnose(block.addr().get().wrapping_add_signed(offset), heap)
}

#[test]
fn blocks_come_in_the_order_of_their_addresses_and_leaks_are_those_in_use() {
    let mut memory = ZEROED;
    let (heap, blocks) = heap::<Standard>(&mut memory);
    let [used, free, last] = blocks.map(|block| block.addr().get());
    let info = |address, usable_bytes, used| BlockInfo { address, usable_bytes, block_bytes: usable_bytes + 8, used };
    let top = info(last + 32, 1024 - 16 - 48 - 112 - 32 - 8, false);
    assert!(heap.blocks().eq([info(used, 40, true), info(free, 104, false), info(last, 24, true), top]));
    assert!(heap.leaks().eq([info(used, 40, true), info(last, 24, true)]));
}

#[test]
fn an_address_is_diagnosed_by_the_block_that_it_lies_in() {
    let mut memory = ZEROED;
    let (heap, [used, free, last]) = heap::<Standard>(&mut memory);
    let (start, free_block) = (used.addr().get(), free.addr().get());
    for offset in (1..40).step_by(if cfg!(miri) { 5 } else { 1 }) {
        let address = start + offset as usize;
        assert_eq!(diagnosis(&heap, used, offset), Error::Interior { address, block: start, bytes: 40 });
    }
    // From its header to the next one: the free block.
    for offset in (-8..104).step_by(if cfg!(miri) { 9 } else { 1 }) {
        let address = free_block.wrapping_add_signed(offset);
        assert_eq!(diagnosis(&heap, free, offset), Error::DoubleFree { address, free_block, bytes: 104 });
    }
    // The header of a used block is in no payload; nor are the region's ends.
    for (block, offset) in [(last, -8), (last, -1), (used, -8), (used, -16), (used, 1024 - 16 - 8)] {
        let address = block.addr().get().wrapping_add_signed(offset);
        assert_eq!(diagnosis(&heap, block, offset), Error::Foreign { address });
    }
    assert!(matches!(diagnosis(&heap, used, 1024 - 16), Error::Foreign { .. }), "behind the region");
}

#[test]
fn a_broken_header_is_an_overrun_of_the_used_block_in_front_of_it_and_damage_behind_a_free_one() {
    let mut memory = ZEROED;
    let (heap, [used, free, last]) = heap::<Standard>(&mut memory);
    for (broken, expected) in [
        (free, Error::Overrun { block: used.addr().get(), bytes: 40 }),
        (last, Error::Damaged { block: last.addr().get() }),
        (used, Error::Damaged { block: used.addr().get() }),
    ] {
        // SAFETY: the word in front of a block is its header.
        let header = unsafe { broken.byte_sub(8).cast::<u64>() };
        // SAFETY: as above.
        unsafe { *header.as_ptr() ^= 1 };
        assert_eq!(heap.check(), Err(expected));
        assert_eq!(diagnosis(&heap, last, 0), expected);
        // SAFETY: as above.
        unsafe { *header.as_ptr() ^= 1 };
    }
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_start_of_a_block_that_was_refused_is_an_overrun_with_footers_and_damage_without() {
    let mut memory = ZEROED;
    let (without, [used, ..]) = heap::<Standard>(&mut memory);
    assert_eq!(diagnosis(&without, used, 0), Error::Damaged { block: used.addr().get() });
    let mut memory = ZEROED;
    let (with, [used, ..]) = heap::<WithFooters>(&mut memory);
    let expected = Error::Overrun { block: used.addr().get(), bytes: 40 };
    assert_eq!(Tlsf::<WithFooters>::diagnose(used.addr().get(), &with), expected);
}
