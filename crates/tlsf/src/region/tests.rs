#![allow(unsafe_code)]

extern crate std;

use super::*;
use crate::mapping::{LISTS_END, ListIndex};
use std::vec::Vec;

#[repr(align(16))]
struct Memory([u8; 256]);

const MOST: usize = 1 << 20;

/// A region that is never read or written.
fn region(start: NonNull<u8>, bytes: usize, most: usize) -> Result<Region, Error> {
    // SAFETY: these tests look at addresses alone.
    unsafe { Region::new(start, bytes, most) }
}

#[test]
fn shapes_that_cannot_hold_a_block_are_refused_with_their_numbers() {
    let mut memory = Memory([0; 256]);
    let start = NonNull::from(&mut memory.0).cast::<u8>();
    let address = start.addr().get();
    assert_eq!(region(start, 32, MOST).err(), Some(Error::RegionTooSmall { bytes: 32, least: 48 }));
    assert_eq!(region(start, 250, MOST).err(), Some(Error::RegionMisaligned { address, bytes: 250 }));
    assert_eq!(region(start, 256, 128).err(), Some(Error::RegionTooLarge { bytes: 256, most: 128 }));
    let odd = start.map_addr(|address| address.saturating_add(8));
    assert_eq!(region(odd, 64, MOST).err(), Some(Error::RegionMisaligned { address: address + 8, bytes: 64 }));
}

#[test]
fn a_region_whose_addresses_could_be_numbers_of_lists_is_refused() {
    let at = |address| NonNull::new(core::ptr::without_provenance_mut(address)).unwrap();
    let least = LEAST_REGION_ADDRESS;
    for address in [16, least / 2, least - 16] {
        assert_eq!(region(at(address), 64, MOST).err(), Some(Error::RegionTooLow { address, least }));
    }
    // SAFETY: the address is compared, and never read.
    let lowest = unsafe { Block::at(at(least + HEADER_BYTES)) };
    assert_eq!(BackLink::block(lowest).as_list(), None);
    assert_eq!(BackLink::list(ListIndex::of_number(LISTS_END)).as_list(), Some(ListIndex::of_number(LISTS_END)));
}

#[test]
fn only_places_where_a_payload_can_start_are_located() {
    let mut memory = Memory([0; 256]);
    let start = NonNull::from(&mut memory.0).cast::<u8>();
    let base = start.addr().get();
    let mut regions = Regions::<2>::new();
    assert!(regions.locate(base + 16).is_none());
    regions.add(region(start, 96, MOST).unwrap()).unwrap();
    let located: Vec<_> = (0..128).filter(|offset| regions.locate(base + offset).is_some()).collect();
    assert_eq!(located, [16, 32, 48, 64], "a block of 32 bytes must fit before the sentinel at 88");
    let last = regions.locate(base + 64).unwrap();
    assert_eq!((last.room_before, last.end), (48, base + 88));
}

#[test]
fn overlap_and_a_full_table_are_refused_and_removal_makes_room() {
    let mut memory = Memory([0; 256]);
    let start = NonNull::from(&mut memory.0).cast::<u8>();
    let at = |offset| start.map_addr(|address| address.saturating_add(offset));
    let base = start.addr().get();
    let mut regions = Regions::<2>::new();
    regions.add(region(at(64), 64, MOST).unwrap()).unwrap();
    for (offset, bytes) in [(0, 80), (112, 64), (64, 64), (0, 256), (64, 48)] {
        let refused = Error::RegionOverlaps { address: base + offset, other: base + 64 };
        assert_eq!(regions.add(region(at(offset), bytes, MOST).unwrap()), Err(refused));
    }
    regions.add(region(at(0), 64, MOST).unwrap()).unwrap();
    let third = region(at(128), 64, MOST).unwrap();
    assert_eq!(regions.add(third), Err(Error::TooManyRegions { most: 2 }));
    let middle = regions.starting_at(base + 64).unwrap();
    regions.remove(middle);
    regions.add(third).unwrap();
    assert_eq!(regions.iter().map(Region::address).collect::<Vec<_>>(), [base, base + 128]);
}
