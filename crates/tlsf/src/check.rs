//! The specification of a heap as code: [`Tlsf::check`] reports the first invariant that does not hold.
//!
//! Regions: headers follow one another without a gap from the first to the sentinel, each with an intact seal; sizes are multiples of 16,
//! 32 or more; a header says PREV_FREE exactly if the block in front of it is free; no two free blocks are neighbours; the size of a
//! block that is in a list stands at its end; in a heap with footers each used block's footer is intact.
//! The top ends at its region's sentinel, and the headers of both are [`Header::TOP`].
//! Lists: every block in list *i* is free, lies in a region, and has a size that belongs to *i*; links agree in both directions; as many
//! blocks are in lists as are free, less the top; a bit is set exactly if its list is not empty.
//!
//! Cost: linear in blocks and lists.
//!
//! # Safety
//! A link is followed only to a place inside a region where a header can be.
#![allow(unsafe_code)]

use crate::block::{BackLink, Block};
use crate::block_size::LEAST_BLOCK_BYTES;
use crate::error::Error;
use crate::footer;
use crate::free_list::FreeLists;
use crate::header::{Header, PREV_FREE};
use crate::mapping::{ListIndex, index_of};
use crate::policy::Policy;
use crate::region::Region;
use crate::tlsf::Tlsf;
use crate::walk::overrun_into;

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Checks every invariant of every block and list.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: for the example: the header of the next block is overwritten, 100 bytes and rounding behind the block's start.
    /// unsafe { block.add(104).write_bytes(0, 8) };
    /// assert!(matches!(heap.check(), Err(freestone_tlsf::Error::Overrun { .. })));
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Overrun`] or [`Error::Damaged`], with the first block that breaks one.
    ///
    /// # Complexity
    /// Linear in the number of blocks and lists.
    pub fn check(&self) -> Result<(), Error> {
        let mut free = 0;
        for region in self.regions.iter() {
            free += self.check_region(*region)?;
        }
        let mut listed = usize::from(self.top.bytes() > 0);
        for index in FreeLists::<FIRST, SECOND>::NUMBERS.map(ListIndex::of_number) {
            listed += self.check_list(index, free)?;
        }
        if listed != free || !self.lists.bitmap.is_consistent() {
            let first = self.blocks().find(|block| !block.used).map_or(0, |block| block.address);
            return Err(Error::Damaged { block: first });
        }
        Ok(())
    }

    /// Checks the blocks of one region; returns how many are free.
    fn check_region(&self, region: Region) -> Result<usize, Error> {
        let (mut free, mut before, mut was_free) = (0, None, false);
        for step in self.walk(region) {
            let (block, header) = step.map_err(|broken| overrun_into(broken, before))?;
            self.check_block(block, header, was_free)?;
            was_free = header.is_free();
            free += usize::from(was_free);
            before = Some(self.info(block, header));
        }
        let header = region.sentinel().header(self.sealer);
        let expected = match (self.top.ends_at(region.sentinel()), was_free) {
            (true, _) => Header::TOP,
            (false, true) => Header::new(0, PREV_FREE),
            (false, false) => Header::new(0, 0),
        };
        if header != expected {
            return Err(Error::Damaged { block: region.sentinel().payload_address() });
        }
        Ok(free)
    }

    /// Checks one block against the block in front of it, which is free if `was_free`, and against the word at its end.
    fn check_block(&self, block: Block, header: Header, was_free: bool) -> Result<(), Error> {
        let damaged = Error::Damaged { block: block.payload_address() };
        if header.is_prev_free() != was_free {
            return Err(damaged);
        }
        if header.is_free() {
            if was_free || !(self.top.is_at(block) || has_size_at_end(block, header.size())) {
                return Err(damaged);
            }
        // SAFETY: the walk found the block used, with this size; a heap with footers wrote one for each block.
        } else if P::FOOTER && unsafe { footer::read(block, header.size(), self.sealer) }.is_none() {
            let info = self.info(block, header);
            return Err(Error::Overrun { block: info.address, bytes: info.usable_bytes });
        }
        Ok(())
    }

    /// Checks one list, which can have at most `most` blocks; returns how many it has.
    fn check_list(&self, index: ListIndex, most: usize) -> Result<usize, Error> {
        let (mut count, mut previous, mut link) = (0, BackLink::list(index), self.lists.head(index));
        if link.is_some() != self.lists.bitmap.is_set(index) {
            return Err(Error::Damaged { block: link.map_or(0, Block::payload_address) });
        }
        while let Some(linked) = link {
            let damaged = Error::Damaged { block: linked.payload_address() };
            let header = self.regions.iter().find_map(|region| region.header_at(linked.address())).ok_or(damaged)?;
            // SAFETY: the header is in a region of this heap, at a place where one can be; the heap, or the code that overwrote the link,
            // wrote to memory there.
            let block = unsafe { Block::at(header) };
            let header = block.header(self.sealer);
            let size = header.size();
            if !header.is_intact() || !header.is_free() || size < LEAST_BLOCK_BYTES || index_of(size, SECOND) != index {
                return Err(damaged);
            }
            count += 1;
            // SAFETY: an intact header says that the block is free, so its links were written when it entered a list.
            if count > most || unsafe { block.back_link() } != previous {
                return Err(damaged);
            }
            previous = BackLink::block(linked);
            // SAFETY: the block is free, as above.
            link = unsafe { block.next_free() };
        }
        Ok(count)
    }
}

/// Whether `size`, which is that of a free block that ends inside its region, stands at the block's end.
fn has_size_at_end(block: Block, size: usize) -> bool {
    // SAFETY: the walk checked that the block ends at a header inside the region.
    let next = unsafe { block.after(size) };
    // SAFETY: a free block in a list has its size in the word in front of the next header.
    unsafe { next.size_before() == size }
}

#[cfg(test)]
mod tests;
