//! The regions of a heap: the memory that it may touch.
//!
//! ```text
//!  start                                             start + bytes
//!  | 8 unused | header | payload ... | header ... | sentinel (size 0, used) |
//!  0          8        16                          bytes - 8
//! ```
//!
//! Invariants: regions start at multiples of 16 from [`LEAST_REGION_ADDRESS`] on, have lengths that are multiples of 16, and share no byte; the slots in use
//! come first, in the order of their addresses, and an empty slot has the greatest address there is. Every access to a block goes
//! through a pointer derived from its region's start, never through the pointer that the user hands back, so that the user's own
//! references to the block (a `Box`, a `&mut`) stay valid.
//! Cost: a binary search finds a block's region: four instructions for each doubling of the number of regions.
//!
//! # Safety
//! The code that makes a [`Region`] ensures that only the heap uses its memory until the region is removed. That makes its first header and
//! its sentinel [`Block`]s.
#![allow(unsafe_code)]

use crate::block::{BackLink, Block};
use crate::block_size::{GRANULE, HEADER_BYTES, LEAST_BLOCK_BYTES};
use crate::error::Error;
use core::ptr::NonNull;
use freestone_base::branch::cold_path;

/// Bytes of a region that are not in any block: the unused front, and the sentinel.
pub(crate) const REGION_OVERHEAD_BYTES: usize = 2 * HEADER_BYTES;

/// Bytes of the shortest region: room for one block.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// use freestone_tlsf::{LEAST_REGION_BYTES, Tlsf};
///
/// assert!(Tlsf::new().add_region(&mut memory.0[..LEAST_REGION_BYTES - 16]).is_err());
/// let mut heap = Tlsf::new();
/// heap.add_region(&mut memory.0[..LEAST_REGION_BYTES])?;
/// assert!(heap.allocate(1, 16).is_ok());
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
pub const LEAST_REGION_BYTES: usize = REGION_OVERHEAD_BYTES + LEAST_BLOCK_BYTES;

/// The lowest address at which a region may begin. Smaller numbers stand for lists where a free block has the address of another.
///
/// Operating systems place no memory below it. On x86-64 it is 64 KiB, elsewhere 2 KiB.
///
/// ```
/// use core::ptr::{NonNull, without_provenance_mut};
/// use freestone_tlsf::{Error, LEAST_REGION_ADDRESS, Tlsf};
///
/// let address = LEAST_REGION_ADDRESS - 16;
/// let start = NonNull::new(without_provenance_mut(address)).expect("not null");
/// // SAFETY: a region at this address is refused before the memory is touched.
/// let refused = unsafe { Tlsf::new().add_region_at(start, 4096) };
/// assert_eq!(refused, Err(Error::RegionTooLow { address, least: LEAST_REGION_ADDRESS }));
/// ```
pub const LEAST_REGION_ADDRESS: usize = BackLink::LISTS;

/// Memory that a heap was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    /// The first header.
    first: NonNull<u8>,
    /// Address of the first payload.
    payload_address: usize,
    /// Address of the sentinel.
    end: usize,
    /// Bytes, from the first payload on, in which a payload can start; 0 in an empty slot.
    payload_bytes: usize,
}

/// The place of a possible block, found by the address of its payload.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    /// The header of the block, if there is one.
    pub(crate) header: NonNull<u8>,
    /// Bytes from the region's first header to this one.
    pub(crate) room_before: usize,
    /// Address of the region's sentinel.
    pub(crate) end: usize,
}

impl Region {
    const EMPTY: Self = Self { first: NonNull::dangling(), payload_address: usize::MAX, end: 0, payload_bytes: 0 };

    /// The region of `bytes` bytes at `start`; `most` is the longest that the heap accepts.
    ///
    /// # Safety
    /// - The memory is valid for reads and writes, and the heap's alone until the region is removed from it, unless this fails.
    pub(crate) unsafe fn new(start: NonNull<u8>, bytes: usize, most: usize) -> Result<Self, Error> {
        let address = start.addr().get();
        if address % GRANULE != 0 || bytes % GRANULE != 0 {
            return Err(Error::RegionMisaligned { address, bytes });
        }
        if bytes < LEAST_REGION_BYTES {
            return Err(Error::RegionTooSmall { bytes, least: LEAST_REGION_BYTES });
        }
        if address < LEAST_REGION_ADDRESS {
            return Err(Error::RegionTooLow { address, least: LEAST_REGION_ADDRESS });
        }
        if bytes > most || address.checked_add(bytes).is_none() {
            return Err(Error::RegionTooLarge { bytes, most });
        }
        Ok(Self {
            // SAFETY: the memory has `LEAST_REGION_BYTES` or more.
            first: unsafe { start.byte_add(HEADER_BYTES) },
            payload_address: address + REGION_OVERHEAD_BYTES,
            end: address + bytes - HEADER_BYTES,
            payload_bytes: bytes - LEAST_REGION_BYTES + GRANULE,
        })
    }

    /// Where it starts, with access to all of it.
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: a region starts that many bytes in front of its first header.
        unsafe { self.first.byte_sub(HEADER_BYTES) }
    }

    /// The address of its start.
    pub(crate) fn address(&self) -> usize {
        self.first.addr().get() - HEADER_BYTES
    }

    /// Bytes of all its blocks together.
    pub(crate) fn block_bytes(&self) -> usize {
        self.end - self.first.addr().get()
    }

    /// Its length in bytes.
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

    /// The first block. Its header is to be written before it is read.
    pub(crate) fn first(&self) -> Block {
        // SAFETY: the first header is a multiple of 8 and lies in the region.
        unsafe { Block::at(self.first) }
    }

    /// The header that ends the region. It is to be written before it is read.
    pub(crate) fn sentinel(&self) -> Block {
        // SAFETY: the sentinel is the region's last word.
        unsafe { self.first().after(self.block_bytes()) }
    }

    /// Whether a payload can start at `address`, if that is a multiple of the granule.
    #[inline(always)]
    fn has_payload_at(&self, address: usize) -> bool {
        address.wrapping_sub(self.payload_address) < self.payload_bytes
    }

    /// Where the header at `address` is, if `address` can be that of a header of this region, the sentinel excepted.
    pub(crate) fn header_at(&self, address: usize) -> Option<NonNull<u8>> {
        let payload = address.wrapping_add(HEADER_BYTES);
        if payload % GRANULE != 0 || !self.has_payload_at(payload) {
            return None;
        }
        // SAFETY: a payload can start 8 bytes behind `address`, so `address` is in the region, at its first header or behind it.
        Some(unsafe { self.first.byte_add(address - self.first.addr().get()) })
    }
}

/// The regions of one heap.
pub(crate) struct Regions<const REGIONS: usize> {
    slots: [Region; REGIONS],
    len: usize,
}

impl<const REGIONS: usize> Regions<REGIONS> {
    /// No region.
    pub(crate) const fn new() -> Self {
        const { assert!(REGIONS >= 1, "a heap has at least one region") }
        Self { slots: [Region::EMPTY; REGIONS], len: 0 }
    }

    /// The regions, in the order of their addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.slots.iter().take(self.len)
    }

    /// Adds `region`, if it overlaps none and there is a free slot.
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

    /// Removes `region`, which is one of these.
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

    /// The last region whose first payload is at `address` or below, or the first region if there is none. A binary search: four instructions
    /// for each doubling of `REGIONS`.
    #[inline(always)]
    fn last_at_or_below(&self, address: usize) -> &Region {
        let (mut at, mut n) = (self.slots.as_ptr(), REGIONS);
        while n > 1 {
            let half = n / 2;
            // SAFETY: `n` slots begin at `at`, and `half` is less than `n`.
            let middle = unsafe { at.add(half) };
            // SAFETY: `middle` is a slot of the table.
            if unsafe { (*middle).payload_address } <= address {
                // A branch instead of a conditional move: the next read then does not wait for the comparison.
                cold_path();
                at = middle;
            }
            n -= half;
        }
        // SAFETY: `n` is 1, and the slot at `at` is one of the table.
        unsafe { &*at }
    }

    /// The place of a block whose payload starts at `address`, if a payload can start there in any region.
    #[inline(always)]
    pub(crate) fn locate(&self, address: usize) -> Option<Located> {
        let region = self.last_at_or_below(address);
        if address % GRANULE != 0 || !region.has_payload_at(address) {
            return None;
        }
        let room_before = address - region.payload_address;
        // SAFETY: a payload can start at `address`, so its header is in the region.
        let header = unsafe { region.first.byte_add(room_before) };
        Some(Located { header, room_before, end: region.end })
    }
}

#[cfg(test)]
mod tests;
