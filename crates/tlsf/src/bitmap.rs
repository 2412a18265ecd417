//! The two levels of bitmaps over the lists: which of them hold a block.
//!
//! ```text
//! first:   bit f set  <=>  second[f] != 0
//! second:  bit s of second[f] set  <=>  list f * SECOND + s is not empty
//! ```
//!
//! Invariant: the two lines above. Cost: a search is two masks and two bit scans, whatever is in the heap.
//!
//! # Safety
//! Callers pass the numbers of lists, which are below `FIRST * SECOND`.
#![allow(unsafe_code)]

use core::num::NonZeroU32;
use freestone_base::bits::log2_floor;

/// One bit a list, one bit a word of them.
pub(crate) struct Bitmap<const FIRST: usize, const SECOND: usize> {
    first: u32,
    second: [u32; FIRST],
}

impl<const FIRST: usize, const SECOND: usize> Bitmap<FIRST, SECOND> {
    const SECOND_LOG2: u32 = log2_floor(SECOND);

    /// All lists empty.
    pub(crate) const fn new() -> Self {
        const {
            assert!(FIRST >= 1 && FIRST <= 32, "the first level has one bit a power of two in 32 bits");
            assert!(SECOND.is_power_of_two() && SECOND >= 2 && SECOND <= 32, "SECOND is 2, 4, 8, 16 or 32");
        }
        Self { first: 0, second: [0; FIRST] }
    }

    /// Marks list `index` as holding a block. The first level always, for a branch would take as long.
    #[inline(always)]
    pub(crate) fn set(&mut self, index: usize) {
        let first = index >> Self::SECOND_LOG2;
        debug_assert!(first < FIRST);
        // SAFETY: a list's number is below `FIRST * SECOND`.
        let word = unsafe { self.second.get_unchecked_mut(first) };
        *word |= 1 << (index & (SECOND - 1));
        self.first |= 1 << first;
    }

    /// Marks list `index`, which was marked as holding a block, as empty.
    #[inline(always)]
    pub(crate) fn clear(&mut self, index: usize) {
        let first = index >> Self::SECOND_LOG2;
        debug_assert!(first < FIRST);
        // SAFETY: a list's number is below `FIRST * SECOND`.
        let word = unsafe { self.second.get_unchecked_mut(first) };
        debug_assert!(*word >> (index & (SECOND - 1)) & 1 == 1);
        *word &= !(1 << (index & (SECOND - 1)));
        if *word == 0 {
            self.first &= !(1 << first);
        }
    }

    /// Whether list `index` is marked as holding a block.
    pub(crate) fn is_set(&self, index: usize) -> bool {
        self.second.get(index >> Self::SECOND_LOG2).is_some_and(|word| word >> (index & (SECOND - 1)) & 1 == 1)
    }

    /// Index of the lowest list at or above `index` that holds a block. `index` is a list's number.
    #[inline(always)]
    pub(crate) fn lowest_from(&self, index: usize) -> Option<usize> {
        let first = index >> Self::SECOND_LOG2;
        debug_assert!(first < FIRST);
        // SAFETY: a list's number is below `FIRST * SECOND`.
        let here = unsafe { *self.second.get_unchecked(first) } & (u32::MAX << (index & (SECOND - 1)));
        if let Some(here) = NonZeroU32::new(here) {
            return Some((first << Self::SECOND_LOG2) + here.trailing_zeros() as usize);
        }
        let above = NonZeroU32::new(self.first & (u32::MAX << first << 1))?;
        let first = above.trailing_zeros() as usize;
        // SAFETY: a bit of the first level is set only below `FIRST`, and only while its word has one.
        let word = unsafe { NonZeroU32::new_unchecked(*self.second.get_unchecked(first)) };
        Some((first << Self::SECOND_LOG2) + word.trailing_zeros() as usize)
    }

    /// Whether the first level agrees with the second.
    pub(crate) fn is_consistent(&self) -> bool {
        self.second.iter().enumerate().all(|(first, word)| (self.first >> first & 1 == 1) == (*word != 0))
    }
}

#[cfg(test)]
mod tests;
