//! What a heap holds, counted on request.
//!
//! Nothing is counted while allocating: a counter would cost every call, and a walk is always right. Cost: linear in the blocks.

use crate::block_size::HEADER_BYTES;
use crate::policy::Policy;
use crate::region::REGION_OVERHEAD_BYTES;
use crate::tlsf::Tlsf;

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
}

#[cfg(test)]
mod tests;
