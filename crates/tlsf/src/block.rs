//! A block and its header: the only file that knows where the bits lie.
//!
//! ```text
//!            +0            +8                                size   +8
//!   used:    | header      | payload ........................| next header
//!                          ^ address given out, a multiple of 16
//!   free:    | header      | next free | previous free | .. | size |
//!                            +8          +16            size-8
//!
//!   header in memory:   bit 63 ............... 16 | 15 .. 3 | 2         | 1    | 0
//!                       size (multiple of 16)     | seal    | PREV_FREE | FREE | 1
//!   Header, as read:    the same less the seal and the 1, so that they are 0 if they were right
//! ```
//!
//! So a size is one shift away, and the header of a rest or of a merged block is the old one less or plus another: what a
//! header is decoded to stands between one call's store and the next call's load, and is the longest way through both.
//!
//! A free block's links name blocks; the head of a list has, in place of a previous block, the number of its list, so that leaving
//! a list needs no arithmetic.
//!
//! The last word before the next header belongs to this block's payload while it is used; while it is free it holds its size, which
//! is how the next block finds its start. So a used block pays 8 bytes and nothing more.
//!
//! The *seal* is a number of 13 bits that the heap chose; with the 1, and the four bits of the size that are 0, a header shows 18
//! known bits. They lie in the bytes that an overrun reaches first, and the first byte is odd, so that a terminating NUL
//! written one byte too far is always seen. (Mixing the header's address in was tried: it costs
//! three instructions a header, and catches nothing more that the sizes and flags of the neighbours do not.)
//!
//! Invariants: sizes are multiples of 16, 32 or more (a region's sentinel: 0); a free block never follows a free block; every
//! address that is not the header of a used block and holds a valid seal is marked FREE (a header that ends up inside a larger
//! block is marked, or its seal wiped), so that freeing it again is refused.
//!
//! # Safety
//! Every method that touches memory requires that the block's header, and for free blocks the links and the trailing size, lie in a
//! region of the heap that calls, to which it holds the only access. The links and sizes it reads are believed only after
//! the seal was compared, except in `*_unchecked` calls.
#![allow(unsafe_code)]

use crate::mapping::{GRANULE, LISTS_END};
use core::ptr::NonNull;

/// Bytes of bookkeeping in front of a used block.
pub const HEADER_BYTES: usize = 8;

/// The smallest block, header included: what a free one needs for its links and its size.
pub const LEAST_BLOCK_BYTES: usize = 32;

/// This block is free.
pub(crate) const FREE: u64 = 2;
/// The block before this one is free, and its size lies in front of this header.
pub(crate) const PREV_FREE: u64 = 4;

/// How far left of the seal the size stands.
const SIZE_SHIFT: u32 = 16;
/// The bits of a [`Header`] that are 0 if its seal is right: the low ones but the flags, and those that no size of this machine has.
const SEALED: u64 =
    (((GRANULE as u64) << SIZE_SHIFT) - 1 - FREE - PREV_FREE) | !((usize::MAX as u64) << SIZE_SHIFT | 0xFFFF);
const NEXT: usize = 8;
const PREVIOUS: usize = 16;

/// Makes the seals of one heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealer {
    /// What is added to every [`Header`]: the seal and the 1.
    key: u64,
}

impl Sealer {
    pub(crate) const NONE: Self = Self { key: 0 };

    /// The sealer of the `number`-th heap.
    pub(crate) fn new(number: usize) -> Self {
        /// The odd number nearest to 2^64 over the golden ratio: spreads small numbers over the high bits.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        let seal = (number as u64).wrapping_mul(SPREAD) >> (u64::BITS - SIZE_SHIFT);
        Self { key: (seal & !(FREE | PREV_FREE)) | 1 }
    }

    /// The sealer of headers from which FREE was taken off.
    pub(crate) fn of_free(self) -> Self {
        Self { key: self.key + FREE }
    }

    /// What is mixed into every header.
    #[inline(always)]
    pub(crate) fn key(self) -> u64 {
        self.key
    }
}

/// A header's value, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Header(u64);

impl Header {
    /// Of the top (see `top.rs`), which has its size elsewhere.
    pub(crate) const TOP: Self = Self(FREE);

    /// `size` is a multiple of 16, `flags` are FREE, PREV_FREE, both or none.
    #[inline(always)]
    pub(crate) fn new(size: usize, flags: u64) -> Self {
        Self(((size as u64) << SIZE_SHIFT) + flags)
    }
    /// The block's size, if the header is whole.
    #[inline(always)]
    pub(crate) fn size(self) -> usize {
        (self.0 >> SIZE_SHIFT) as usize
    }
    /// Whether the seal was right.
    #[inline(always)]
    pub(crate) fn is_whole(self) -> bool {
        self.0 & SEALED == 0
    }
    /// Whether the seal was right and `flag` is clear.
    #[inline(always)]
    pub(crate) fn is_whole_without(self, flag: u64) -> bool {
        self.0 & (SEALED | flag) == 0
    }
    #[inline(always)]
    pub(crate) fn is_free(self) -> bool {
        self.0 & FREE != 0
    }
    #[inline(always)]
    pub(crate) fn is_prev_free(self) -> bool {
        self.0 & PREV_FREE != 0
    }
    /// The same header with `flag`, which was clear, set.
    #[inline(always)]
    pub(crate) fn with(self, flag: u64) -> Self {
        debug_assert!(self.0 & flag == 0);
        Self(self.0.wrapping_add(flag))
    }
    /// The same header with `flag`, which was set, clear.
    #[inline(always)]
    pub(crate) fn without(self, flag: u64) -> Self {
        debug_assert!(self.0 & flag == flag);
        Self(self.0.wrapping_sub(flag))
    }
    /// The same header with `bytes` more.
    #[inline(always)]
    pub(crate) fn longer(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add((bytes as u64) << SIZE_SHIFT))
    }
    /// The sum of this header, of a used block, and `next`, of the free one behind it: all bytes, and the flags of both.
    #[inline(always)]
    pub(crate) fn joined(self, next: Self) -> Self {
        debug_assert!(self.0 & FREE == 0 && next.0 & (FREE | PREV_FREE) == FREE);
        Self(self.0.wrapping_add(next.0))
    }
    /// The header of a used block of `size` bytes in the same place: PREV_FREE is kept.
    #[inline(always)]
    pub(crate) fn used(self, size: usize) -> Self {
        Self::new(size, self.0 & PREV_FREE)
    }
}

/// A pointer to a block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Block(NonNull<u8>);

impl Block {
    /// The block whose header is at `header`.
    #[inline(always)]
    pub(crate) const fn at(header: NonNull<u8>) -> Self {
        Self(header)
    }

    /// The block whose payload starts at `payload`.
    ///
    /// # Safety
    /// `payload` was given out by a heap, or lies `HEADER_BYTES` or more into one of its regions.
    #[inline(always)]
    pub(crate) unsafe fn of_payload(payload: NonNull<u8>) -> Self {
        // SAFETY: the header in front of the payload is in the same region.
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

    /// The payload, with access to the whole region it came from.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn payload(self) -> NonNull<u8> {
        // SAFETY: a block has at least `LEAST_BLOCK_BYTES` behind its header's start.
        unsafe { self.0.byte_add(HEADER_BYTES) }
    }

    /// The block `bytes` further on.
    ///
    /// # Safety
    /// See the file's header: the result must lie in the same region.
    #[inline(always)]
    pub(crate) unsafe fn after(self, bytes: usize) -> Self {
        // SAFETY: in the same region, says the caller.
        Self(unsafe { self.0.byte_add(bytes) })
    }

    /// The place `bytes` further on, which may be outside of the region.
    #[inline(always)]
    pub(crate) fn wrapping_after(self, bytes: usize) -> *mut u8 {
        self.0.as_ptr().wrapping_byte_add(bytes)
    }

    /// The block `bytes` further back.
    ///
    /// # Safety
    /// See the file's header: the result must lie in the same region.
    #[inline(always)]
    pub(crate) unsafe fn before(self, bytes: usize) -> Self {
        // SAFETY: in the same region, says the caller.
        Self(unsafe { self.0.byte_sub(bytes) })
    }

    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn header(self, sealer: Sealer) -> Header {
        // SAFETY: headers are 8-aligned and readable, says the caller.
        let word: u64 = unsafe { self.0.cast().read() };
        Header(word.wrapping_sub(sealer.key()))
    }

    /// Whether the header is just this one.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn has_header(self, header: Header, sealer: Sealer) -> bool {
        // SAFETY: headers are 8-aligned and readable, says the caller.
        unsafe { self.0.cast::<u64>().read() == header.0.wrapping_add(sealer.key()) }
    }

    /// Writes the header, as one whole word: the compiler would narrow a changed flag to a store of one byte, and the next read of
    /// the whole header would have to wait until that has left the store buffer.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn set_header(self, header: Header, sealer: Sealer) {
        let word = header.0.wrapping_add(sealer.key());
        // SAFETY: headers are 8-aligned and writable, says the caller.
        unsafe { self.0.cast().write_volatile(word) }
    }

    /// Overwrites the header, so that this address is no longer taken for a block.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn unseal(self) {
        // SAFETY: the same obligation. A seal is never 0.
        unsafe { self.0.cast::<u64>().write(0) }
    }

    /// The next block in this free block's list.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn next_free(self) -> Option<Self> {
        // SAFETY: free blocks have an initialised, aligned link there.
        unsafe { self.0.byte_add(NEXT).cast().read() }
    }

    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn set_next_free(self, next: Option<Self>) {
        // SAFETY: free blocks have room for an aligned link there.
        unsafe { self.0.byte_add(NEXT).cast().write(next) }
    }

    /// What is before this free block in its list.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn prev_free(self) -> Previous {
        // SAFETY: free blocks have an initialised, aligned link there.
        unsafe { self.0.byte_add(PREVIOUS).cast().read() }
    }

    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn set_prev_free(self, previous: Previous) {
        // SAFETY: free blocks have room for an aligned link there.
        unsafe { self.0.byte_add(PREVIOUS).cast().write(previous) }
    }

    /// Size of the free block in front of this one.
    ///
    /// # Safety
    /// See the file's header; this block's header says `PREV_FREE`.
    #[inline(always)]
    pub(crate) unsafe fn size_before(self) -> usize {
        // SAFETY: the word in front of this header belongs to the free block before it, and holds its size.
        unsafe { self.0.byte_sub(HEADER_BYTES).cast().read() }
    }

    /// Writes, in front of this header, the size of the free block that ends here.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn set_size_before(self, size: usize) {
        // SAFETY: the word in front of this header belongs to the free block before it.
        unsafe { self.0.byte_sub(HEADER_BYTES).cast().write(size) }
    }
}

/// What is before a free block in its list: a block, or, before the head, the number of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Previous(*mut u8);

impl Previous {
    /// More than any list's number, less than the address of any header.
    const LISTS: usize = LISTS_END.next_power_of_two();

    #[inline(always)]
    pub(crate) fn list(index: usize) -> Self {
        Self(core::ptr::without_provenance_mut(index))
    }

    #[inline(always)]
    pub(crate) fn block(block: Block) -> Self {
        Self(block.0.as_ptr())
    }

    /// Whether this is a list, and what follows is its head.
    #[inline(always)]
    pub(crate) fn is_list(self) -> bool {
        self.0.addr() < Self::LISTS
    }

    /// The number of the list, if this is one.
    #[inline(always)]
    pub(crate) fn as_list(self) -> usize {
        self.0.addr()
    }

    /// Makes `next` the block behind this one, if this is a block.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn set_next_free(self, next: Option<Block>) {
        // SAFETY: a listed block, says the caller.
        unsafe { self.0.byte_add(NEXT).cast::<Option<Block>>().write(next) }
    }
}

#[cfg(test)]
mod tests;
