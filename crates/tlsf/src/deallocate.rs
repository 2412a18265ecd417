//! Deallocation: check, mark, merge with the previous block, merge with the next, insert.
//!
//! ```text
//! check   │ the address is a block's start, in use, and neither neighbour's header was overwritten
//! mark    │ | free | BLOCK | free |        BLOCK says FREE from here on, also when it ends up inside a larger block
//! merge   │ | free . BLOCK . free |        the neighbours leave their lists
//! insert  │ | ........ free ..... |        at the head of its list
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
        let Some(used) = self.used_block(block) else { return Err(self.diagnose(block.addr().get())) };
        // SAFETY: the block was just found in use, with whole neighbours.
        unsafe { self.release(used.block, used.header, used.next, used.next_header) };
        Ok(())
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
            let header = block.header();
            let next = block.after(header.size());
            self.release(block, header, next, next.header());
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
        let used = self.used_block(block).ok_or_else(|| self.diagnose(block.addr().get()))?;
        Ok(self.usable_bytes(used.block, used.header))
    }

    /// The block in use whose payload starts at `payload`, if there is one and its neighbours are whole.
    #[inline(always)]
    pub(crate) fn used_block(&self, payload: NonNull<u8>) -> Option<Used> {
        let found = self.regions.locate(payload.addr().get())?;
        let block = found.block;
        // SAFETY: the header's place is in a region of this heap; sizes are followed only inside it.
        unsafe {
            let header = block.header();
            let size = header.size();
            if !block.is_sealed(header, self.sealer) || header.is_free() || size > found.room || size == 0 {
                return None;
            }
            let next = block.after(size);
            let next_header = next.header();
            if !next.is_sealed(next_header, self.sealer) || next_header.is_prev_free() {
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
            if size > room || !size.is_multiple_of(GRANULE) {
                return false;
            }
            let previous = block.before(size);
            let header = previous.header();
            previous.is_sealed(header, self.sealer) && header.is_free() && header.size() == size
        }
    }

    /// Makes a used block free: mark, merge with previous, merge with next, insert.
    ///
    /// # Safety
    /// `block` is in use with this header, and `next` with that header follows it.
    #[inline(always)]
    pub(crate) unsafe fn release(&mut self, block: Block, header: Header, next: Block, next_header: Header) {
        // SAFETY: neighbours that say they are free are listed with the size they say.
        unsafe {
            block.set_header(header.with(FREE));
            if header.is_prev_free() {
                let before = block.size_before();
                let start = block.before(before);
                let size = before + header.size();
                if next_header.is_free() {
                    self.lists.remove(start, before);
                    self.merge_with_next(start, size, next, next_header);
                } else {
                    self.lists.replace(start, before, start, size);
                    self.finish_free(start, size, next, next_header);
                }
            } else if next_header.is_free() {
                self.merge_with_next(block, header.size(), next, next_header);
            } else {
                self.lists.insert(block, header.size());
                self.finish_free(block, header.size(), next, next_header);
            }
        }
    }

    /// Lists a free block of `size` bytes together with the free block behind it.
    ///
    /// # Safety
    /// `block` is in no list; `next` is listed, free, and follows it.
    #[inline(always)]
    unsafe fn merge_with_next(&mut self, block: Block, size: usize, next: Block, next_header: Header) {
        let absorbed = next_header.size();
        let size = size + absorbed;
        // SAFETY: as the caller says; behind a free block there is always a used one, or the sentinel.
        unsafe {
            self.lists.replace(next, absorbed, block, size);
            block.set_header(block.header().resized(size, FREE));
            next.after(absorbed).set_size_before(size);
        }
    }

    /// Writes header and trailing size of a free block whose next block is in use.
    ///
    /// # Safety
    /// `block` has `size` bytes and `next`, with that header, follows it.
    #[inline(always)]
    unsafe fn finish_free(&mut self, block: Block, size: usize, next: Block, next_header: Header) {
        // SAFETY: as the caller says.
        unsafe {
            block.set_header(block.header().resized(size, FREE));
            next.set_header(next_header.with(PREV_FREE));
            next.set_size_before(size);
        }
    }
}
