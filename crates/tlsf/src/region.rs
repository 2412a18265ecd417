//! The regions of a heap: which memory it may touch.
//!
//! ```text
//!  start                                             start + bytes
//!  | 8 unused | header | payload ... | header ... | sentinel (size 0, used) |
//!  0          8        16                          bytes - 8
//! ```
//!
//! Invariants: regions start at multiples of 16, have lengths that are multiples of 16, and share no byte; slots in use
//! come first, by address, and those not in use have the last address there is. Every access to a block goes through a pointer
//! derived from its region's start, never through the one the user hands back, so that the compiler's view of the user's block
//! (a `Box`, a `&mut`) stays true.
//! Cost: a block's region is found by halves: four instructions for each doubling of the number of regions.
//!
//! # Safety
//! The memory of each region belongs to the heap alone from the call that adds it to the one that removes it.
#![allow(unsafe_code)]

use crate::block::{Block, HEADER_BYTES, LEAST_BLOCK_BYTES};
use crate::error::Error;
use crate::mapping::GRANULE;
use core::hint::cold_path;
use core::ptr::NonNull;

/// What a region costs besides its blocks: the unused front, and the sentinel.
pub(crate) const REGION_OVERHEAD_BYTES: usize = 2 * HEADER_BYTES;

/// The shortest region: room for one block.
pub const LEAST_REGION_BYTES: usize = REGION_OVERHEAD_BYTES + LEAST_BLOCK_BYTES;

/// Memory that a heap was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    /// The first header.
    first: NonNull<u8>,
    /// Address of the first payload.
    payload_address: usize,
    /// Address of the sentinel.
    end: usize,
    /// Bytes from the first payload on in which a block could start; 0 in an empty slot.
    payload_bytes: usize,
}

/// A place where a block may be, found by its address.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    pub(crate) block: Block,
    /// From the region's first header to this block's.
    pub(crate) room_before: usize,
    /// Address of the region's sentinel.
    pub(crate) end: usize,
}

impl Region {
    const EMPTY: Self = Self { first: NonNull::dangling(), payload_address: usize::MAX, end: 0, payload_bytes: 0 };

    /// Checks the shape of a region; `most` is the longest the heap can name.
    pub(crate) fn new(start: NonNull<u8>, bytes: usize, most: usize) -> Result<Self, Error> {
        let address = start.addr().get();
        if !address.is_multiple_of(GRANULE) || !bytes.is_multiple_of(GRANULE) {
            return Err(Error::RegionMisaligned { address, bytes });
        }
        if bytes < LEAST_REGION_BYTES {
            return Err(Error::RegionTooSmall { bytes, least: LEAST_REGION_BYTES });
        }
        if bytes > most || address.checked_add(bytes).is_none() {
            return Err(Error::RegionTooLarge { bytes, most });
        }
        // SAFETY: the region has `LEAST_REGION_BYTES` or more.
        let first = unsafe { start.byte_add(HEADER_BYTES) };
        Ok(Self {
            first,
            payload_address: address + REGION_OVERHEAD_BYTES,
            end: address + bytes - HEADER_BYTES,
            payload_bytes: bytes - LEAST_REGION_BYTES + GRANULE,
        })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: a region begins that many bytes before its first header.
        unsafe { self.first.byte_sub(HEADER_BYTES) }
    }

    pub(crate) fn address(&self) -> usize {
        self.first.addr().get() - HEADER_BYTES
    }

    /// Bytes of all its blocks together.
    fn block_bytes(&self) -> usize {
        self.end - self.first.addr().get()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.block_bytes() + REGION_OVERHEAD_BYTES
    }

    /// Whether `address` is one of this region's bytes.
    pub(crate) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.address()) < self.bytes()
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.address()) || other.contains(self.address())
    }

    /// The first block.
    pub(crate) fn first(&self) -> Block {
        Block::at(self.first)
    }

    /// The header that ends the region.
    pub(crate) fn sentinel(&self) -> Block {
        // SAFETY: the blocks end there.
        unsafe { self.first().after(self.block_bytes()) }
    }

    /// Whether a block's payload could be at `address`, if that is a multiple of the granule.
    #[inline(always)]
    fn has_payload_at(&self, address: usize) -> bool {
        address.wrapping_sub(self.payload_address) < self.payload_bytes
    }

    /// The block whose header would be at `address`, if one may be there.
    pub(crate) fn block_at(&self, address: usize) -> Option<Block> {
        let payload = address.wrapping_add(HEADER_BYTES);
        if !payload.is_multiple_of(GRANULE) || !self.has_payload_at(payload) {
            return None;
        }
        // SAFETY: the address is inside the region.
        Some(Block::at(unsafe { self.first.byte_add(address - self.first.addr().get()) }))
    }
}

/// The regions of one heap.
pub(crate) struct Regions<const REGIONS: usize> {
    slots: [Region; REGIONS],
    len: usize,
}

impl<const REGIONS: usize> Regions<REGIONS> {
    pub(crate) const fn new() -> Self {
        const { assert!(REGIONS >= 1, "a heap has at least one region") }
        Self { slots: [Region::EMPTY; REGIONS], len: 0 }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.slots.iter().take(self.len)
    }

    /// Adds `region`, if it overlaps none and there is room.
    pub(crate) fn add(&mut self, region: Region) -> Result<(), Error> {
        if let Some(other) = self.iter().find(|other| other.overlaps(&region)) {
            return Err(Error::RegionOverlaps { address: region.address(), other: other.address() });
        }
        if self.len == REGIONS {
            return Err(Error::TooManyRegions { most: REGIONS });
        }
        let mut moving = region;
        for slot in &mut self.slots {
            if slot.payload_address > moving.payload_address {
                core::mem::swap(slot, &mut moving);
            }
        }
        self.len += 1;
        Ok(())
    }

    /// Replaces the region at the same start by a longer one, if that overlaps no other.
    pub(crate) fn extend(&mut self, longer: Region) -> Result<(), Error> {
        let start = longer.address();
        if let Some(other) = self.iter().find(|other| other.address() != start && other.overlaps(&longer)) {
            return Err(Error::RegionOverlaps { address: start, other: other.address() });
        }
        let slot = self.slots.iter_mut().take(self.len).find(|slot| slot.address() == start);
        *slot.ok_or(Error::NoSuchRegion { address: start })? = longer;
        Ok(())
    }

    /// Forgets `region`, which is one of these.
    pub(crate) fn remove(&mut self, region: Region) {
        let mut moving = Region::EMPTY;
        for slot in self.slots.iter_mut().rev() {
            core::mem::swap(slot, &mut moving);
            if moving.payload_address == region.payload_address {
                break;
            }
        }
        self.len -= 1;
    }

    /// The region that starts at `address`.
    pub(crate) fn starting_at(&self, address: usize) -> Result<Region, Error> {
        self.iter().find(|region| region.address() == address).copied().ok_or(Error::NoSuchRegion { address })
    }

    /// The last region that begins at `address` or below, or the first. By halves: four instructions for each doubling of `REGIONS`.
    #[inline(always)]
    fn last_at_or_below(&self, address: usize) -> &Region {
        let (mut at, mut n) = (self.slots.as_ptr(), REGIONS);
        while n > 1 {
            let half = n / 2;
            // SAFETY: `at` is followed by `n` slots, itself included.
            let middle = unsafe { at.add(half) };
            // SAFETY: as above.
            if unsafe { (*middle).payload_address } <= address {
                // By a branch, for what is read behind it then need not wait for the comparison.
                cold_path();
                at = middle;
            }
            n -= half;
        }
        // SAFETY: there is at least one slot.
        unsafe { &*at }
    }

    /// The block whose payload would be at `address`, if that is possible anywhere.
    #[inline(always)]
    pub(crate) fn locate(&self, address: usize) -> Option<Located> {
        let region = self.last_at_or_below(address);
        if !address.is_multiple_of(GRANULE) || !region.has_payload_at(address) {
            return None;
        }
        let room_before = address - region.payload_address;
        // SAFETY: a place in the region.
        let block = Block::at(unsafe { region.first.byte_add(room_before) });
        Some(Located { block, room_before, end: region.end })
    }
}

#[cfg(test)]
mod tests;
