//! Reallocation: shrink in place, grow in place, and only then move.
//!
//! Cost: O(1) in place; a move copies.
//!
//! # Safety
//! As `deallocate.rs`: the block and its neighbours are checked before anything is followed.
#![allow(unsafe_code)]

use crate::block::{Block, HEADER_BYTES, Header, LEAST_BLOCK_BYTES, PREV_FREE};
use crate::deallocate::Used;
use crate::error::Error;
use crate::footer;
use crate::policy::Policy;
use crate::tlsf::Tlsf;
use core::ptr::NonNull;

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Makes `block` one of at least `bytes` bytes at a multiple of `align`, with its contents up to the smaller size.
    ///
    /// It stays where it is if that is possible: when it shrinks, when the block behind it is free and large enough, and when `align`
    /// (pass what the block was allocated with) allows.
    ///
    /// # Errors
    /// As [`Tlsf::allocate`] and [`Tlsf::deallocate`]. The block is as it was, contents included.
    ///
    /// # Safety
    /// As [`Tlsf::deallocate`]; after success, the block is used through the returned pointer only.
    pub unsafe fn reallocate(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let Some(used) = self.used_block(block) else { return Err(Self::diagnose(block.addr().get(), self)) };
        if !align.is_power_of_two() {
            return Err(Error::BadAlignment { align });
        }
        let need = Self::checked_block_bytes(bytes)?;
        let stays_aligned = freestone_base::align::is_aligned(block.addr().get(), align);
        // SAFETY: the block was just found in use, with whole neighbours; `resize` says whether it now has `need` bytes.
        unsafe {
            if stays_aligned && self.resize(used, need) {
                if P::FOOTER {
                    footer::write(used.block, used.block.header(self.sealer).size(), bytes, self.sealer);
                }
                return Ok(used.block.payload());
            }
            self.relocate(used, bytes, align)
        }
    }

    /// Allocates anew, copies, and frees the old block.
    ///
    /// # Safety
    /// As [`Tlsf::reallocate`], for a block found in use.
    unsafe fn relocate(&mut self, used: Used, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let new = self.allocate(bytes, align)?;
        let kept = self.usable_bytes(used.block, used.header).min(bytes);
        // SAFETY: both blocks are in use and distinct; the old one's next header is read again, for the new block may be there.
        unsafe {
            new.copy_from_nonoverlapping(used.block.payload(), kept);
            self.release(used.block, used.block.header(self.sealer), used.next, used.next.header(self.sealer));
        }
        Ok(new)
    }

    /// Gives a used block `need` bytes or a little more where it is. Nothing has changed if the answer is no.
    ///
    /// # Safety
    /// The block was found in use, with whole neighbours.
    unsafe fn resize(&mut self, used: Used, need: usize) -> bool {
        let size = used.header.size();
        // SAFETY: the block behind is in the region; if it is free, it is listed with the size it says.
        unsafe {
            if need <= size {
                if size - need >= LEAST_BLOCK_BYTES {
                    self.split_used(used.block, size, need, used.next);
                }
                return true;
            }
            if self.top.is_at(used.next) {
                if size + self.top.bytes() < need {
                    return false;
                }
                let total = size + self.top.take(need - size, self.sealer);
                used.block.set_header(used.header.used(total), self.sealer);
                return true;
            }
            let next_size = used.next_header.size();
            if !used.next_header.is_free() || size + next_size < need {
                return false;
            }
            self.lists.remove(used.next);
            let (total, behind) = (size + next_size, used.next.after(next_size));
            behind.set_header(behind.header(self.sealer).without(PREV_FREE), self.sealer);
            used.block.set_header(used.header.used(total), self.sealer);
            if total - need >= LEAST_BLOCK_BYTES {
                self.split_used(used.block, total, need, behind);
            }
            true
        }
    }

    /// Cuts the end of a used block off and frees it.
    ///
    /// # Safety
    /// The block has `size` bytes, `next` follows it, and `size - need` is a block's size or more.
    unsafe fn split_used(&mut self, block: Block, size: usize, need: usize, next: Block) {
        // SAFETY: the tail lies in the block.
        unsafe {
            block.set_header(block.header(self.sealer).used(need), self.sealer);
            let tail = block.after(need);
            tail.set_header(Header::new(size - need, 0), self.sealer);
            self.release(tail, tail.header(self.sealer), next, next.header(self.sealer));
        }
    }

    /// What the owner of a used block may write.
    #[inline]
    pub(crate) fn usable_bytes(&self, block: Block, header: Header) -> usize {
        let size = header.size();
        if P::FOOTER {
            // SAFETY: a used block of a guarded heap has a footer.
            if let Some(requested) = unsafe { footer::read(block, size, self.sealer) } {
                return requested;
            }
        }
        size.saturating_sub(HEADER_BYTES)
    }
}
