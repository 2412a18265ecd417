//! The heap itself: its parts, and how regions come and go.
//!
//! Which thread: one at a time (`&mut self`); see [`crate::Locked`] and [`crate::Sharded`] for more.
//!
//! # Safety
//! A region added through a slice is borrowed for as long as the heap lives; one added through a pointer is promised by the
//! caller. Nothing else is trusted.
#![allow(unsafe_code)]

use crate::block::{FREE, Header, LEAST_BLOCK_BYTES, PREV_FREE, Sealer};
use crate::error::Error;
use crate::free_list::FreeLists;
use crate::mapping::size_limit;
use crate::policy::{Policy, Standard};
use crate::region::{REGION_OVERHEAD_BYTES, Region, Regions};
use crate::top::Top;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Tells one heap's seals from another's, also when they live in the same memory one after the other.
static HEAPS: AtomicUsize = AtomicUsize::new(1);

/// An O(1) heap over regions of memory it is given.
///
/// `FIRST` powers of two from 32 bytes up, each cut into `SECOND` lists; at most `REGIONS` regions. The control structure
/// takes about `FIRST * SECOND` words. With the defaults a region may have up to 1 TiB, and the structure takes 9.3 KiB; a
/// heap of up to 1 MiB does with `FIRST = 15`, in 4.1 KiB.
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
/// // SAFETY: the block is used from here on by nobody.
/// unsafe { heap.deallocate(block)? };
/// assert_eq!(heap.stats().used_blocks, 0);
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
pub struct Tlsf<'pool, P = Standard, const FIRST: usize = 35, const SECOND: usize = 32, const REGIONS: usize = 4> {
    pub(crate) sealer: Sealer,
    /// As `sealer`, of headers of free blocks: decoded by it, a whole one is its size and nothing else.
    pub(crate) free_sealer: Sealer,
    /// Whether the sealer was made: at the first region, so that `new` can be `const`.
    is_sealing: bool,
    pub(crate) regions: Regions<REGIONS>,
    pub(crate) top: Top,
    pub(crate) lists: FreeLists<FIRST, SECOND>,
    memory: PhantomData<&'pool mut [MaybeUninit<u8>]>,
    policy: PhantomData<P>,
}

// SAFETY: the heap has the only access to its regions, and nothing in it belongs to a thread.
unsafe impl<P, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Send
    for Tlsf<'_, P, FIRST, SECOND, REGIONS>
{
}

impl Tlsf<'_> {
    /// A heap without memory, with the default levels and policy.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<'pool, P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize>
    Tlsf<'pool, P, FIRST, SECOND, REGIONS>
{
    /// The longest region this type of heap accepts.
    pub const MOST_REGION_BYTES: usize = size_limit(FIRST);

    /// A heap without memory, with the levels and the policy of its type.
    ///
    /// ```
    /// use freestone_tlsf::{Guarded, Tlsf};
    /// let heap = Tlsf::<Guarded, 15, 16, 1>::with_policy();
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

    /// Makes the blocks of `region` available. It must start at a multiple of 16 and have a length that is one.
    ///
    /// # Errors
    /// A region misaligned, too small, too large, or one too many.
    pub fn add_region(&mut self, region: &'pool mut [MaybeUninit<u8>]) -> Result<(), Error> {
        let bytes = region.len();
        let start = NonNull::from(region).cast();
        // SAFETY: the exclusive borrow outlives the heap.
        unsafe { self.add_region_at(start, bytes) }
    }

    /// Makes the `bytes` at `start` available: for memory that is no Rust slice, or that will grow.
    ///
    /// # Errors
    /// As [`Tlsf::add_region`], and a region that overlaps one the heap has.
    ///
    /// # Safety
    /// - The memory is valid for reads and writes for `'pool`, and nothing else touches it until it is removed.
    /// - If it is later grown with [`Tlsf::append`], `start` may also access the bytes it grows by.
    pub unsafe fn add_region_at(&mut self, start: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        let region = Region::new(start, bytes, Self::MOST_REGION_BYTES)?;
        self.regions.add(region)?;
        if !self.is_sealing {
            self.sealer = Sealer::new(HEAPS.fetch_add(1, Ordering::Relaxed));
            self.free_sealer = self.sealer.of_free();
            self.is_sealing = true;
        }
        let (first, sentinel, size) = (region.first(), region.sentinel(), bytes - REGION_OVERHEAD_BYTES);
        // SAFETY: first block and sentinel lie in the region just added.
        unsafe {
            if self.top.is_none() {
                self.top = Top::of(region, self.sealer);
                return Ok(());
            }
            first.set_header(Header::new(size, FREE), self.sealer);
            sentinel.set_header(Header::new(0, PREV_FREE), self.sealer);
            sentinel.set_size_before(size);
            self.lists.insert(first, size);
        }
        Ok(())
    }

    /// Makes the `bytes` directly behind the region that starts at `start` part of it. A free last block grows with it.
    ///
    /// # Errors
    /// No region starts there; the growth is not a multiple of 16 or below 32; the longer region would overlap another or be
    /// too large.
    ///
    /// # Safety
    /// - The memory behind the region is valid for reads and writes for `'pool`, and nothing else touches it.
    /// - The pointer with which the region was added may access it.
    pub unsafe fn append(&mut self, start: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        let old = self.regions.starting_at(start.addr().get())?;
        if bytes < LEAST_BLOCK_BYTES {
            return Err(Error::RegionTooSmall { bytes, least: LEAST_BLOCK_BYTES });
        }
        let (block, most) = (old.sentinel(), Self::MOST_REGION_BYTES);
        let total = old.bytes().checked_add(bytes).ok_or(Error::RegionTooLarge { bytes, most })?;
        let new = Region::new(old.start(), total, most)?;
        self.regions.extend(new)?;
        let sentinel = new.sentinel();
        // SAFETY: the old sentinel is a used block of no size, and becomes one of `bytes`; both ends lie in the region.
        unsafe {
            if self.top.ends_at(block) {
                self.top.grow(bytes, sentinel, self.sealer);
                return Ok(());
            }
            let (used, end) = (block.header(self.sealer).used(bytes), Header::new(0, 0));
            sentinel.set_header(end, self.sealer);
            self.release(block, used, sentinel, end);
        }
        Ok(())
    }

    /// Gives the region that starts at `start` back, if no block in it is used.
    ///
    /// # Errors
    /// No region starts there; a block in it is in use, or damaged.
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
        // SAFETY: the region is one free block, which is listed or the top; its memory is still the heap's.
        unsafe {
            if self.top.is_at(first) {
                self.top = Top::NONE;
            } else {
                self.lists.remove(first);
            }
            first.unseal();
            region.sentinel().unseal();
        }
        self.regions.remove(region);
        Ok(())
    }

    /// Bytes of all regions together.
    #[must_use]
    pub fn region_bytes(&self) -> usize {
        self.regions.iter().map(Region::bytes).sum()
    }

    /// Whether `address` lies in memory this heap was given.
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
