//! Deallocation: check, mark, merge with the previous block, merge with the next, insert.
//!
//! ```text
//! check   │ the address is the start of a block in use, and neither neighbour's header was overwritten
//! mark    │ | free | BLOCK | free |        BLOCK says FREE from here on; if it merges with the previous, its header is wiped
//! merge   │ | free . BLOCK . free |        the neighbours leave their lists
//! insert  │ | ........ free ..... |        at the head of its list; in front of the top: part of the top, in no list
//! ```
//!
//! Cost: bounded, unless the block is refused, when the heap looks for what is wrong; checking is about a fifth of it, which `deallocate_unchecked` leaves out.
//!
//! # Safety
//! An address becomes a block only if a region of this heap contains it, through the region's own pointer. A size is followed only
//! if it stays inside the region, and the header that it leads to is used only if its seal is intact.
#![allow(unsafe_code)]

use crate::block::{Block, Used};
use crate::block_size::{GRANULE, HEADER_BYTES};
use crate::error::Error;
use crate::footer;
use crate::header::{FREE, Header, PREV_FREE};
use crate::policy::Policy;
use crate::region::{Located, Region};
use crate::tlsf::Tlsf;
use core::ptr::NonNull;

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Frees a block, and merges it with free neighbours.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: the block is not used afterwards.
    /// unsafe {
    ///     heap.deallocate(block)?;
    ///     assert!(matches!(heap.deallocate(block), Err(freestone_tlsf::Error::DoubleFree { .. })));
    /// }
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// The heap is unchanged after each, and each names the block.
    /// - [`Error::Foreign`]: the address is in no region of this heap.
    /// - [`Error::Interior`]: the address is inside a block.
    /// - [`Error::DoubleFree`]: the address is in free memory.
    /// - [`Error::Overrun`], [`Error::Damaged`]: the header of the block or of a neighbour was overwritten.
    ///
    /// Bytes of a block that look like headers can deceive the check: random bytes do so once in 2^30.
    ///
    /// # Safety
    /// - Nothing uses the block afterwards.
    /// - If the address lies in a region but is not that of a block in use, the bytes around it are initialised (which they are in any
    ///   block that was written).
    ///
    /// # Complexity
    /// O(1). Only the diagnosis of an error walks the region.
    #[inline]
    pub unsafe fn deallocate(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        let mut address = block.addr().get();
        if let Some(found) = self.regions.locate(address) {
            // SAFETY: the header's bytes are a block's, or are initialised: the second point of this function's contract.
            if let Some(used) = unsafe { self.used_at(found) } {
                // SAFETY: the block was just found in use, with intact neighbours, and nothing uses it any more.
                unsafe { self.release(used) };
                return Ok(());
            }
            // The same address, computed again, so that the one passed in need not be kept in a register until here.
            address = found.header.addr().get() + HEADER_BYTES;
        }
        Err(Self::diagnose(address, self))
    }

    /// Frees a block as [`Tlsf::deallocate`] does, without any check, footers included.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: the block was allocated just now, nothing was written outside of it, and it is not used afterwards.
    /// unsafe { heap.deallocate_unchecked(block) };
    /// assert_eq!(heap.stats().used_blocks, 0);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Safety
    /// - The block was allocated from this heap and not freed since. The pointer is the one that the heap returned or a copy of it,
    ///   not one that was derived from a reference or a `Box`. Nothing uses the block afterwards.
    /// - Nothing wrote outside of any block.
    #[inline]
    pub unsafe fn deallocate_unchecked(&mut self, block: NonNull<u8>) {
        // SAFETY: the heap allocated the block, so its header is in front of it.
        let block = unsafe { Block::of_payload(block) };
        let header = block.header(self.sealer);
        // SAFETY: the header was not overwritten, so the next header is as far away as it says.
        let next = unsafe { block.after(header.size()) };
        // SAFETY: the block is in use and nothing uses it any more; no header was overwritten.
        unsafe { self.release(Used { block, header, next, next_header: next.header(self.sealer) }) };
    }

    /// The number of bytes that may be used at `block`: at least as many as were requested; in a heap of the policy
    /// [`WithFooters`](crate::WithFooters) exactly as many.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: the address is that of a block in use.
    /// assert_eq!(unsafe { heap.usable_size(block)? }, 104);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tlsf::deallocate`].
    ///
    /// # Safety
    /// - If the address lies in a region but is not that of a block in use, the bytes around it are initialised.
    pub unsafe fn usable_size(&self, block: NonNull<u8>) -> Result<usize, Error> {
        // SAFETY: the bytes around the address are a block's, or are initialised: this function's contract.
        let used = unsafe { self.used_block(block) }.ok_or_else(|| Self::diagnose(block.addr().get(), self))?;
        Ok(self.usable_bytes(used.block, used.header))
    }

    /// The block in use whose payload starts at `payload`, if there is one and its neighbours are intact.
    ///
    /// # Safety
    /// - If `payload` lies in a region, the bytes around it are initialised.
    #[inline(always)]
    pub(crate) unsafe fn used_block(&self, payload: NonNull<u8>) -> Option<Used> {
        // SAFETY: the bytes around the payload are initialised.
        unsafe { self.used_at(self.regions.locate(payload.addr().get())?) }
    }

    /// The block in use at a place where one can be, if there is one and its neighbours are intact.
    ///
    /// # Safety
    /// - The bytes around the place are initialised.
    #[inline(always)]
    unsafe fn used_at(&self, found: Located) -> Option<Used> {
        // SAFETY: `locate` returns the place of a header inside a region of this heap; the bytes there are initialised.
        let block = unsafe { Block::at(found.header) };
        let header = block.header(self.sealer);
        let size = header.size();
        let next = block.wrapping_after(size);
        // Where a size has 32 bits, it may lead past the last address.
        let in_region = next.addr() <= found.end && (usize::BITS == 64 || next.addr() >= block.address());
        if !header.is_intact_without(FREE) || !in_region {
            return None;
        }
        // SAFETY: `next` lies behind the block's header and no further than the sentinel, so it is not null.
        let next = unsafe { NonNull::new_unchecked(next) };
        // SAFETY: the place is inside the region. An intact header leads to the next one, which is initialised.
        let next = unsafe { Block::at(next) };
        let next_header = next.header(self.sealer);
        if !next_header.is_intact_without(PREV_FREE) {
            return None;
        }
        // SAFETY: the header says PREV_FREE, and its place has `room_before` bytes of the region's blocks in front of it.
        if header.is_prev_free() && !unsafe { self.is_free_before(block, found.room_before) } {
            return None;
        }
        // SAFETY: the block is used and has `size` bytes; a heap with footers wrote one for each block.
        if P::FOOTER && unsafe { footer::read(block, size, self.sealer) }.is_none() {
            return None;
        }
        Some(Used { block, header, next, next_header })
    }

    /// Whether the sentinel of `region`, a region of this heap, is as the heap wrote it.
    pub(crate) fn has_intact_end(&self, region: Region) -> bool {
        let (sentinel, room) = (region.sentinel(), region.block_bytes());
        let header = sentinel.header(self.sealer);
        if self.top.ends_at(sentinel) {
            return header == Header::TOP;
        }
        // SAFETY: the header says PREV_FREE, and the region's blocks have `room` bytes.
        let has_free_before = || unsafe { self.is_free_before(sentinel, room) };
        header == Header::new(0, 0) || header == Header::new(0, PREV_FREE) && has_free_before()
    }

    /// Whether an intact free block ends where `block` begins, within `room` bytes.
    ///
    /// # Safety
    /// - The header of `block` says PREV_FREE, and the region's first header is `room` bytes in front of it.
    #[inline(always)]
    unsafe fn is_free_before(&self, block: Block, room: usize) -> bool {
        // SAFETY: the header says PREV_FREE.
        let size = unsafe { block.size_before() };
        if size > room || size % GRANULE != 0 {
            return false;
        }
        // SAFETY: `size` is at most `room`, so the place is in the region; the block in front, or its header, was initialised.
        let before = unsafe { block.before(size) };
        before.has_header(Header::new(size, FREE), self.sealer)
    }

    /// [`Tlsf::release`] by a call, for callers that copy a block or write headers anyway: its code is there once for all of them.
    ///
    /// # Safety
    /// - As for [`Tlsf::release`].
    #[cfg_attr(target_os = "none", inline(always))]
    #[cfg_attr(not(target_os = "none"), inline(never))]
    pub(crate) unsafe fn release_by_call(&mut self, used: Used) {
        // SAFETY: this function's contract.
        unsafe { self.release(used) }
    }

    /// Makes a used block free: marks it, merges it with the previous block, merges it with the next, inserts it.
    ///
    /// Long because: it is one case for each state of the two neighbours, and a call between them would lengthen the bound.
    ///
    /// # Safety
    /// - The block is in use, with the headers of `used`, which are intact, and nothing uses it any more.
    /// - If its header says PREV_FREE, the free block in front of it is in a list, with its size at its end.
    // On a microcontroller the code is once there; elsewhere it is in each caller, without the call.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    pub(crate) unsafe fn release(&mut self, used: Used) {
        let Used { block, header, next, next_header } = used;
        // Read once, or the compiler would read it again after every write to a block. Read here and not where the headers were decoded,
        // or it would keep each header as it was read, too, in two registers more than there are without a stack frame.
        // SAFETY: a reference to a field of this heap is valid to read.
        let sealer = unsafe { core::ptr::read_volatile(&raw const self.sealer) };
        if header.is_prev_free() {
            block.unseal();
            // SAFETY: the header says PREV_FREE.
            let before = unsafe { block.size_before() };
            // SAFETY: a free block of `before` bytes is in front of this one.
            let start = unsafe { block.before(before) };
            if next_header.is_free() {
                let behind = next_header.size();
                if behind == 0 {
                    debug_assert!(self.top.is_at(next));
                    // SAFETY: the free block in front is in a list.
                    unsafe { self.lists.remove(start) };
                    return self.top.extend_down_to(start, sealer);
                }
                let both = header.longer(before).joined(next_header);
                start.set_header(both.without(PREV_FREE), sealer);
                // SAFETY: the next block's header is intact, so another header is `behind` bytes further on.
                unsafe { next.after(behind) }.set_size_before(both.size());
                // SAFETY: the next block is free and has a size, so it is in a list.
                unsafe { self.lists.remove(next) };
                // SAFETY: the free block in front is in a list.
                unsafe { self.lists.remove(start) };
                // SAFETY: the merged block is free, has that size, and is in no list.
                unsafe { self.lists.insert(start, both.size()) };
            } else {
                let both = header.longer(before);
                start.set_header(both.with(FREE).without(PREV_FREE), sealer);
                next.set_size_before(both.size());
                next.set_header(next_header.with(PREV_FREE), sealer);
                // SAFETY: the free block in front is in a list.
                unsafe { self.lists.remove(start) };
                // SAFETY: the merged block is free, has that size, and is in no list.
                unsafe { self.lists.insert(start, both.size()) };
            }
        } else if next_header.is_free() {
            let behind = next_header.size();
            if behind == 0 {
                debug_assert!(self.top.is_at(next));
                return self.top.extend_down_to(block, sealer);
            }
            let both = header.joined(next_header);
            block.set_header(both, sealer);
            // SAFETY: the next block's header is intact, so another header is `behind` bytes further on.
            unsafe { next.after(behind) }.set_size_before(both.size());
            // SAFETY: the next block is free and has a size, so it is in a list.
            unsafe { self.lists.remove(next) };
            // SAFETY: the merged block is free, has that size, and is in no list.
            unsafe { self.lists.insert(block, both.size()) };
        } else {
            block.set_header(header.with(FREE), sealer);
            next.set_size_before(header.size());
            next.set_header(next_header.with(PREV_FREE), sealer);
            // SAFETY: the block is free, has that size, and is in no list.
            unsafe { self.lists.insert(block, header.size()) };
        }
    }
}
