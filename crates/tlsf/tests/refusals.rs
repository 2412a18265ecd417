//! Every bad input of the interface: an error that names the block, and an unchanged heap.
#![allow(unsafe_code, reason = "the misuse that is tested")]

mod subject;

use freestone_tlsf::{Error, LEAST_REGION_BYTES, Policy, Standard, Stats, Tlsf, WithFooters};
use std::ptr::NonNull;
use subject::{Grown, Memory};

const REGION: usize = 4096;

fn grown<P: Policy>() -> Grown<P> {
    Grown::new(REGION, 2 * REGION)
}

/// A heap with a block of 100 bytes between two others, and the three.
fn filled<P: Policy>() -> (Grown<P>, [NonNull<u8>; 3]) {
    let mut grown = grown::<P>();
    let blocks = [(); 3].map(|()| grown.heap.allocate(100, 16).unwrap());
    (grown, blocks)
}

/// The state that a refused call must not change.
fn state<P: Policy>(heap: &Tlsf<'_, P>) -> (Stats, Vec<freestone_tlsf::BlockInfo>) {
    assert_eq!(heap.check(), Ok(()));
    (heap.stats(), heap.blocks().collect())
}

/// Runs `call`, which must fail, and checks that the heap is as it was.
fn refused<P: Policy, T: std::fmt::Debug>(
    heap: &mut Tlsf<'static, P>,
    call: impl FnOnce(&mut Tlsf<'static, P>) -> Result<T, Error>,
) -> Error {
    let before = state(heap);
    let error = call(heap).unwrap_err();
    assert_eq!(state(heap), before, "{error}");
    error
}

fn at(block: NonNull<u8>, offset: usize) -> NonNull<u8> {
    // SAFETY: the tests stay inside their memory.
    unsafe { block.byte_add(offset) }
}

#[test]
fn regions_that_are_misaligned_too_small_too_large_overlapping_or_too_many_are_refused() {
    let mut grown = grown::<Standard>();
    let (start, heap) = (grown.memory.start, &mut grown.heap);
    let address = start.addr().get();
    // SAFETY: refused before anything is touched.
    let mut add = |start, bytes| refused(heap, |heap| unsafe { heap.add_region_at(start, bytes) });
    let behind = at(start, REGION);
    assert_eq!(add(at(behind, 8), 256), Error::RegionMisaligned { address: address + REGION + 8, bytes: 256 });
    assert_eq!(add(behind, 250), Error::RegionMisaligned { address: address + REGION, bytes: 250 });
    assert_eq!(add(behind, 32), Error::RegionTooSmall { bytes: 32, least: LEAST_REGION_BYTES });
    assert_eq!(add(behind, 0), Error::RegionTooSmall { bytes: 0, least: LEAST_REGION_BYTES });
    assert!(matches!(add(behind, usize::MAX & !15), Error::RegionTooLarge { .. }));
    assert_eq!(add(start, 256), Error::RegionOverlaps { address, other: address });
    let inside = Error::RegionOverlaps { address: address + REGION - 256, other: address };
    assert_eq!(add(at(start, REGION - 256), 512), inside);
    for part in 0..3 {
        // SAFETY: memory of its own, behind the region.
        unsafe { heap.add_region_at(at(behind, part * 256), 256).unwrap() };
    }
    // SAFETY: refused.
    let full = refused(heap, |heap| unsafe { heap.add_region_at(at(behind, 1024), 256) });
    assert_eq!(full, Error::TooManyRegions { most: 4 });
}

#[test]
fn growth_that_is_misaligned_too_small_overlapping_or_of_no_region_is_refused() {
    let mut grown = grown::<Standard>();
    let (start, heap) = (grown.memory.start, &mut grown.heap);
    let address = start.addr().get();
    // SAFETY: memory of its own, behind the region.
    unsafe { heap.add_region_at(at(start, REGION + 512), 512).unwrap() };
    // SAFETY: refused before anything is touched.
    let mut append = |start, bytes| refused(heap, |heap| unsafe { heap.grow_region(start, bytes) });
    assert!(matches!(append(start, 40), Error::RegionMisaligned { .. }));
    assert!(matches!(append(start, 16), Error::RegionTooSmall { bytes: 16, .. }));
    assert!(matches!(append(start, usize::MAX & !15), Error::RegionTooLarge { .. }));
    assert_eq!(append(start, 1024), Error::RegionOverlaps { address, other: address + REGION + 512 });
    assert_eq!(append(at(start, 16), 256), Error::NoSuchRegion { address: address + 16 });
}

#[test]
fn a_region_in_use_is_kept_and_the_error_names_its_first_block() {
    let mut grown = grown::<Standard>();
    let start = grown.memory.start;
    let block = grown.heap.allocate(100, 16).unwrap();
    let error = refused(&mut grown.heap, |heap| heap.remove_region(start));
    assert_eq!(error, Error::RegionInUse { block: block.addr().get(), bytes: 104 });
    let error = refused(&mut grown.heap, |heap| heap.remove_region(at(start, 16)));
    assert_eq!(error, Error::NoSuchRegion { address: start.addr().get() + 16 });
    // SAFETY: given back once.
    unsafe { grown.heap.deallocate(block).unwrap() };
    grown.heap.remove_region(start).unwrap();
    assert_eq!((grown.heap.region_bytes(), grown.heap.allocate(1, 1).is_err()), (0, true));
}

#[test]
fn sizes_of_zero_beyond_the_region_and_near_the_largest_number_are_refused() {
    let (mut grown, [first, ..]) = filled::<Standard>();
    let heap = &mut grown.heap;
    let most = Tlsf::<Standard>::MOST_BYTES;
    for align in [1, 16, 32, 4096] {
        assert_eq!(refused(heap, |heap| heap.allocate(0, align)), Error::ZeroSize);
        for bytes in [REGION, REGION + 1, 1 << 24] {
            assert_eq!(refused(heap, |heap| heap.allocate(bytes, align)), Error::Exhausted { bytes, align });
        }
        for less in (0..64).step_by(if cfg!(miri) { 7 } else { 1 }) {
            let bytes = usize::MAX - less;
            assert_eq!(refused(heap, |heap| heap.allocate(bytes, align)), Error::TooLarge { bytes, most });
        }
        for bytes in [most - 1, most, most / 2, most / 2 + 1, most / 64 * 63] {
            assert_eq!(refused(heap, |heap| heap.allocate(bytes, align)), Error::Exhausted { bytes, align });
        }
        assert_eq!(refused(heap, |heap| heap.allocate(most + 1, align)), Error::TooLarge { bytes: most + 1, most });
    }
    // SAFETY: refused, so the block stays.
    let mut resize = |bytes| refused(heap, |heap| unsafe { heap.reallocate(first, bytes, 16) });
    assert_eq!(resize(0), Error::ZeroSize);
    assert_eq!(resize(usize::MAX), Error::TooLarge { bytes: usize::MAX, most });
    assert_eq!(resize(REGION), Error::Exhausted { bytes: REGION, align: 16 });
}

#[test]
fn alignments_that_are_no_power_of_two_or_beyond_the_region_are_refused() {
    let (mut grown, [first, ..]) = filled::<Standard>();
    for align in [0, 3, 5, 6, 7, 9, 12, 15, 17, 24, 48, 100, usize::MAX] {
        let error = refused(&mut grown.heap, |heap| heap.allocate(8, align));
        assert_eq!(error, Error::BadAlignment { align });
        // SAFETY: refused, so the block stays.
        let error = refused(&mut grown.heap, |heap| unsafe { heap.reallocate(first, 8, align) });
        assert_eq!(error, Error::BadAlignment { align });
    }
    for align in [1 << 20, 1 << (usize::BITS - 1)] {
        let error = refused(&mut grown.heap, |heap| heap.allocate(8, align));
        assert_eq!(error, Error::Exhausted { bytes: 8, align });
    }
}

#[test]
fn a_double_free_is_reported_with_the_block_even_after_it_was_merged() {
    let (mut grown, blocks) = filled::<Standard>();
    for block in blocks {
        // SAFETY: given back once.
        unsafe { grown.heap.deallocate(block).unwrap() };
        for again in blocks.into_iter().take_while(|other| *other != block).chain([block]) {
            // SAFETY: refused.
            let error = refused(&mut grown.heap, |heap| unsafe { heap.deallocate(again) });
            assert!(matches!(error, Error::DoubleFree { address, .. } if address == again.addr().get()), "{error}");
            // SAFETY: refused.
            let error = refused(&mut grown.heap, |heap| unsafe { heap.reallocate(again, 8, 16) });
            assert!(matches!(error, Error::DoubleFree { .. }), "{error}");
        }
    }
}

#[test]
fn foreign_addresses_and_addresses_inside_a_block_are_reported() {
    let (mut grown, [_, middle, _]) = filled::<Standard>();
    // SAFETY: the block's own bytes.
    unsafe { middle.write_bytes(0, 104) };
    for offset in (1..104).step_by(if cfg!(miri) { 9 } else { 1 }) {
        let address = middle.addr().get() + offset;
        let expected = Error::Interior { address, block: middle.addr().get(), bytes: 104 };
        // SAFETY: refused.
        let error = refused(&mut grown.heap, |heap| unsafe { heap.deallocate(at(middle, offset)) });
        assert_eq!(error, expected);
        // SAFETY: nothing is changed.
        assert_eq!(unsafe { grown.heap.usable_size(at(middle, offset)) }, Err(expected));
    }
    let other = Memory::new(64);
    // SAFETY: refused.
    let error = refused(&mut grown.heap, |heap| unsafe { heap.deallocate(at(other.start, 16)) });
    assert_eq!(error, Error::Foreign { address: other.start.addr().get() + 16 });
}

#[test]
fn a_block_of_another_heap_is_refused_also_when_that_heap_is_over_the_same_memory() {
    let (mut grown, [first, ..]) = filled::<Standard>();
    let (mut another, _) = filled::<Standard>();
    // SAFETY: refused.
    let error = refused(&mut another.heap, |heap| unsafe { heap.deallocate(first) });
    assert_eq!(error, Error::Foreign { address: first.addr().get() });

    let mut later = Tlsf::new();
    // SAFETY: the earlier heap is not used any more.
    unsafe { later.add_region_at(grown.memory.start, REGION).unwrap() };
    // SAFETY: refused.
    let error = refused(&mut later, |heap| unsafe { heap.deallocate(first) });
    assert!(matches!(error, Error::DoubleFree { .. }), "{error}");
    grown.heap = Tlsf::new();
}

#[test]
fn a_broken_footer_or_header_is_reported_with_the_block_that_was_written_past() {
    let (mut grown, [first, ..]) = filled::<WithFooters>();
    // SAFETY: inside the region.
    unsafe { at(first, 100).write(0) };
    // SAFETY: refused.
    let error = unsafe { grown.heap.deallocate(first) }.unwrap_err();
    assert!(matches!(error, Error::Overrun { block, .. } if block == first.addr().get()), "{error}");
    assert_eq!(grown.heap.check(), Err(error));
    // SAFETY: inside the region.
    unsafe { at(first, 100).write(0xFD) };
    assert_eq!(grown.heap.check(), Ok(()), "repaired, and nothing had changed");

    let (mut grown, [first, middle, _]) = filled::<Standard>();
    // SAFETY: the next header's first byte.
    let old = unsafe { at(first, 104).replace(0) };
    for block in [first, middle] {
        // SAFETY: refused.
        let error = unsafe { grown.heap.deallocate(block) }.unwrap_err();
        assert_eq!(error, Error::Overrun { block: first.addr().get(), bytes: 104 });
    }
    // SAFETY: inside the region.
    unsafe { at(first, 104).write(old) };
    assert_eq!(grown.heap.check(), Ok(()), "repaired, and nothing had changed");
}

#[test]
fn a_request_for_exactly_the_largest_free_block_succeeds() {
    for bytes in [100, 1000, 3000] {
        let (mut grown, _) = filled::<Standard>();
        let _keep = grown.heap.allocate(bytes, 16).unwrap();
        let largest = grown.heap.stats().largest_free_bytes;
        assert_eq!(grown.heap.stats().overhead_bytes, 4 * 8 + 16, "8 bytes a block, and the region's ends");
        assert!(grown.heap.allocate(largest + 1, 16).is_err());
        grown.heap.allocate(largest, 16).unwrap();
        assert_eq!((grown.heap.check(), grown.heap.stats().free_bytes), (Ok(()), 0));
    }
}

#[test]
fn the_old_place_of_a_merged_block_is_inside_the_block_that_has_its_memory_now() {
    let (mut grown, [first, middle, last]) = filled::<Standard>();
    for block in [first, middle] {
        // SAFETY: given back once.
        unsafe { grown.heap.deallocate(block).unwrap() };
    }
    let longer = grown.heap.allocate(208, 16).unwrap();
    assert_eq!(longer, first, "both together");
    // SAFETY: refused.
    let error = refused(&mut grown.heap, |heap| unsafe { heap.deallocate(middle) });
    assert!(matches!(error, Error::Interior { block, .. } if block == longer.addr().get()), "{error}");
    for block in [longer, last] {
        // SAFETY: given back once.
        unsafe { grown.heap.deallocate(block).unwrap() };
    }
}

#[test]
fn a_size_that_was_written_over_in_front_of_a_block_is_reported_and_not_followed() {
    let (mut grown, [first, middle, _]) = filled::<Standard>();
    // SAFETY: given back once.
    unsafe { grown.heap.deallocate(first).unwrap() };
    // The last word of the free block, in front of the header of the next.
    let size = at(first, 96).cast::<usize>();
    // SAFETY: inside the region, as are the writes below.
    let right = unsafe { size.read() };
    for wrong in [0, 8, right - 16, right - 8, right + 16, REGION * 2, 1 << 46, usize::MAX - 15, usize::MAX] {
        // SAFETY: as above.
        unsafe { size.write(wrong) };
        // SAFETY: refused.
        let error = unsafe { grown.heap.deallocate(middle) };
        assert!(error.is_err(), "{wrong:#x}");
    }
    // SAFETY: as above.
    unsafe { size.write(right) };
    assert_eq!(grown.heap.check(), Ok(()), "repaired, and nothing had changed");
    // SAFETY: given back once.
    unsafe { grown.heap.deallocate(middle).unwrap() };
}
