//! The specification of a whole heap, as code: [`Tlsf::check`] names the first sentence that does not hold.
//!
//! Regions: headers follow one another without gap from the first to the sentinel, each sealed; sizes are multiples of 16, 32 or more;
//! a header says PREV_FREE exactly if the block before it is free; no two free blocks are neighbours; a listed block's size stands
//! at its end; a guarded block's footer is whole.
//! The top ends at the first region's sentinel, and the headers of both say so.
//! Lists: every block in list *i* is free, lies in a region, and has a size that belongs to *i*; links go both ways; as many blocks are
//! listed as are free, less the top; a bit is set exactly if its list is not empty.
//!
//! Cost: linear in blocks and lists.
//!
//! # Safety
//! Links are followed only to places inside a region where a header may be.
#![allow(unsafe_code)]

use crate::block::{Block, Header, LEAST_BLOCK_BYTES, PREV_FREE, Previous};
use crate::error::Error;
use crate::footer;
use crate::free_list::FreeLists;
use crate::mapping::index_of;
use crate::policy::Policy;
use crate::region::Region;
use crate::tlsf::Tlsf;
use crate::walk::blame;

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Checks every invariant of every block and list.
    ///
    /// # Errors
    /// [`Error::Overrun`] or [`Error::Damaged`], naming the first block that breaks one.
    pub fn check(&self) -> Result<(), Error> {
        let mut free = 0;
        for region in self.regions.iter() {
            free += self.check_region(*region)?;
        }
        let mut listed = usize::from(self.top.bytes() > 0);
        for index in FreeLists::<FIRST, SECOND>::NUMBERS {
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
            let (block, header) = step.map_err(|broken| blame(before, broken))?;
            self.check_block(block, header, was_free)?;
            was_free = header.is_free();
            free += usize::from(was_free);
            before = Some(self.info(block, header));
        }
        // SAFETY: the walk ended at the sentinel.
        let header = unsafe { region.sentinel().header(self.sealer) };
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

    /// Checks one block against the one before it and the word behind it.
    fn check_block(&self, block: Block, header: Header, was_free: bool) -> Result<(), Error> {
        let damaged = Error::Damaged { block: block.payload_address() };
        if header.is_prev_free() != was_free {
            return Err(damaged);
        }
        if header.is_free() {
            // SAFETY: the walk checked that the block ends inside the region; a listed block has a size there.
            let has_size_at_end = || unsafe { block.after(header.size()).size_before() == header.size() };
            if was_free || !(self.top.is_at(block) || has_size_at_end()) {
                return Err(damaged);
            }
        // SAFETY: a used block of a guarded heap.
        } else if P::FOOTER && unsafe { footer::read(block, header.size(), self.sealer) }.is_none() {
            let info = self.info(block, header);
            return Err(Error::Overrun { block: info.address, bytes: info.usable_bytes });
        }
        Ok(())
    }

    /// Checks one list of at most `most` blocks; returns how many it has.
    fn check_list(&self, index: usize, most: usize) -> Result<usize, Error> {
        let (mut count, mut previous, mut link) = (0, Previous::list(index), self.lists.head(index));
        if link.is_some() != self.lists.bitmap.is_set(index) {
            return Err(Error::Damaged { block: link.map_or(0, Block::payload_address) });
        }
        while let Some(listed) = link {
            let damaged = Error::Damaged { block: listed.payload_address() };
            let block = self.regions.iter().find_map(|region| region.block_at(listed.address())).ok_or(damaged)?;
            count += 1;
            // SAFETY: the block lies in a region, with room for a header and two links.
            let (header, back, next) = unsafe { (block.header(self.sealer), block.prev_free(), block.next_free()) };
            let whole = header.is_whole() && header.is_free() && back == previous;
            let size = header.size();
            if !whole || size < LEAST_BLOCK_BYTES || index_of(size, SECOND) != index || count > most {
                return Err(damaged);
            }
            (previous, link) = (Previous::block(listed), next);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
