//! Reallocation: shrink in place, grow in place, and only then move.
//!
//! Cost: O(1) in place; a move copies.
//!
//! # Safety
//! The block and its neighbours are checked as for `deallocate`, before any size is followed.
#![allow(unsafe_code)]

use crate::block::Block;
use crate::block::Used;
use crate::block_size::{HEADER_BYTES, LEAST_BLOCK_BYTES};
use crate::error::Error;
use crate::footer;
use crate::header::{Header, PREV_FREE};
use crate::policy::Policy;
use crate::tlsf::Tlsf;
use core::ptr::NonNull;

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Changes the size of `block` to at least `bytes` bytes at a multiple of `align`, and keeps its contents up to the smaller size.
    /// Returns where the block is now.
    ///
    /// The block stays where it is if `align` allows (pass the alignment it was allocated with), and if it shrinks, or the block behind
    /// it is free and large enough.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: the old pointer is not used again.
    /// let block = unsafe { heap.reallocate(block, 2000, 16)? };
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tlsf::allocate`] and [`Tlsf::deallocate`]. The block is unchanged, contents included.
    ///
    /// # Safety
    /// - After success the block is used through the returned pointer alone.
    /// - If the address lies in a region but is not that of a block in use, the bytes around it are initialised.
    pub unsafe fn reallocate(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: the bytes around the address are a block's, or are initialised: this function's contract.
        let used = unsafe { self.used_block(block) };
        let Some(used) = used else { return Err(Self::diagnose(block.addr().get(), self)) };
        if !align.is_power_of_two() {
            return Err(Error::BadAlignment { align });
        }
        let need = Self::checked_block_bytes(bytes)?;
        let stays_aligned = freestone_base::align::is_aligned(block.addr().get(), align);
        // SAFETY: the block was just found in use, with intact neighbours.
        if stays_aligned && unsafe { self.resize(used, need) } {
            if P::FOOTER {
                // SAFETY: the block now has the size that its header says, which is `need` or more: room for `bytes` and the footer.
                unsafe { footer::write(used.block, used.block.header(self.sealer).size(), bytes, self.sealer) };
            }
            return Ok(used.block.payload());
        }
        // SAFETY: the block was just found in use, and `resize` changed nothing; its owner gives up the old place.
        unsafe { self.relocate(used, bytes, align) }
    }

    /// Allocates a new block, copies the contents, and frees the old block.
    ///
    /// # Safety
    /// - The block was found in use, with intact neighbours. After success nothing uses its old place any more.
    unsafe fn relocate(&mut self, used: Used, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let new = self.allocate(bytes, align)?;
        let kept = self.usable_bytes(used.block, used.header).min(bytes);
        // SAFETY: the two blocks are in use and distinct, and each has `kept` bytes.
        unsafe { new.copy_from_nonoverlapping(used.block.payload(), kept) };
        // Both headers are read again, because the new block may be a neighbour.
        let (header, next_header) = (used.block.header(self.sealer), used.next.header(self.sealer));
        // SAFETY: the old block is still in use, with these headers, and its contents have been copied.
        unsafe { self.release_by_call(Used { header, next_header, ..used }) };
        Ok(new)
    }

    /// Changes the size of a used block to `need` bytes or a few more where it is. Returns false if that is impossible; nothing has changed
    /// then.
    ///
    /// # Safety
    /// - The block was found in use, with intact neighbours.
    unsafe fn resize(&mut self, used: Used, need: usize) -> bool {
        let size = used.header.size();
        if need <= size {
            if size - need >= LEAST_BLOCK_BYTES {
                // SAFETY: the block has `size` bytes, `used.next` follows it, and the remainder is a block's size or more.
                unsafe { self.split_used(used.block, size, need, used.next) };
            }
            return true;
        }
        if self.top.is_at(used.next) {
            if size + self.top.bytes() < need {
                return false;
            }
            // SAFETY: the top has `need - size` bytes or more.
            let total = size + unsafe { self.top.cut(need - size, self.sealer) };
            used.block.set_header(used.header.used(total), self.sealer);
            return true;
        }
        let next_size = used.next_header.size();
        if !used.next_header.is_free() || size + next_size < need {
            return false;
        }
        // SAFETY: the next block is free and is not the top, so it is in a list.
        unsafe { self.lists.remove(used.next) };
        let total = size + next_size;
        // SAFETY: the next block's header is intact, so another header is `next_size` bytes further on.
        let behind = unsafe { used.next.after(next_size) };
        behind.set_header(behind.header(self.sealer).without(PREV_FREE), self.sealer);
        used.block.set_header(used.header.used(total), self.sealer);
        if total - need >= LEAST_BLOCK_BYTES {
            // SAFETY: the block has `total` bytes now, `behind` follows it, and the remainder is a block's size or more.
            unsafe { self.split_used(used.block, total, need, behind) };
        }
        true
    }

    /// Cuts off the end of a used block, and frees it.
    ///
    /// # Safety
    /// - The block is in use and has `size` bytes, `next` follows it, and `size - need` is a block's size or more.
    unsafe fn split_used(&mut self, block: Block, size: usize, need: usize, next: Block) {
        block.set_header(block.header(self.sealer).used(need), self.sealer);
        // SAFETY: `need` is less than the block's size: the place is inside the block, and its header is written next.
        let tail = unsafe { block.after(need) };
        let header = Header::new(size - need, 0);
        tail.set_header(header, self.sealer);
        // SAFETY: the tail is a block marked as used that no code uses; `next` follows it.
        unsafe { self.release_by_call(Used { block: tail, header, next, next_header: next.header(self.sealer) }) };
    }

    /// The number of bytes that the owner of a used block, whose header is `header`, may write.
    #[inline]
    pub(crate) fn usable_bytes(&self, block: Block, header: Header) -> usize {
        let size = header.size();
        if P::FOOTER {
            // SAFETY: the block is used and has `size` bytes; a heap with footers wrote one for each block.
            if let Some(requested) = unsafe { footer::read(block, size, self.sealer) } {
                return requested;
            }
        }
        size.saturating_sub(HEADER_BYTES)
    }
}
