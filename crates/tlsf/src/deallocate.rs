//! Deallocation: check, mark, merge with the previous block, merge with the next, insert.
//!
//! ```text
//! check   │ the address is a block's start, in use, and neither neighbour's header was overwritten
//! mark    │ | free | BLOCK | free |        BLOCK says FREE from here on; if it merges with the previous, its seal is wiped
//! merge   │ | free . BLOCK . free |        the neighbours leave their lists
//! insert  │ | ........ free ..... |        at the head of its list; beside the top: part of it, in no list
//! ```
//!
//! Cost: bounded; checking is a fifth of it. `_unchecked` leaves that out.
//!
//! # Safety
//! An address is turned into a block only if a region of this heap contains it, with the region's own pointer; sizes
//! are followed only when they stay inside the region and the header they lead to has its seal.
#![allow(unsafe_code)]

use crate::block::{Block, FREE, Header, PREV_FREE};
use crate::error::Error;
use crate::footer;
use crate::mapping::GRANULE;
use crate::policy::Policy;
use crate::region::Located;
use crate::tlsf::Tlsf;
use core::ptr::NonNull;

/// A used block whose surroundings were found whole.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    pub(crate) block: Block,
    pub(crate) header: Header,
    pub(crate) next: Block,
    pub(crate) next_header: Header,
}

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Takes a block back. It merges with free neighbours at once.
    ///
    /// # Errors
    /// The address is in no region of this heap, inside a block, in free memory (a double free), or in a block that was
    /// written past; the error names the block. The heap is as it was. (A check can be fooled by memory forged to look like
    /// headers; chance does it once in 2^30.)
    ///
    /// # Safety
    /// - Nothing uses the block afterwards.
    /// - If the address is not that of a block in use but lies in a region, the bytes around it are initialised (they are, in any
    ///   block that was written).
    ///
    /// # Complexity
    /// O(1). Only the diagnosis of an error walks the region.
    #[inline]
    pub unsafe fn deallocate(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        let mut address = block.addr().get();
        if let Some(found) = self.regions.locate(address) {
            if let Some(used) = self.used_at(found) {
                // SAFETY: the block was just found in use, with whole neighbours.
                unsafe { self.release(used.block, used.header, used.next, used.next_header) };
                return Ok(());
            }
            // The same address: so that nobody has to keep it until here.
            address = found.block.payload_address();
        }
        Err(Self::diagnose(address, self))
    }

    /// As [`Tlsf::deallocate`], without any check, footers included.
    ///
    /// # Safety
    /// - The block is one that this heap gave out and has not taken back, through the pointer it gave out or a copy of it (not
    ///   one that came from a reference or a `Box`), and nothing uses it afterwards.
    /// - Nothing wrote outside of any block.
    #[inline]
    pub unsafe fn deallocate_unchecked(&mut self, block: NonNull<u8>) {
        // SAFETY: all headers are whole, says the caller.
        unsafe {
            let block = Block::of_payload(block);
            let header = block.header(self.sealer);
            let next = block.after(header.size());
            self.release(block, header, next, next.header(self.sealer));
        }
    }

    /// Bytes that may be used at `block`: what was asked for, rounded up (in a [`crate::Guarded`] heap, exactly what was asked for).
    ///
    /// # Errors
    /// As [`Tlsf::deallocate`].
    ///
    /// # Safety
    /// As the second line of [`Tlsf::deallocate`].
    pub unsafe fn usable_size(&self, block: NonNull<u8>) -> Result<usize, Error> {
        let used = self.used_block(block).ok_or_else(|| Self::diagnose(block.addr().get(), self))?;
        Ok(self.usable_bytes(used.block, used.header))
    }

    /// The block in use whose payload starts at `payload`, if there is one and its neighbours are whole.
    #[inline(always)]
    pub(crate) fn used_block(&self, payload: NonNull<u8>) -> Option<Used> {
        self.used_at(self.regions.locate(payload.addr().get())?)
    }

    /// The block in use at a place where one may be, if there is one and its neighbours are whole.
    #[inline(always)]
    fn used_at(&self, found: Located) -> Option<Used> {
        let block = found.block;
        // SAFETY: the header's place is in a region of this heap; sizes are followed only inside it.
        unsafe {
            let header = block.header(self.sealer);
            let size = header.size();
            let next = block.wrapping_after(size);
            // A size of 32 bits may lead past the last address.
            let in_region = next.addr() <= found.end && (usize::BITS == 64 || next.addr() >= block.address());
            if !header.is_whole_without(FREE) || !in_region {
                return None;
            }
            let next = Block::at(NonNull::new_unchecked(next));
            let next_header = next.header(self.sealer);
            if !next_header.is_whole_without(PREV_FREE) {
                return None;
            }
            if header.is_prev_free() && !self.is_free_before(block, found.room_before) {
                return None;
            }
            if P::FOOTER && footer::read(block, size, self.sealer).is_none() {
                return None;
            }
            Some(Used { block, header, next, next_header })
        }
    }

    /// Whether a whole free block ends where `block` begins, within `room` bytes.
    #[inline(always)]
    unsafe fn is_free_before(&self, block: Block, room: usize) -> bool {
        // SAFETY: the word in front of the header is in the region; the size in it is followed only inside the region.
        unsafe {
            let size = block.size_before();
            size <= room
                && size.is_multiple_of(GRANULE)
                && block.before(size).has_header(Header::new(size, FREE), self.sealer)
        }
    }

    /// Makes a used block free: mark, merge with previous, merge with next, insert.
    ///
    /// # Safety
    /// `block` is in use with this header, and `next` with that header follows it.
    #[inline(always)]
    pub(crate) unsafe fn release(&mut self, block: Block, header: Header, next: Block, next_header: Header) {
        // Read once, or the compiler would read it again behind every write; and not where the headers were decoded, or it would keep
        // each of them as it was read, too, in two registers more than there are without a frame.
        // SAFETY: a field of this heap.
        let sealer = unsafe { core::ptr::read_volatile(&raw const self.sealer) };
        // SAFETY: neighbours that say they are free are listed with the size they say, and one that says 0 is the top; behind a free
        // block there is a used one, or the sentinel.
        unsafe {
            if header.is_prev_free() {
                block.unseal();
                let before = block.size_before();
                let start = block.before(before);
                if next_header.is_free() {
                    let behind = next_header.size();
                    if behind == 0 {
                        debug_assert!(self.top.is_at(next));
                        self.lists.remove(start);
                        return self.top.take_in(start, sealer);
                    }
                    let both = header.longer(before).joined(next_header);
                    start.set_header(both.without(PREV_FREE), sealer);
                    next.after(behind).set_size_before(both.size());
                    self.lists.remove(next);
                    self.lists.remove(start);
                    self.lists.insert(start, both.size());
                } else {
                    let both = header.longer(before);
                    start.set_header(both.with(FREE).without(PREV_FREE), sealer);
                    next.set_size_before(both.size());
                    next.set_header(next_header.with(PREV_FREE), sealer);
                    self.lists.remove(start);
                    self.lists.insert(start, both.size());
                }
            } else if next_header.is_free() {
                let behind = next_header.size();
                if behind == 0 {
                    debug_assert!(self.top.is_at(next));
                    return self.top.take_in(block, sealer);
                }
                let both = header.joined(next_header);
                block.set_header(both, sealer);
                next.after(behind).set_size_before(both.size());
                self.lists.remove(next);
                self.lists.insert(block, both.size());
            } else {
                block.set_header(header.with(FREE), sealer);
                next.set_size_before(header.size());
                next.set_header(next_header.with(PREV_FREE), sealer);
                self.lists.insert(block, header.size());
            }
        }
    }
}
