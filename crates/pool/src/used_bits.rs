//! A bit for each block, set while it is in use: how a second free is seen at once, without a header.
//!
//! The words lie behind the blocks. A word is written for the first time when the first of its 64 blocks is carved, so that making a
//! pool touches no memory.
//!
//! # Safety
//! Callers name blocks whose word was begun.
#![allow(unsafe_code)]

use crate::shape::BLOCKS_A_WORD;
use core::ptr::NonNull;

/// The words of one pool.
#[derive(Debug)]
pub(crate) struct UsedBits(NonNull<u64>);

impl UsedBits {
    /// The words at `start`, none of them begun.
    pub(crate) fn at(start: NonNull<u8>) -> Self {
        Self(start.cast())
    }

    /// Prepares the bit of the next block to be carved. Blocks are carved in order.
    ///
    /// # Safety
    /// - There are words for `index`, and nobody else uses them.
    pub(crate) unsafe fn begin(&mut self, index: usize) {
        if index.is_multiple_of(BLOCKS_A_WORD) {
            // SAFETY: the caller's promise.
            unsafe { self.0.add(index / BLOCKS_A_WORD).write(0) };
        }
    }

    /// Whether a block is in use.
    ///
    /// # Safety
    /// - The word of `index` was begun.
    #[inline(always)]
    pub(crate) unsafe fn is_set(&self, index: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index / BLOCKS_A_WORD).read() & mask(index) != 0 }
    }

    /// Turns the bit of a block over.
    ///
    /// # Safety
    /// - The word of `index` was begun.
    #[inline(always)]
    pub(crate) unsafe fn flip(&mut self, index: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let word = self.0.add(index / BLOCKS_A_WORD);
            word.write(word.read() ^ mask(index));
        }
    }
}

#[inline(always)]
fn mask(index: usize) -> u64 {
    1 << (index % BLOCKS_A_WORD)
}
