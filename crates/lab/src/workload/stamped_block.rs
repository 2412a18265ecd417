//! A block of memory from the heap under test, and the stamps that prove it keeps its contents.
//!
//! Invariants: a [`Block`] is released at most once, because releasing consumes it; every access stays inside its size.
//!
//! # Safety
//! Every access is checked against the block's size, or its offset is derived from the size. Only [`Block::adopt`] makes a
//! block, and its caller ensures that the memory is valid.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Memory from a heap: an address and the requested size.
pub(crate) struct Block {
    address: NonNull<u8>,
    size: usize,
}

// SAFETY: a block owns its bytes: no other value refers to them, so they may be used by whichever thread has the block.
unsafe impl Send for Block {}

impl Block {
    /// The block of `size` bytes at `address`.
    ///
    /// # Safety
    /// The `size` bytes at `address` can be read and written, and nothing else refers to them until the block is released.
    pub(crate) unsafe fn adopt(address: NonNull<u8>, size: usize) -> Self {
        Self { address, size }
    }

    /// A pointer to its first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.address
    }

    /// The requested size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Its address as a number: shows whether a resize moved the block, and which OS pages it covers.
    pub(crate) fn address(&self) -> usize {
        self.address.as_ptr() as usize
    }

    /// Offset of the second stamp: the last word, or 0 where two words do not fit side by side.
    #[inline]
    fn last_word(&self) -> usize {
        if self.size >= 16 { self.size - 8 } else { 0 }
    }

    #[inline]
    fn word(&self, offset: usize) -> *mut u64 {
        debug_assert!(offset + 8 <= self.size);
        // SAFETY: the callers pass 0 or `last_word` of a block of at least 8 bytes, so the word ends inside the block.
        unsafe { self.address.as_ptr().add(offset) }.cast()
    }

    /// Writes `tag` at both ends; blocks below 8 bytes get its lowest byte.
    #[inline]
    pub(crate) fn stamp(&self, tag: u64) {
        if self.size >= 8 {
            // SAFETY: the first word lies inside the block, which has at least 8 bytes; the write may be unaligned.
            unsafe { self.word(0).write_unaligned(tag) };
            // SAFETY: the last word lies inside the block; the write may be unaligned.
            unsafe { self.word(self.last_word()).write_unaligned(tag) };
        } else if self.size > 0 {
            // SAFETY: the block has at least one byte.
            unsafe { self.address.as_ptr().write(tag as u8) }
        }
    }

    /// What [`Block::ends`] returns, at either end, after [`Block::stamp`] wrote `tag`.
    #[inline]
    pub(crate) fn expected_ends(&self, tag: u64) -> u64 {
        if self.size >= 8 { tag } else { tag & 0xFF }
    }

    /// The values at both ends, as [`Block::stamp`] wrote them; zeroes for a block without bytes.
    #[inline]
    pub(crate) fn ends(&self) -> (u64, u64) {
        if self.size >= 8 {
            // SAFETY: the first word lies inside the block, whose bytes `stamp` or the allocator initialised.
            let first = unsafe { self.word(0).read_unaligned() };
            // SAFETY: so does the last word.
            (first, unsafe { self.word(self.last_word()).read_unaligned() })
        } else if self.size > 0 {
            // SAFETY: the block has at least one byte, which `stamp` or the allocator initialised.
            let byte = u64::from(unsafe { self.address.as_ptr().read() });
            (byte, byte)
        } else {
            (0, 0)
        }
    }

    fn pointer(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.size, "offset {offset} outside a block of {} bytes", self.size);
        // SAFETY: the offset is inside the block, as checked above.
        unsafe { self.address.as_ptr().add(offset) }
    }

    /// Fills the bytes from offset `from` to the end with `byte`.
    pub(crate) fn fill_from(&self, from: usize, byte: u8) {
        if from < self.size {
            // SAFETY: the range from `from` to the size is inside the block.
            unsafe { self.pointer(from).write_bytes(byte, self.size - from) }
        }
    }

    /// Writes `byte` once in every `step` bytes: with a step of an OS page, the kernel must provide every page.
    pub(crate) fn touch(&self, step: usize, byte: u8) {
        for offset in (0..self.size).step_by(step) {
            // SAFETY: `pointer` checked that the byte is inside the block.
            unsafe { self.pointer(offset).write(byte) }
        }
    }

    /// The byte at `offset`, which must be inside the block.
    pub(crate) fn byte(&self, offset: usize) -> u8 {
        // SAFETY: `pointer` checked that the byte is inside the block; the workload or calloc initialised it.
        unsafe { self.pointer(offset).read() }
    }

    /// Increments the first byte `times` times, each time with a load and a store.
    pub(crate) fn increment_first(&self, times: u64) {
        let byte = self.pointer(0);
        for _ in 0..times {
            // SAFETY: the first byte is inside the block and belongs to this thread. Volatile: otherwise the loop becomes one addition.
            let value = unsafe { byte.read_volatile() };
            // SAFETY: the same byte.
            unsafe { byte.write_volatile(value.wrapping_add(1)) };
        }
    }

    /// The sum of all bytes.
    pub(crate) fn sum(&self) -> u64 {
        // SAFETY: the block's bytes were written by the workload or zeroed by calloc, and nothing writes to them during the call.
        let bytes = unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.size) };
        bytes.iter().map(|&byte| u64::from(byte)).sum()
    }
}

#[cfg(test)]
mod tests;
