//! What a heap holds, counted on request.
//!
//! Nothing is counted while allocating: a counter would cost every call, and a walk is always right. Cost: linear in the blocks; for the lengths of
//! regions, in the regions.

use crate::block_size::HEADER_BYTES;
use crate::error::Error;
use crate::policy::Policy;
use crate::region::{REGION_OVERHEAD_BYTES, Region};
use crate::tlsf::Tlsf;
use core::ptr::NonNull;

/// What a heap holds at one moment. `used_bytes + overhead_bytes + free_bytes == region_bytes`, unless a header was overwritten.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// # let mut heap = freestone_tlsf::Tlsf::new();
/// # heap.add_region(&mut memory.0)?;
/// let _block = heap.allocate(1000, 16)?;
/// let largest = heap.stats().largest_free_bytes;
/// assert!(heap.allocate(largest, 16).is_ok());
/// assert_eq!(heap.stats().largest_free_bytes, 0);
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of all regions.
    pub region_bytes: usize,
    /// The number of blocks in use.
    pub used_blocks: usize,
    /// Bytes that the owners of those blocks may write.
    pub used_bytes: usize,
    /// The number of free blocks.
    pub free_blocks: usize,
    /// Bytes of the free blocks, headers included.
    pub free_bytes: usize,
    /// Usable bytes of the largest free block. That many, or 8 fewer in a heap with footers, is the largest request with an alignment of 16 or less that
    /// would succeed now. With [`Bounded`](crate::Bounded), or another small [`Policy::WALK_MAX`], it may be refused: the block may be in the request's own
    /// list, behind more blocks than are tried.
    pub largest_free_bytes: usize,
    /// Bytes of the headers (and footers and slack) of used blocks, and of the regions' two ends.
    pub overhead_bytes: usize,
    /// How much of the free memory lies outside the largest free block, in thousandths: 0 when all of it is in one piece.
    pub fragmentation_permille: usize,
}

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Counts what the heap holds.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(1000, 16)?;
    /// let stats = heap.stats();
    /// assert_eq!(stats.used_blocks, 1);
    /// assert_eq!(stats.used_bytes + stats.overhead_bytes + stats.free_bytes, stats.region_bytes);
    /// # let _ = block;
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Complexity
    /// Linear in the number of blocks.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { region_bytes: self.region_bytes(), ..Stats::default() };
        for block in self.blocks() {
            if block.used {
                stats.used_blocks += 1;
                stats.used_bytes += block.usable_bytes;
                stats.overhead_bytes += block.block_bytes - block.usable_bytes;
            } else {
                stats.free_blocks += 1;
                stats.free_bytes += block.block_bytes;
                stats.largest_free_bytes = stats.largest_free_bytes.max(block.usable_bytes);
            }
        }
        stats.overhead_bytes += self.regions.iter().count() * REGION_OVERHEAD_BYTES;
        if stats.free_blocks > 0 {
            let outside = (stats.free_bytes - (stats.largest_free_bytes + HEADER_BYTES)) as u64;
            stats.fragmentation_permille = (outside * 1000).checked_div(stats.free_bytes as u64).unwrap_or(0) as usize;
        }
        stats
    }

    /// The length in bytes of all regions together.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// let mut heap = freestone_tlsf::Tlsf::new();
    /// let (front, back) = memory.0.split_at_mut(1024);
    /// heap.add_region(front)?;
    /// heap.add_region(back)?;
    /// assert_eq!(heap.region_bytes(), 4096);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    #[must_use]
    pub fn region_bytes(&self) -> usize {
        self.regions.iter().map(Region::bytes).sum()
    }

    /// The length in bytes of the region that starts at `start`.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use core::ptr::NonNull;
    /// use freestone_tlsf::{Error, Tlsf};
    ///
    /// let start: NonNull<u8> = NonNull::from(&mut memory.0).cast();
    /// let mut heap = Tlsf::new();
    /// assert_eq!(heap.bytes_of_region(start), Err(Error::NoSuchRegion { address: start.addr().get() }));
    /// // SAFETY: only the heap uses the memory.
    /// unsafe { heap.add_region_at(start, 1024)? };
    /// assert_eq!(heap.bytes_of_region(start), Ok(1024));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchRegion`].
    pub fn bytes_of_region(&self, start: NonNull<u8>) -> Result<usize, Error> {
        self.regions.starting_at(start.addr().get()).map(|region| region.bytes())
    }
}

#[cfg(test)]
mod tests;
