//! A block and its header: the only file that knows where the bits lie.
//!
//! ```text
//!            +0            +8                                size   +8
//!   used:    | header      | payload ........................| next header
//!                          ^ address given out, a multiple of 16
//!   free:    | header      | next free | previous free | .. | size |
//!                            +8          +16            size-8
//!
//!   header:  bit 63 ............................. 16 | 15 ..... 0
//!            size (multiple of 16) | PREV_FREE | FREE | seal
//! ```
//!
//! The last word before the next header belongs to this block's payload while it is used; while it is free it holds its size, which
//! is how the next block finds its start. So a used block pays 8 bytes and nothing more.
//!
//! The *seal* is 16 bits of the header's address mixed with the heap's salt. It lies in the bytes that an overrun reaches first,
//! and its first byte is never 0, so that a terminating NUL written one byte too far is always seen.
//!
//! Invariants: sizes are multiples of 16, 32 or more (a region's sentinel: 0); a free block never follows a free block; every
//! address that is not the header of a used block and holds a valid seal is marked FREE (a block is marked before it
//! is merged), so that freeing it again is refused.
//!
//! # Safety
//! Every method that touches memory requires that the block's header, and for free blocks the links and the trailing size, lie in a
//! region of the heap that calls, to which it holds the only access. The links and sizes it reads are believed only after
//! the seal was compared, except in `*_unchecked` calls.
#![allow(unsafe_code)]

use crate::mapping::GRANULE;
use core::ptr::NonNull;

/// Bytes of bookkeeping in front of a used block.
pub const HEADER_BYTES: usize = 8;

/// The smallest block, header included: what a free one needs for its links and its size.
pub const LEAST_BLOCK_BYTES: usize = 32;

/// This block is free.
pub(crate) const FREE: usize = 1;
/// The block before this one is free, and its size lies in front of this header.
pub(crate) const PREV_FREE: usize = 2;

const SEAL_BITS: u32 = 16;
const NEXT: usize = 8;
const PREVIOUS: usize = 16;

/// Makes the seals of one heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealer {
    /// Any number that is even in its lowest bit.
    salt: usize,
}

impl Sealer {
    pub(crate) const NONE: Self = Self { salt: 0 };

    /// The sealer of the `number`-th heap; no two of 2^31 are alike.
    pub(crate) fn new(number: usize) -> Self {
        /// The odd number nearest to the word size over the golden ratio: spreads small numbers over all bits.
        const SPREAD: usize = 0x9E37_79B9_7F4A_7C15_u64 as usize;
        let spread = number.wrapping_mul(SPREAD);
        Self { salt: (spread ^ (spread >> (usize::BITS / 2))) & !1 }
    }

    /// The address with every bit mixed: what footers are mixed with.
    #[inline(always)]
    pub(crate) fn mix(self, address: usize) -> usize {
        (address >> 3) ^ self.salt
    }

    /// The 16 bits that go into a header at `address`. The lowest is set, because headers lie at odd multiples of 8.
    #[inline(always)]
    fn seal(self, address: usize) -> u16 {
        self.mix(address) as u16
    }
}

/// A header's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Header(u64);

impl Header {
    #[inline(always)]
    fn bits(self) -> usize {
        (self.0 >> SEAL_BITS) as usize
    }
    #[inline(always)]
    pub(crate) fn size(self) -> usize {
        self.bits() & !(GRANULE - 1)
    }
    #[inline(always)]
    pub(crate) fn is_free(self) -> bool {
        self.0 & ((FREE as u64) << SEAL_BITS) != 0
    }
    #[inline(always)]
    pub(crate) fn is_prev_free(self) -> bool {
        self.0 & ((PREV_FREE as u64) << SEAL_BITS) != 0
    }
    /// The same header with `flag` set.
    #[inline(always)]
    pub(crate) fn with(self, flag: usize) -> Self {
        Self(self.0 | ((flag as u64) << SEAL_BITS))
    }
    /// The same header with `flag` clear.
    #[inline(always)]
    pub(crate) fn without(self, flag: usize) -> Self {
        Self(self.0 & !((flag as u64) << SEAL_BITS))
    }
    /// The header of a used block of `size` bytes in the same place: seal and PREV_FREE are kept.
    #[inline(always)]
    pub(crate) fn used(self, size: usize) -> Self {
        Self((self.0 & (0xFFFF | ((PREV_FREE as u64) << SEAL_BITS))) | ((size as u64) << SEAL_BITS))
    }
    /// The same seal with other contents. `size` is a multiple of 16, `flags` are below 16.
    #[inline(always)]
    pub(crate) fn resized(self, size: usize, flags: usize) -> Self {
        Self((self.0 & 0xFFFF) | (((size | flags) as u64) << SEAL_BITS))
    }
}

/// A pointer to a block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Block(NonNull<u8>);

impl Block {
    /// The block whose header is at `header`.
    #[inline(always)]
    pub(crate) fn at(header: NonNull<u8>) -> Self {
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
    pub(crate) unsafe fn header(self) -> Header {
        // SAFETY: headers are 8-aligned and readable, says the caller.
        Header(unsafe { self.0.cast().read() })
    }

    /// Writes the header, as one whole word: the compiler would narrow a changed flag to a store of one byte, and the next read of
    /// the whole header would have to wait until that has left the store buffer.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn set_header(self, header: Header) {
        // SAFETY: headers are 8-aligned and writable, says the caller.
        unsafe { self.0.cast().write_volatile(header.0) }
    }

    /// Writes a header with a fresh seal.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn seal(self, sealer: Sealer, size: usize, flags: usize) {
        let header = Header(u64::from(sealer.seal(self.address())) | (((size | flags) as u64) << SEAL_BITS));
        // SAFETY: the same obligation.
        unsafe { self.set_header(header) }
    }

    /// Overwrites the seal, so that this address is no longer taken for a header.
    ///
    /// # Safety
    /// See the file's header.
    pub(crate) unsafe fn unseal(self) {
        // SAFETY: the same obligation.
        unsafe { self.set_header(Header(0)) }
    }

    /// Whether `header`, read from this block, has the seal that belongs here.
    #[inline(always)]
    pub(crate) fn is_sealed(self, header: Header, sealer: Sealer) -> bool {
        header.0 as u16 == sealer.seal(self.address())
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

    /// Where the next block in this free block's list is written down.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn next_free_place(self) -> *mut Option<Self> {
        // SAFETY: inside the block.
        unsafe { self.0.byte_add(NEXT).cast().as_ptr() }
    }

    /// The previous block in this free block's list; none if it is the head.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn prev_free(self) -> Option<Self> {
        // SAFETY: free blocks have an initialised, aligned link there.
        unsafe { self.0.byte_add(PREVIOUS).cast().read() }
    }

    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn set_prev_free(self, previous: Option<Self>) {
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

#[cfg(test)]
mod tests;
