//! The regions of a heap: which memory it may touch.
//!
//! ```text
//!  start                                             start + bytes
//!  | 8 unused | header | payload ... | header ... | sentinel (size 0, used) |
//!  0          8        16                          bytes - 8
//! ```
//!
//! Invariants: regions start at multiples of 16, have lengths that are multiples of 16, and share no byte; slots in use
//! come first. Every access to a block goes through a pointer derived from its region's start, never through the one the
//! user hands back, so that the compiler's view of the user's block (a `Box`, a `&mut`) stays true.
//! Cost: a block's region is found in one comparison a region: seven instructions for each one after the first.
//!
//! # Safety
//! The memory of each region belongs to the heap alone from the call that adds it to the one that removes it.
#![allow(unsafe_code)]

use crate::block::{Block, HEADER_BYTES, LEAST_BLOCK_BYTES};
use crate::error::Error;
use crate::mapping::GRANULE;
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
    /// Bytes of all its blocks together.
    block_bytes: usize,
    /// Number of granules, from the first payload on, at which a block could start; 0 in an empty slot.
    payloads: usize,
}

/// A place where a block may be, found by its address.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    /// A pointer that may be null, says its type: an `Option` of this would else be tested for null once more.
    header: *mut u8,
    /// From the region's first header to this block's.
    pub(crate) room_before: usize,
    /// From this block's header to the sentinel.
    pub(crate) room: usize,
}

impl Located {
    #[inline(always)]
    pub(crate) fn block(&self) -> Block {
        // SAFETY: `locate` derived the pointer from the region's.
        Block::at(unsafe { NonNull::new_unchecked(self.header) })
    }
}

impl Region {
    const EMPTY: Self = Self { first: NonNull::dangling(), payload_address: 0, block_bytes: 0, payloads: 0 };

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
        let payloads = (bytes - LEAST_REGION_BYTES) / GRANULE + 1;
        Ok(Self {
            first,
            payload_address: address + REGION_OVERHEAD_BYTES,
            block_bytes: bytes - REGION_OVERHEAD_BYTES,
            payloads,
        })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: a region begins that many bytes before its first header.
        unsafe { self.first.byte_sub(HEADER_BYTES) }
    }

    pub(crate) fn address(&self) -> usize {
        self.first.addr().get() - HEADER_BYTES
    }

    pub(crate) fn bytes(&self) -> usize {
        self.block_bytes + REGION_OVERHEAD_BYTES
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
        unsafe { self.first().after(self.block_bytes) }
    }

    /// The block whose payload would be at `address`, if one may be there.
    pub(crate) fn block_at(&self, address: usize) -> Option<Block> {
        let offset = address.wrapping_sub(self.address());
        if granules(offset.wrapping_sub(HEADER_BYTES)) >= self.payloads {
            return None;
        }
        // SAFETY: the offset is inside the region.
        Some(Block::at(unsafe { self.start().byte_add(offset) }))
    }
}

/// How many granules `bytes` are, or a huge number if they are no whole number of them.
#[inline(always)]
pub(crate) fn granules(bytes: usize) -> usize {
    bytes.rotate_right(GRANULE.trailing_zeros())
}

/// The regions of one heap.
pub(crate) struct Regions<const REGIONS: usize> {
    slots: [Region; REGIONS],
    len: usize,
}

impl<const REGIONS: usize> Regions<REGIONS> {
    pub(crate) const fn new() -> Self {
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
        let slot = self.slots.get_mut(self.len).ok_or(Error::TooManyRegions { most: REGIONS })?;
        *slot = region;
        self.len += 1;
        Ok(())
    }

    /// Replaces the region at the same start by a longer one, if that overlaps no other.
    pub(crate) fn extend(&mut self, longer: Region) -> Result<(), Error> {
        let start = longer.address();
        if let Some(other) = self.iter().find(|other| other.address() != start && other.overlaps(&longer)) {
            return Err(Error::RegionOverlaps { address: start, other: other.address() });
        }
        let slot = self.slots.iter_mut().find(|slot| slot.payloads > 0 && slot.address() == start);
        *slot.ok_or(Error::NoSuchRegion { address: start })? = longer;
        Ok(())
    }

    /// Forgets the region that starts at `address`.
    pub(crate) fn remove(&mut self, address: usize) {
        let Some(last) = self.len.checked_sub(1) else { return };
        let Some(moved) = self.slots.get(last).copied() else { return };
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.payloads > 0 && slot.address() == address) {
            *slot = moved;
            self.len = last;
            if let Some(slot) = self.slots.get_mut(last) {
                *slot = Region::EMPTY;
            }
        }
    }

    /// The region that starts at `address`.
    pub(crate) fn starting_at(&self, address: usize) -> Result<Region, Error> {
        self.iter().find(|region| region.address() == address).copied().ok_or(Error::NoSuchRegion { address })
    }

    /// The block whose header would be at `address`, if that is possible anywhere.
    #[inline(always)]
    pub(crate) fn locate(&self, address: usize) -> Option<Located> {
        for region in &self.slots {
            let room_before = address.wrapping_sub(region.payload_address);
            if granules(room_before) < region.payloads {
                // SAFETY: that many granules further on is still inside the region.
                let header = unsafe { region.first.byte_add(room_before) }.as_ptr();
                return Some(Located { header, room_before, room: region.block_bytes - room_before });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
