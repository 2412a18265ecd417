#![allow(unsafe_code)]

use super::*;
use crate::{Tlsf, WithFooters};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 1024]);

/// A heap with, in this order: a free block, a used one, a free one, a used one, and the free rest; and the two used blocks.
fn heap<P: Policy>(memory: &mut Memory) -> (Tlsf<'_, P>, [NonNull<u8>; 2]) {
    let mut heap = Tlsf::<P>::with_policy();
    heap.add_region(&mut memory.0).unwrap();
    let blocks: [_; 4] = core::array::from_fn(|_| heap.allocate(40, 16).unwrap());
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(blocks[0]) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.deallocate(blocks[2]) }.unwrap();
    assert_eq!(heap.check(), Ok(()));
    (heap, [blocks[1], blocks[3]])
}

#[test]
fn every_byte_of_bookkeeping_that_is_flipped_is_noticed() {
    let mut undetected = 0;
    // 27 and 8 have no common factor, so that every byte of a word has its turn.
    for offset in (8..256).step_by(if cfg!(miri) { 27 } else { 1 }) {
        let mut memory = Memory([const { MaybeUninit::zeroed() }; 1024]);
        let (heap, used) = heap::<crate::Standard>(&mut memory);
        let region = *heap.regions.iter().next().unwrap();
        let address = region.address() + offset;
        let in_payload = used.iter().any(|block| (0..40).contains(&address.wrapping_sub(block.addr().get())));
        // Links and sizes of 32 bits leave the other half of their 8 bytes alone; headers do not.
        let unused = size_of::<usize>() == 4
            && offset % 8 >= 4
            && heap.blocks().all(|block| !(0..8).contains(&(address + 8).wrapping_sub(block.address)));
        // SAFETY: inside the region.
        unsafe { *region.start().as_ptr().wrapping_byte_add(offset) ^= 0x55 };
        let top = heap.top.block().payload_address();
        let is_in_free_middle = heap.blocks().filter(|block| !block.used).any(|block| {
            let middle = if block.address == top { 0..block.usable_bytes } else { 16..block.usable_bytes - 8 };
            middle.contains(&address.wrapping_sub(block.address))
        });
        if !in_payload && !unused && !is_in_free_middle && heap.check().is_ok() {
            undetected += 1;
        }
    }
    assert_eq!(undetected, 0);
}

#[test]
fn a_write_one_byte_past_the_request_is_found_with_footers_and_one_into_the_next_header_always() {
    let mut memory = Memory([MaybeUninit::uninit(); 1024]);
    let (heap, used) = heap::<WithFooters>(&mut memory);
    // SAFETY: the byte behind the request is inside the block.
    unsafe { used[0].as_ptr().wrapping_add(40).write(0) };
    assert!(matches!(heap.check(), Err(Error::Overrun { block, .. }) if block == used[0].addr().get()));

    let mut memory = Memory([MaybeUninit::uninit(); 1024]);
    let (heap, used) = self::heap::<crate::Standard>(&mut memory);
    // SAFETY: the byte behind the block is the next header's first, in the region.
    unsafe { used[1].as_ptr().wrapping_add(40).write(0) };
    assert_eq!(heap.check(), Err(Error::Overrun { block: used[1].addr().get(), bytes: 40 }));
}

/// A heap with two free blocks of one list in front of the top, the head first; their headers and links are in the region.
fn listed(memory: &mut Memory) -> (Tlsf<'_>, [NonNull<u8>; 2]) {
    let mut heap = Tlsf::new();
    heap.add_region(&mut memory.0).unwrap();
    let blocks = [(); 4].map(|()| heap.allocate(40, 16).unwrap());
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(blocks[0]) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.deallocate(blocks[2]) }.unwrap();
    (heap, [blocks[2], blocks[0]])
}

#[test]
fn a_list_that_lost_a_block_is_noticed_and_the_error_names_a_free_block() {
    let mut memory = Memory([const { MaybeUninit::zeroed() }; 1024]);
    let (mut heap, [head, next]) = listed(&mut memory);
    // SAFETY: the block's link and header are in the region.
    let block = unsafe { Block::of_payload(head) };
    // SAFETY: as above.
    unsafe { block.set_next_free(None) };
    assert_eq!(heap.check(), Err(Error::Damaged { block: next.addr().get() }), "the first free block in memory");
    // SAFETY: as above.
    unsafe { heap.lists.pop(block, index_of(48, 32)) };
    assert!(heap.check().is_err());
}

#[test]
fn a_list_with_a_block_of_another_size_or_a_used_one_is_noticed() {
    for header in [Header::new(64, crate::header::FREE), Header::new(48, 0)] {
        let mut memory = Memory([const { MaybeUninit::zeroed() }; 1024]);
        let (heap, [head, _]) = listed(&mut memory);
        // SAFETY: the header in front of the payload.
        unsafe { Block::of_payload(head) }.set_header(header, heap.sealer);
        assert_eq!(heap.check_list(index_of(48, 32), 9), Err(Error::Damaged { block: head.addr().get() }));
    }
    let mut memory = Memory([const { MaybeUninit::zeroed() }; 1024]);
    let (heap, [head, next]) = listed(&mut memory);
    assert_eq!((heap.check_list(index_of(48, 32), 2), heap.check()), (Ok(2), Ok(())));
    assert_eq!(heap.check_list(index_of(48, 32), 1), Err(Error::Damaged { block: next.addr().get() }));
    assert_eq!(heap.check_list(index_of(64, 32), 2), Ok(0));
    // SAFETY: the headers in front of the payloads are in the region.
    let [head_block, next_block] = [head, next].map(|payload| unsafe { Block::of_payload(payload) });
    // SAFETY: the block's link is in the region.
    unsafe { next_block.set_back_link(BackLink::block(next_block)) };
    assert_eq!(heap.check(), Err(Error::Damaged { block: next.addr().get() }));
    // SAFETY: as above.
    unsafe { head_block.set_back_link(BackLink::list(index_of(64, 32))) };
    assert_eq!(heap.check(), Err(Error::Damaged { block: head.addr().get() }));
}

#[test]
fn a_bit_without_a_list_is_noticed() {
    let mut memory = Memory([const { MaybeUninit::zeroed() }; 1024]);
    let (mut heap, _) = listed(&mut memory);
    heap.lists.bitmap.set(index_of(4096, 32));
    assert_eq!(heap.check(), Err(Error::Damaged { block: 0 }));
}
