//! The heap: its parts, and the regions it is given.
//!
//! Threads: one at a time (`&mut self`); [`Locked`](crate::Locked) and [`Sharded`](crate::Sharded) are for more.
//!
//! # Safety
//! A region that is added as a slice is borrowed for as long as the heap lives. For one that is added as a pointer, the caller promises
//! that the heap has exclusive access.
#![allow(unsafe_code)]

use crate::block::Used;
use crate::block_size::LEAST_BLOCK_BYTES;
use crate::error::Error;
use crate::free_list::FreeLists;
use crate::header::{FREE, Header, PREV_FREE, Sealer};
use crate::mapping::size_limit;
use crate::policy::{Policy, Standard};
use crate::region::{REGION_OVERHEAD_BYTES, Region, Regions};
use crate::top::Top;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Counts the heaps of the process, so that their seals differ, also when they use the same memory one after the other.
static HEAPS: AtomicUsize = AtomicUsize::new(1);

/// The number of the next heap.
fn next_number() -> usize {
    #[cfg(target_has_atomic = "ptr")]
    return HEAPS.fetch_add(1, Ordering::Relaxed);
    // Two heaps whose first regions an interrupt adds at the same time have one number: each takes the other's blocks for its own.
    #[cfg(not(target_has_atomic = "ptr"))]
    {
        let number = HEAPS.load(Ordering::Relaxed);
        HEAPS.store(number.wrapping_add(1), Ordering::Relaxed);
        number
    }
}

/// A heap over regions of memory that it is given, with bounded time for allocating and freeing; the crate's documentation names the exceptions.
///
/// The parameters choose its limits:
/// - `P`, a [`Policy`]: [`Standard`], [`WithFooters`](crate::WithFooters) or [`Bounded`](crate::Bounded).
/// - `FIRST`: the number of powers of two, from 32 bytes up, that have lists of their own. A region is at most 32 bytes × 2^`FIRST` long
///   ([`Tlsf::MOST_REGION_BYTES`]).
/// - `SECOND`: the number of lists for each power of two: 2, 4, 8, 16 or 32.
/// - `REGIONS`: the number of regions that the heap can have at once.
///
/// The control structure takes about `FIRST * SECOND` words. With the defaults a region may have up to 1 TiB, and the structure takes
/// 9.3 KiB; for a heap of up to 1 MiB `FIRST = 15` is enough, with 4.1 KiB.
///
/// ```
/// use core::mem::MaybeUninit;
/// use freestone_tlsf::Tlsf;
///
/// #[repr(align(16))]
/// struct Memory([MaybeUninit<u8>; 4096]);
/// let mut memory = Memory([MaybeUninit::uninit(); 4096]);
///
/// let mut heap = Tlsf::new();
/// heap.add_region(&mut memory.0)?;
/// let block = heap.allocate(100, 16)?;
/// // SAFETY: nothing uses the block any more.
/// unsafe { heap.deallocate(block)? };
/// assert_eq!(heap.stats().used_blocks, 0);
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
pub struct Tlsf<'pool, P = Standard, const FIRST: usize = 35, const SECOND: usize = 32, const REGIONS: usize = 4> {
    pub(crate) sealer: Sealer,
    /// Decodes the header of a free block to its size and nothing else.
    pub(crate) free_sealer: Sealer,
    /// Whether the sealer was chosen. That happens when the first region is added, so that `new` can be `const`.
    is_sealing: bool,
    pub(crate) regions: Regions<REGIONS>,
    pub(crate) top: Top,
    pub(crate) lists: FreeLists<FIRST, SECOND>,
    memory: PhantomData<&'pool mut [MaybeUninit<u8>]>,
    policy: PhantomData<P>,
}

// SAFETY: the heap has exclusive access to its regions, and nothing in it depends on the thread.
unsafe impl<P, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Send
    for Tlsf<'_, P, FIRST, SECOND, REGIONS>
{
}

impl Tlsf<'_> {
    /// A heap without memory, with the default levels and policy.
    ///
    /// ```
    /// let heap = freestone_tlsf::Tlsf::new();
    /// assert_eq!(heap.region_bytes(), 0);
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<'pool, P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize>
    Tlsf<'pool, P, FIRST, SECOND, REGIONS>
{
    /// The length in bytes of the longest region that this type of heap accepts.
    ///
    /// ```
    /// use freestone_tlsf::{Standard, Tlsf};
    ///
    /// assert_eq!(Tlsf::<Standard, 15>::MOST_REGION_BYTES, 1 << 20);
    /// ```
    pub const MOST_REGION_BYTES: usize = size_limit(FIRST);

    /// A heap without memory, with the levels and the policy of its type.
    ///
    /// ```
    /// use freestone_tlsf::{Tlsf, WithFooters};
    /// let heap = Tlsf::<WithFooters, 15, 16, 1>::with_policy();
    /// ```
    #[must_use]
    pub const fn with_policy() -> Self {
        Self {
            sealer: Sealer::NONE,
            free_sealer: Sealer::NONE,
            is_sealing: false,
            regions: Regions::new(),
            top: Top::NONE,
            lists: FreeLists::new(),
            memory: PhantomData,
            policy: PhantomData,
        }
    }

    /// Adds the memory of `region`. It must start at a multiple of 16, and its length in bytes must be one.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// let mut heap = freestone_tlsf::Tlsf::new();
    /// heap.add_region(&mut memory.0)?;
    /// assert_eq!(heap.region_bytes(), 4096);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::RegionMisaligned`], [`Error::RegionTooSmall`] (below [`LEAST_REGION_BYTES`](crate::LEAST_REGION_BYTES)),
    /// [`Error::RegionTooLarge`] (above [`Tlsf::MOST_REGION_BYTES`]), [`Error::RegionTooLow`] (at an address below
    /// [`LEAST_REGION_ADDRESS`](crate::LEAST_REGION_ADDRESS)), [`Error::TooManyRegions`].
    pub fn add_region(&mut self, region: &'pool mut [MaybeUninit<u8>]) -> Result<(), Error> {
        let bytes = region.len();
        let start = NonNull::from(region).cast();
        // SAFETY: the slice is borrowed exclusively, for longer than the heap lives.
        unsafe { self.add_region_at(start, bytes) }
    }

    /// Adds the `bytes` bytes at `start`: for memory that is no Rust slice, or that will grow.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use core::ptr::NonNull;
    ///
    /// let mut heap = freestone_tlsf::Tlsf::new();
    /// // SAFETY: only the heap uses the memory.
    /// unsafe { heap.add_region_at(NonNull::from(&mut memory.0).cast(), 4096)? };
    /// assert!(heap.allocate(1000, 16).is_ok());
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tlsf::add_region`]; [`Error::RegionOverlaps`] if the heap has some of the memory already.
    ///
    /// # Safety
    /// - The memory is valid for reads and writes for `'pool`, and nothing else accesses it until it is removed, except the owners of
    ///   blocks.
    /// - If the region is later grown with [`Tlsf::grow_region`], `start` may also access the bytes it grows by.
    pub unsafe fn add_region_at(&mut self, start: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        // SAFETY: the memory is valid and the heap's alone until it is removed: this function's contract.
        let region = unsafe { Region::new(start, bytes, Self::MOST_REGION_BYTES) }?;
        self.regions.add(region)?;
        if !self.is_sealing {
            self.sealer = Sealer::new(next_number()).unlike(&FreeLists::<FIRST, SECOND>::NUMBERS);
            self.free_sealer = self.sealer.of_free();
            self.is_sealing = true;
        }
        if self.top.is_none() {
            self.top = Top::of(region, self.sealer);
            return Ok(());
        }
        let (first, sentinel, size) = (region.first(), region.sentinel(), bytes - REGION_OVERHEAD_BYTES);
        first.set_header(Header::new(size, FREE), self.sealer);
        sentinel.set_header(Header::new(0, PREV_FREE), self.sealer);
        sentinel.set_size_before(size);
        // SAFETY: the block is free, fills the region, and is in no list.
        unsafe { self.lists.insert(first, size) };
        Ok(())
    }

    /// Extends the region that starts at `start` by the `bytes` bytes directly behind it. A free block at its end grows.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use core::ptr::NonNull;
    ///
    /// let start = NonNull::from(&mut memory.0).cast();
    /// let mut heap = freestone_tlsf::Tlsf::new();
    /// // SAFETY: only the heap uses the memory; `start` may access all of it.
    /// unsafe {
    ///     heap.add_region_at(start, 1024)?;
    ///     heap.grow_region(start, 3072)?;
    /// }
    /// assert_eq!(heap.region_bytes(), 4096);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchRegion`]; [`Error::RegionMisaligned`] (`bytes` is not a multiple of 16), [`Error::RegionTooSmall`] (below
    /// [`LEAST_BLOCK_BYTES`]); [`Error::RegionOverlaps`], [`Error::RegionTooLarge`], of the longer region; [`Error::Overrun`],
    /// [`Error::Damaged`] if the region's end was overwritten.
    ///
    /// # Safety
    /// - The memory behind the region is valid for reads and writes for `'pool`, and nothing else accesses it until the region is removed.
    /// - The pointer with which the region was added may access that memory.
    pub unsafe fn grow_region(&mut self, start: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        let old = self.regions.starting_at(start.addr().get())?;
        if bytes < LEAST_BLOCK_BYTES {
            return Err(Error::RegionTooSmall { bytes, least: LEAST_BLOCK_BYTES });
        }
        let (block, most) = (old.sentinel(), Self::MOST_REGION_BYTES);
        let total = old.bytes().checked_add(bytes).ok_or(Error::RegionTooLarge { bytes, most })?;
        // SAFETY: the old region and the memory behind it are the heap's, through the pointer that the old region has.
        let new = unsafe { Region::new(old.start(), total, most) }?;
        if !self.has_intact_end(old) {
            return Err(self.diagnose_end(old));
        }
        self.regions.extend(new)?;
        let sentinel = new.sentinel();
        if self.top.ends_at(block) {
            self.top.extend_up_to(bytes, sentinel, self.sealer);
            return Ok(());
        }
        let (header, next_header) = (block.header(self.sealer).used(bytes), Header::new(0, 0));
        sentinel.set_header(next_header, self.sealer);
        // SAFETY: the old sentinel, a used block of size 0, becomes one of `bytes` bytes that no code uses; the new sentinel follows it.
        unsafe { self.release_by_call(Used { block, header, next: sentinel, next_header }) };
        Ok(())
    }

    /// Removes the region that starts at `start`, if no block in it is in use. Its memory is the caller's again.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use core::ptr::NonNull;
    ///
    /// let start = NonNull::from(&mut memory.0).cast();
    /// let mut heap = freestone_tlsf::Tlsf::new();
    /// // SAFETY: only the heap uses the memory.
    /// unsafe { heap.add_region_at(start, 4096)? };
    /// heap.remove_region(start)?;
    /// assert_eq!(heap.region_bytes(), 0);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchRegion`]; [`Error::RegionInUse`], which names a block; [`Error::Damaged`] if a header in it was overwritten.
    pub fn remove_region(&mut self, start: NonNull<u8>) -> Result<(), Error> {
        let region = self.regions.starting_at(start.addr().get())?;
        let (first, whole) = (region.first(), region.bytes() - REGION_OVERHEAD_BYTES);
        let damaged = Error::Damaged { block: first.payload_address() };
        let Some(Ok((_, header))) = self.walk(region).next() else { return Err(damaged) };
        if !header.is_free() || header.size() != whole {
            return Err(match self.blocks_of(region).find(|block| block.used) {
                Some(block) => Error::RegionInUse { block: block.address, bytes: block.usable_bytes },
                None => damaged,
            });
        }
        if self.top.is_at(first) {
            self.top = Top::NONE;
        } else {
            // SAFETY: the region is one free block, and that is not the top, so it is in a list.
            unsafe { self.lists.remove(first) };
        }
        first.unseal();
        region.sentinel().unseal();
        self.regions.remove(region);
        Ok(())
    }

    /// Whether `address` lies in a region of this heap.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// assert!(heap.contains(block.addr().get()));
    /// assert!(!heap.contains(8));
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    #[must_use]
    pub fn contains(&self, address: usize) -> bool {
        self.regions.iter().any(|region| region.contains(address))
    }
}

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Default
    for Tlsf<'_, P, FIRST, SECOND, REGIONS>
{
    fn default() -> Self {
        Self::with_policy()
    }
}

#[cfg(test)]
mod tests;
