#![allow(unsafe_code)]

use crate::{Bounded, Error, Policy, Standard, Stats, Tlsf, WithFooters};
use core::mem::MaybeUninit;

#[repr(align(16))]
struct Memory<const N: usize>([MaybeUninit<u8>; N]);

#[test]
fn every_number_is_counted_exactly() {
    let mut memory = Memory([MaybeUninit::uninit(); 1024]);
    let mut heap = Tlsf::new();
    heap.add_region(&mut memory.0).unwrap();
    let blocks = [40, 100, 200, 8].map(|bytes| heap.allocate(bytes, 16).unwrap());
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(blocks[0]) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.deallocate(blocks[2]) }.unwrap();
    let top = 1024 - 16 - 48 - 112 - 208 - 32;
    let free_bytes = 48 + 208 + top;
    let expected = Stats {
        region_bytes: 1024,
        used_blocks: 2,
        used_bytes: 104 + 24,
        free_blocks: 3,
        free_bytes,
        largest_free_bytes: top - 8,
        overhead_bytes: 2 * 8 + 16,
        fragmentation_permille: (48 + 208) * 1000 / free_bytes,
    };
    assert_eq!(heap.stats(), expected);
    assert_eq!(expected.used_bytes + expected.overhead_bytes + expected.free_bytes, expected.region_bytes);
}

#[test]
fn footers_and_slack_are_overhead() {
    let mut memory = Memory([MaybeUninit::uninit(); 1024]);
    let mut heap = Tlsf::<WithFooters>::with_policy();
    heap.add_region(&mut memory.0).unwrap();
    heap.allocate(41, 16).unwrap();
    let stats = heap.stats();
    assert_eq!((stats.used_bytes, stats.overhead_bytes), (41, 16 + 64 - 41));
}

#[test]
fn a_full_heap_and_an_empty_one_have_no_fragmentation() {
    let mut memory = Memory([MaybeUninit::uninit(); 1024]);
    let mut heap = Tlsf::new();
    assert_eq!(heap.stats(), Stats::default());
    heap.add_region(&mut memory.0).unwrap();
    assert_eq!((heap.stats().free_blocks, heap.stats().fragmentation_permille), (1, 0));
    heap.allocate(heap.stats().largest_free_bytes, 16).unwrap();
    assert_eq!((heap.stats().free_blocks, heap.stats().fragmentation_permille), (0, 0));
}

/// What a request for the largest free block gets, if that is behind four shorter ones of its list.
fn request_of_the_largest<P: Policy>() -> Result<(), Error> {
    let mut memory = Memory([MaybeUninit::uninit(); 8192]);
    let mut heap = Tlsf::<P>::with_policy();
    heap.add_region(&mut memory.0).unwrap();
    let holes =
        [1032, 1016, 1016, 1016, 1016].map(|bytes| [bytes, 16].map(|bytes| heap.allocate(bytes, 16).unwrap())[0]);
    heap.allocate(heap.stats().largest_free_bytes, 16).unwrap();
    for hole in holes {
        // SAFETY: no other code uses it.
        unsafe { heap.deallocate(hole) }.unwrap();
    }
    assert_eq!(heap.stats().largest_free_bytes, 1032);
    heap.allocate(1032, 16).map(|block| assert_eq!(block, holes[0]))
}

#[test]
fn a_request_of_the_largest_free_block_succeeds_unless_the_search_has_a_bound() {
    assert_eq!(request_of_the_largest::<Standard>(), Ok(()));
    assert_eq!(request_of_the_largest::<Bounded>(), Err(Error::Exhausted { bytes: 1032, align: 16 }));
}
