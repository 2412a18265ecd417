//! A block in memory: its header, its links while it is free, and the size at its end.
//!
//! ```text
//!            +0            +8                                size   +8
//!   used:    | header      | payload ........................| next header
//!                          ^ the address handed out, a multiple of 16
//!   free:    | header      | next free | previous free | .. | size |
//!                            +8          +16            size-8
//! ```
//!
//! The links of a free block point to blocks of the same list. The head of a list has the number of its list in place of a previous
//! block ([`BackLink`]), so leaving a list needs no arithmetic.
//!
//! The last word before the next header belongs to the payload while the block is used. While the block is free, that word is the block's
//! size, and from it the next block finds where the free block starts. A used block therefore costs 8 bytes and no more.
//!
//! Invariants: sizes are multiples of 16, 32 or more (0 in a region's sentinel); a free block never follows a free block; an
//! address that is not the header of a used block but still holds a valid seal is marked FREE: a header that ends up inside a larger
//! block is marked or wiped, so that freeing its block again is refused.
//!
//! # Safety
//! A [`Block`] is the address of a header: 8 bytes at a multiple of 8, inside a region that the heap has exclusive access to, and
//! written before they are read. Making or moving a `Block` is unsafe, because the caller must ensure that; reading and writing the header
//! of one is then safe. Links are read only from blocks that are in a list.
#![allow(unsafe_code)]

use crate::block_size::HEADER_BYTES;
use crate::header::{Header, Sealer};
use crate::mapping::{LISTS_END, ListIndex};
use core::ptr::NonNull;

/// Offset of the link to the next free block, in bytes.
const NEXT: usize = 8;
/// Offset of the link to the previous free block, in bytes.
const PREVIOUS: usize = 16;

/// The address of a block's header. See the module's `# Safety` for what it guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Block(NonNull<u8>);

impl Block {
    /// Equal to no block of any heap, because its address is odd. It is compared with others and never read.
    pub(crate) const NONE: Self = Self(NonNull::dangling());

    /// The block whose header is at `header`.
    ///
    /// # Safety
    /// - `header` is a multiple of 8, and the 8 bytes there lie in a region of the heap that uses the block.
    /// - They are initialised, or are written before they are read.
    #[inline(always)]
    pub(crate) const unsafe fn at(header: NonNull<u8>) -> Self {
        Self(header)
    }

    /// The block whose payload starts at `payload`.
    ///
    /// # Safety
    /// - `payload` is a multiple of 16, 16 or more bytes into a region of the heap that uses the block.
    /// - The 8 bytes in front of it are initialised.
    #[inline(always)]
    pub(crate) unsafe fn of_payload(payload: NonNull<u8>) -> Self {
        // SAFETY: a region's first payload is 16 bytes behind its start, so the 8 bytes in front of any payload are in the region.
        Self(unsafe { payload.byte_sub(HEADER_BYTES) })
    }

    /// Address of the header.
    #[inline(always)]
    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// Address of the payload.
    #[inline(always)]
    pub(crate) fn payload_address(self) -> usize {
        self.address() + HEADER_BYTES
    }

    /// The payload, with access to the whole region.
    #[inline(always)]
    pub(crate) fn payload(self) -> NonNull<u8> {
        // SAFETY: the header's 8 bytes lie in a region, so their end is in the region or just behind it.
        unsafe { self.0.byte_add(HEADER_BYTES) }
    }

    /// The block whose header is `bytes` behind this one.
    ///
    /// # Safety
    /// - A header at that place lies in the same region.
    /// - It is initialised, or is written before it is read.
    #[inline(always)]
    pub(crate) unsafe fn after(self, bytes: usize) -> Self {
        // SAFETY: this header and the one `bytes` behind it are in the same region.
        Self(unsafe { self.0.byte_add(bytes) })
    }

    /// The address `bytes` behind this header, which may be outside of the region.
    #[inline(always)]
    pub(crate) fn wrapping_after(self, bytes: usize) -> *mut u8 {
        self.0.as_ptr().wrapping_byte_add(bytes)
    }

    /// The block whose header is `bytes` in front of this one.
    ///
    /// # Safety
    /// - A header at that place lies in the same region, and is initialised.
    #[inline(always)]
    pub(crate) unsafe fn before(self, bytes: usize) -> Self {
        // SAFETY: this header and the one `bytes` in front of it are in the same region.
        Self(unsafe { self.0.byte_sub(bytes) })
    }

    /// Reads the header.
    #[inline(always)]
    pub(crate) fn header(self, sealer: Sealer) -> Header {
        // SAFETY: a `Block` points to 8 aligned, initialised bytes in a region that the heap has to itself.
        sealer.decode(unsafe { self.0.cast::<u64>().read() })
    }

    /// Whether the header is exactly `header`.
    #[inline(always)]
    pub(crate) fn has_header(self, header: Header, sealer: Sealer) -> bool {
        // SAFETY: a `Block` points to 8 aligned, initialised bytes in a region that the heap has to itself.
        let word = unsafe { self.0.cast::<u64>().read() };
        word == sealer.encode(header)
    }

    /// Writes the header as one whole word. Without `volatile` the compiler would narrow a changed flag to a store of one byte, and the
    /// next read of the whole header would have to wait until that store has left the store buffer.
    #[inline(always)]
    pub(crate) fn set_header(self, header: Header, sealer: Sealer) {
        // SAFETY: a `Block` points to 8 aligned bytes in a region that the heap has to itself.
        unsafe { self.0.cast().write_volatile(sealer.encode(header)) }
    }

    /// Wipes the header, so that this address is no longer taken for a block. (0 is no valid header: bit 0 of a valid one is set.)
    #[inline(always)]
    pub(crate) fn unseal(self) {
        // SAFETY: a `Block` points to 8 aligned bytes in a region that the heap has to itself.
        unsafe { self.0.cast::<u64>().write(0) }
    }

    /// The next block in this free block's list.
    ///
    /// # Safety
    /// - The block is in a list, and its link was not overwritten.
    #[inline(always)]
    pub(crate) unsafe fn next_free(self) -> Option<Self> {
        // SAFETY: a free block has 32 bytes or more, so the link is in the region.
        let link = unsafe { self.0.byte_add(NEXT) };
        // SAFETY: entering the list wrote a link there, at a multiple of 8.
        unsafe { link.cast().read() }
    }

    /// Writes the link to the next block of the list.
    ///
    /// # Safety
    /// - The block is free and has 32 bytes or more.
    #[inline(always)]
    pub(crate) unsafe fn set_next_free(self, next: Option<Self>) {
        // SAFETY: the block has 32 bytes, so the link is in the region.
        let link = unsafe { self.0.byte_add(NEXT) };
        // SAFETY: the link is at a multiple of 8, and nothing else uses a free block's payload.
        unsafe { link.cast().write(next) }
    }

    /// What precedes this free block in its list.
    ///
    /// # Safety
    /// - The block is in a list, and its link was not overwritten.
    #[inline(always)]
    pub(crate) unsafe fn back_link(self) -> BackLink {
        // SAFETY: a free block has 32 bytes or more, so the link is in the region.
        let link = unsafe { self.0.byte_add(PREVIOUS) };
        // SAFETY: entering the list wrote a link there, at a multiple of 8.
        unsafe { link.cast().read() }
    }

    /// Writes the link to what precedes this block in its list.
    ///
    /// # Safety
    /// - The block is free and has 32 bytes or more.
    #[inline(always)]
    pub(crate) unsafe fn set_back_link(self, previous: BackLink) {
        // SAFETY: the block has 32 bytes, so the link is in the region.
        let link = unsafe { self.0.byte_add(PREVIOUS) };
        // SAFETY: the link is at a multiple of 8, and nothing else uses a free block's payload.
        unsafe { link.cast().write(previous) }
    }

    /// Size of the free block in front of this one, in bytes.
    ///
    /// # Safety
    /// - The block's header has PREV_FREE set. (Then the free block in front wrote its size there; if that was overwritten since, the
    ///   number is wrong, and the caller checks it.)
    #[inline(always)]
    pub(crate) unsafe fn size_before(self) -> usize {
        // SAFETY: a region has 8 bytes in front of its first header, so the word in front of any header is in the region.
        let word = unsafe { self.0.byte_sub(HEADER_BYTES) };
        // SAFETY: the free block in front wrote its size there, at a multiple of 8.
        unsafe { word.cast().read() }
    }

    /// Writes `size`, the size in bytes of the free block that ends at this header, in front of this header.
    #[inline(always)]
    pub(crate) fn set_size_before(self, size: usize) {
        // SAFETY: a region has 8 bytes in front of its first header, so the word in front of any header is in the region.
        let word = unsafe { self.0.byte_sub(HEADER_BYTES) };
        // SAFETY: the word is at a multiple of 8; it is the last of the block in front, which is free and so not read by anybody else.
        unsafe { word.cast().write(size) }
    }
}

/// What precedes a free block in its list: a block, or, for the head, the index of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct BackLink(*mut u8);

impl BackLink {
    /// Greater than any list's index, less than the address of any header: no region begins below it.
    pub(crate) const LISTS: usize = LISTS_END.next_power_of_two();

    /// The back link of the head of the list `index`.
    #[inline(always)]
    pub(crate) fn list(index: ListIndex) -> Self {
        Self(core::ptr::without_provenance_mut(index.number()))
    }

    /// The back link of a block that follows `block`.
    #[inline(always)]
    pub(crate) fn block(block: Block) -> Self {
        Self(block.0.as_ptr())
    }

    /// The index of the list, if the block is its head.
    #[inline(always)]
    pub(crate) fn as_list(self) -> Option<ListIndex> {
        (self.0.addr() < Self::LISTS).then(|| ListIndex::of_number(self.0.addr()))
    }

    /// Makes `next` the block that follows the one this link points to.
    ///
    /// # Safety
    /// - The link points to a block, not to a list; that block is free and has 32 bytes or more.
    #[inline(always)]
    pub(crate) unsafe fn set_next_free(self, next: Option<Block>) {
        // SAFETY: the block has 32 bytes, so its link is in the region.
        let link = unsafe { self.0.byte_add(NEXT) };
        // SAFETY: the link is at a multiple of 8, and nothing else uses a free block's payload.
        unsafe { link.cast::<Option<Block>>().write(next) }
    }
}

/// A block in use with its header, and the header behind it.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    pub(crate) block: Block,
    pub(crate) header: Header,
    pub(crate) next: Block,
    pub(crate) next_header: Header,
}

#[cfg(test)]
mod tests;
