#![allow(unsafe_code)]

use crate::{Bounded, Error, Policy, Standard, Tlsf, WithFooters};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 4096]);

const ZEROED: Memory = Memory([const { MaybeUninit::zeroed() }; 4096]);

#[test]
fn the_largest_request_fills_the_longest_region_except_its_ends_and_the_blocks_bookkeeping() {
    const LONGEST: usize = 32 << 8;
    assert_eq!(Tlsf::<Standard, 8, 32, 1>::MOST_REGION_BYTES, LONGEST);
    assert_eq!(Tlsf::<Standard, 8, 32, 1>::MOST_BYTES, LONGEST - 16 - 8);
    assert_eq!(Tlsf::<Bounded, 8, 32, 1>::MOST_BYTES, LONGEST - 16 - 8);
    assert_eq!(Tlsf::<WithFooters, 8, 32, 1>::MOST_BYTES, LONGEST - 16 - 16);
    fill_longest::<Standard>();
    fill_longest::<WithFooters>();
}

/// Allocates the largest request of a heap of up to 4096 bytes from the top, and from the list of the whole of a second region.
fn fill_longest<P: Policy>() {
    let (mut first, mut second) = (ZEROED, ZEROED);
    let mut heap = Tlsf::<P, 7, 32, 2>::with_policy();
    heap.add_region(&mut first.0).unwrap();
    heap.add_region(&mut second.0).unwrap();
    let most = Tlsf::<P, 7, 32, 2>::MOST_BYTES;
    for _ in 0..2 {
        assert_eq!(heap.stats().largest_free_bytes, if P::FOOTER { most + 8 } else { most });
        assert!(heap.allocate(most, 16).is_ok());
        assert_eq!(heap.check(), Ok(()));
    }
    assert_eq!(heap.allocate(most + 1, 16), Err(Error::TooLarge { bytes: most + 1, most }));
}

#[test]
fn requests_above_half_of_the_longest_region_are_served_from_any_longer_block_in_a_list() {
    let mut memory = ZEROED;
    let mut heap = Tlsf::<Bounded, 7, 32, 1>::with_policy();
    heap.add_region(&mut memory.0).unwrap();
    let hole = heap.allocate(3500, 16).unwrap();
    let _wall = heap.allocate(16, 16).unwrap();
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(hole).unwrap() };
    let largest = heap.stats().largest_free_bytes;
    for bytes in (2032..=largest).step_by(if cfg!(miri) { 97 } else { 1 }) {
        assert_eq!(heap.allocate(bytes, 16), Ok(hole), "{bytes} of {largest} bytes");
        // SAFETY: as above.
        unsafe { heap.deallocate(hole).unwrap() };
    }
    for align in [32, 64, 256] {
        let bytes = largest - align - 32;
        assert_eq!(heap.allocate(bytes + 1, align), Err(Error::Exhausted { bytes: bytes + 1, align }));
        let block = heap.allocate(bytes, align).unwrap();
        assert!(block >= hole && heap.check().is_ok(), "{bytes} bytes aligned to {align}");
        // SAFETY: as above.
        unsafe { heap.deallocate(block).unwrap() };
    }
    assert_eq!(heap.allocate(largest + 1, 16), Err(Error::Exhausted { bytes: largest + 1, align: 16 }));
}

#[test]
fn requests_around_half_of_the_longest_region_are_served_from_the_top_and_from_a_list() {
    #[repr(align(16))]
    struct Long([MaybeUninit<u8>; 4096]);
    for bytes in (2016..2100).step_by(if cfg!(miri) { 13 } else { 1 }) {
        let mut memory = Long([const { MaybeUninit::uninit() }; 4096]);
        let mut heap = Tlsf::<Standard, 7, 32, 1>::with_policy();
        heap.add_region(&mut memory.0).unwrap();
        let block = heap.allocate(bytes, 16).unwrap();
        let wall = heap.allocate(16, 16).unwrap();
        // SAFETY: no other code uses it.
        unsafe { heap.deallocate(block).unwrap() };
        assert_eq!(heap.allocate(bytes, 16), Ok(block), "the free block in front of {wall:?} is reused");
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn a_flipped_flag_or_seal_of_a_free_block_is_reported_and_nothing_is_cut() {
    for bit in (0..20).step_by(if cfg!(miri) { 3 } else { 1 }) {
        let mut memory = ZEROED;
        let mut heap = Tlsf::new();
        heap.add_region(&mut memory.0).unwrap();
        let [small, _wall, hole, _wall_2]: [NonNull<u8>; 4] = [40, 8, 104, 8].map(|b| heap.allocate(b, 16).unwrap());
        // SAFETY: no other code uses it.
        unsafe { heap.deallocate(small) }.unwrap();
        // SAFETY: as above.
        unsafe { heap.deallocate(hole) }.unwrap();
        // SAFETY: the word in front of a block is its header.
        let header = unsafe { hole.byte_sub(8).cast::<u64>() };
        // SAFETY: as above.
        unsafe { *header.as_ptr() ^= 1 << bit };
        let before = heap.top.bytes();
        for _ in 0..2 {
            let error = heap.allocate(104, 16).unwrap_err();
            assert!(!matches!(error, Error::Exhausted { .. }), "bit {bit}: {error}");
        }
        assert_eq!(heap.top.bytes(), before);
        // SAFETY: as above.
        unsafe { *header.as_ptr() ^= 1 << bit };
        assert_eq!((heap.check(), heap.allocate(104, 16)), (Ok(()), Ok(hole)), "repaired, and nothing had changed");
    }
}

/// Whether a heap whose one free block has `free` bytes, header included, has room for this request.
fn has_room<P: Policy>(free: usize, bytes: usize, align: usize) -> bool {
    let mut memory = ZEROED;
    let mut heap = Tlsf::<P>::with_policy();
    heap.add_region(&mut memory.0[..free + 16]).unwrap();
    heap.allocate(bytes, align).is_ok()
}

#[test]
fn a_larger_alignment_needs_a_free_block_of_that_and_32_bytes_more_than_the_block() {
    for (bytes, block, with_footer) in
        [(1, 32, 32), (16, 32, 32), (17, 32, 48), (24, 32, 48), (25, 48, 48), (104, 112, 128)]
    {
        for align in [32, 256] {
            let room = |block| block + align + 32;
            assert!(has_room::<Bounded>(room(block), bytes, align), "{bytes} aligned to {align}");
            assert!(!has_room::<Bounded>(room(block) - 16, bytes, align), "{bytes} aligned to {align}");
            assert!(has_room::<WithFooters>(room(with_footer), bytes, align), "{bytes} aligned to {align}");
            assert!(!has_room::<WithFooters>(room(with_footer) - 16, bytes, align), "{bytes} aligned to {align}");
        }
    }
}

#[test]
fn an_alignment_of_16_needs_no_more_room_than_one_of_1_also_at_the_last_resort() {
    for align in [1, 2, 4, 8, 16] {
        let mut memory = ZEROED;
        let mut heap = Tlsf::new();
        heap.add_region(&mut memory.0).unwrap();
        let [hole, _wall] = [1040, 8].map(|bytes| heap.allocate(bytes, 16).unwrap());
        let rest = heap.stats().largest_free_bytes;
        heap.allocate(rest, 16).unwrap();
        // SAFETY: no other code uses it.
        unsafe { heap.deallocate(hole).unwrap() };
        assert_eq!(heap.allocate(1040, align), Ok(hole));
    }
}
