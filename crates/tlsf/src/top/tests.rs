#![allow(unsafe_code)]

use crate::error::Error;
use crate::{HEADER_BYTES, Tlsf};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 1024]);

impl Memory {
    const FRESH: Self = Self([MaybeUninit::uninit(); 1024]);
}

/// The usable bytes of the one block that fills a region of [`Memory`].
const WHOLE: usize = 1024 - 2 * HEADER_BYTES - HEADER_BYTES;

#[test]
fn the_top_is_cut_only_when_no_list_has_a_block_that_fits() {
    let mut memory = Memory::FRESH;
    let mut heap = Tlsf::new();
    heap.add_region(&mut memory.0).unwrap();
    let [low, middle] = [400, 40].map(|bytes| heap.allocate(bytes, 16).unwrap());
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(low).unwrap() };
    let high = heap.allocate(440, 16).unwrap();
    assert!(high > middle, "408 bytes are free in front, and more behind");
    assert_eq!(heap.allocate(100, 16), Ok(low));
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn what_is_left_of_the_top_is_a_block_or_nothing() {
    for left in (0..96).step_by(8) {
        let mut memory = Memory::FRESH;
        let mut heap = Tlsf::new();
        heap.add_region(&mut memory.0).unwrap();
        let block = heap.allocate(WHOLE - left, 16).unwrap();
        assert_eq!(heap.check(), Ok(()));
        let stats = heap.stats();
        assert_eq!(stats.free_bytes, if left < 32 { 0 } else { left & !15 });
        // SAFETY: only this test uses it; a block that grows in place, up to the last byte.
        assert_eq!(unsafe { heap.reallocate(block, WHOLE, 16) }, Ok(block));
        assert_eq!((heap.check(), heap.stats().free_bytes), (Ok(()), 0));
        // SAFETY: as above.
        assert!(unsafe { heap.reallocate(block, WHOLE + 1, 16) }.is_err());
        // SAFETY: as above.
        unsafe { heap.deallocate(block) }.unwrap();
        assert_eq!((heap.check(), heap.stats().largest_free_bytes), (Ok(()), WHOLE));
    }
}

#[test]
fn the_top_goes_with_its_region_and_the_next_region_added_has_one() {
    let [mut first, mut second, mut third] = [const { Memory::FRESH }; 3];
    let first_start = NonNull::from(&mut first.0).cast();
    let mut heap = Tlsf::new();
    heap.add_region(&mut first.0).unwrap();
    heap.add_region(&mut second.0).unwrap();
    let second_is_listed = heap.allocate(WHOLE / 2, 16).unwrap();
    assert!(!heap.top.is_none());
    heap.remove_region(first_start).unwrap();
    assert!(heap.top.is_none());
    assert_eq!((heap.check(), heap.region_bytes()), (Ok(()), 1024));
    assert!(heap.allocate(WHOLE, 16).is_err());
    heap.add_region(&mut third.0).unwrap();
    let all_of_third = heap.allocate(WHOLE, 16).unwrap();
    assert_eq!(heap.check(), Ok(()));
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(second_is_listed) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.deallocate(all_of_third) }.unwrap();
    assert_eq!((heap.check(), heap.stats().free_blocks, heap.stats().free_bytes), (Ok(()), 2, 2 * (WHOLE + 8)));
}

#[test]
fn a_bit_flipped_in_the_tops_header_is_reported_and_nothing_is_cut() {
    for bit in (0..64).step_by(if cfg!(miri) { 5 } else { 1 }) {
        let mut memory = Memory([const { MaybeUninit::zeroed() }; 1024]);
        let mut heap = Tlsf::new();
        heap.add_region(&mut memory.0).unwrap();
        let block = heap.allocate(104, 16).unwrap();
        // SAFETY: the word behind the block is the top's header.
        let header = unsafe { block.byte_add(104).cast::<u64>() };
        // SAFETY: as above.
        unsafe { *header.as_ptr() ^= 1 << bit };
        let damage = Err(Error::Overrun { block: block.addr().get(), bytes: 104 });
        for align in [16, 64] {
            assert_eq!(heap.allocate(8, align), damage.map(|()| block), "bit {bit}");
        }
        assert_eq!(heap.check(), damage);
        // SAFETY: as above.
        unsafe { *header.as_ptr() ^= 1 << bit };
        assert_eq!(heap.check(), Ok(()), "repaired, and nothing had changed");
    }
}
