#![allow(unsafe_code)]

use super::*;

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 2048]);

#[test]
fn a_region_whose_first_block_is_free_but_which_has_a_block_in_use_is_kept() {
    let mut memory = Memory([MaybeUninit::uninit(); 2048]);
    let start = NonNull::from(&mut memory.0).cast();
    let mut heap = Tlsf::new();
    heap.add_region(&mut memory.0).unwrap();
    let [first, second] = [40, 40].map(|bytes| heap.allocate(bytes, 16).unwrap());
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(first).unwrap() };
    assert_eq!(heap.remove_region(start), Err(Error::RegionInUse { block: second.addr().get(), bytes: 40 }));
    assert_eq!((heap.check(), heap.region_bytes()), (Ok(()), 2048));
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(second).unwrap() };
    assert_eq!((heap.remove_region(start), heap.region_bytes()), (Ok(()), 0));
}

#[test]
fn an_address_is_in_the_heap_exactly_if_it_is_in_a_region() {
    let mut memory = Memory([MaybeUninit::uninit(); 2048]);
    let start = NonNull::from(&mut memory.0).cast::<u8>().addr().get();
    let mut heap = Tlsf::new();
    assert!(!heap.contains(start));
    heap.add_region(&mut memory.0).unwrap();
    for (address, is_in) in [(start - 1, false), (start, true), (start + 2047, true), (start + 2048, false)] {
        assert_eq!(heap.contains(address), is_in);
    }
}

#[test]
fn a_region_that_grows_gives_its_new_bytes_to_the_top_or_to_a_free_block_at_its_end() {
    let mut memory = Memory([MaybeUninit::uninit(); 2048]);
    let mut other = Memory([MaybeUninit::uninit(); 2048]);
    let [start, second]: [NonNull<u8>; 2] = [&mut memory.0, &mut other.0].map(|memory| NonNull::from(memory).cast());
    let mut heap = Tlsf::new();
    // SAFETY: the memory outlives the heap, which has it alone.
    unsafe { heap.add_region_at(start, 1024) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.add_region_at(second, 1024) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.grow_region(start, 512) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.grow_region(second, 1024) }.unwrap();
    let stats = heap.stats();
    assert_eq!((heap.check(), heap.region_bytes(), stats.free_blocks), (Ok(()), 1536 + 2048, 2));
    assert_eq!(stats.largest_free_bytes, 2048 - 24);
    let all = heap.allocate(2048 - 24, 16).unwrap();
    assert_eq!(all.addr().get(), second.addr().get() + 16);
}

#[test]
fn heaps_over_the_same_memory_choose_different_seals() {
    let mut memory = Memory([MaybeUninit::uninit(); 2048]);
    let mut heap = Tlsf::new();
    heap.add_region(&mut memory.0).unwrap();
    let block = heap.allocate(40, 16).unwrap();
    let (first_seal, first_key) = (heap.sealer, heap.sealer.key());
    assert!(heap.regions.iter().all(|region| region.first().header(first_seal).is_intact()));
    let mut heap = Tlsf::new();
    heap.add_region(&mut memory.0).unwrap();
    assert_ne!(heap.sealer.key(), first_key);
    // SAFETY: refused, because the block was another heap's.
    assert!(unsafe { heap.deallocate(block) }.is_err());
}

#[test]
fn a_region_whose_end_was_overwritten_does_not_grow() {
    for in_first in [true, false] {
        for byte in 0..8 {
            let mut memory = Memory([MaybeUninit::uninit(); 2048]);
            let mut other = Memory([MaybeUninit::uninit(); 2048]);
            let [start, second]: [NonNull<u8>; 2] =
                [&mut memory.0, &mut other.0].map(|memory| NonNull::from(memory).cast());
            let mut heap = Tlsf::new();
            // SAFETY: the memory outlives the heap, which has it alone.
            unsafe { heap.add_region_at(start, 1024) }.unwrap();
            // SAFETY: as above.
            unsafe { heap.add_region_at(second, 1024) }.unwrap();
            let blocks: [_; 2] = core::array::from_fn(|_| heap.allocate(1024 - 24, 16).unwrap());
            let region = if in_first { start } else { second };
            let block = blocks.into_iter().find(|block| block.addr().get() == region.addr().get() + 16).unwrap();
            // SAFETY: the payload of a block, which this test has.
            unsafe { block.write_bytes(0x40, 1024 - 24) };
            // SAFETY: for the test: a byte of the region's last header, which every overrun of the block reaches.
            unsafe { *block.as_ptr().wrapping_add(1024 - 24 + byte) ^= 0x14 };
            // SAFETY: the memory behind the region is the heap's.
            let refused = unsafe { heap.grow_region(region, 512) };
            assert_eq!(refused, Err(Error::Overrun { block: block.addr().get(), bytes: 1024 - 24 }));
            assert_eq!((heap.check(), heap.region_bytes()), (refused, 2048));
        }
    }
}
