//! The two levels of bitmaps over the lists: which of them hold a block.
//!
//! ```text
//! first:   bit f set  <=>  second[f] != 0
//! second:  bit s of second[f] set  <=>  list (FIRST_LEVEL + f) * SECOND + s is not empty
//! ```
//!
//! Invariant: the two lines above. Cost: a search is two masks and two bit scans, whatever is in the heap.
//!
//! # Safety
//! Callers pass the numbers of lists, see `mapping.rs`.
#![allow(unsafe_code)]

use crate::mapping::{FIRST_LEVEL, MOST_LEVELS};
use core::hint::cold_path;
use core::num::{NonZeroU32, NonZeroUsize};
use freestone_base::bits::log2_floor;

/// One bit a list, one bit a word of them.
pub(crate) struct Bitmap<const FIRST: usize, const SECOND: usize> {
    first: usize,
    second: [u32; FIRST],
}

impl<const FIRST: usize, const SECOND: usize> Bitmap<FIRST, SECOND> {
    const SECOND_LOG2: u32 = log2_floor(SECOND);

    /// All lists empty.
    pub(crate) const fn new() -> Self {
        const {
            assert!(FIRST >= 1 && FIRST <= MOST_LEVELS, "the first level has at most 43 powers of two");
            assert!(SECOND.is_power_of_two() && SECOND >= 2 && SECOND <= 32, "SECOND is 2, 4, 8, 16 or 32");
            assert!(FIRST_LEVEL.is_multiple_of(usize::BITS as usize), "a shift by a level needs no subtraction");
        }
        Self { first: 0, second: [0; FIRST] }
    }

    /// The word of level `level`. Its place is found by one sum, which a compiler folds into the address.
    #[inline(always)]
    fn word(&self, level: usize) -> *const u32 {
        debug_assert!(level - FIRST_LEVEL < FIRST);
        self.second.as_ptr().wrapping_sub(FIRST_LEVEL).wrapping_add(level)
    }

    /// As [`Bitmap::word`], to write to.
    #[inline(always)]
    fn word_mut(&mut self, level: usize) -> &mut u32 {
        debug_assert!(level - FIRST_LEVEL < FIRST);
        // SAFETY: a list's level is one of `FIRST`, from `FIRST_LEVEL` on.
        unsafe { &mut *self.second.as_mut_ptr().wrapping_sub(FIRST_LEVEL).wrapping_add(level) }
    }

    /// Marks list `index` as holding a block, whether it was marked or not.
    #[inline(always)]
    pub(crate) fn set(&mut self, index: usize) {
        let level = index >> Self::SECOND_LOG2;
        let word = self.word_mut(level);
        let before = *word;
        *word = before | 1 << (index & (SECOND - 1));
        if before == 0 {
            cold_path();
            self.first |= 1_usize.wrapping_shl(level as u32);
        }
    }

    /// Marks list `index`, which was marked as holding a block, as empty, if it is.
    #[inline(always)]
    pub(crate) fn clear_if(&mut self, is_empty: bool, index: usize) {
        let level = index >> Self::SECOND_LOG2;
        let word = self.word_mut(level);
        debug_assert!(*word >> (index & (SECOND - 1)) & 1 == 1);
        *word &= !(u32::from(is_empty) << (index & (SECOND - 1)));
        if *word == 0 {
            cold_path();
            self.first &= !1_usize.wrapping_shl(level as u32);
        }
    }

    /// Whether list `index` is marked as holding a block.
    pub(crate) fn is_set(&self, index: usize) -> bool {
        let level = (index >> Self::SECOND_LOG2).wrapping_sub(FIRST_LEVEL);
        self.second.get(level).is_some_and(|word| word >> (index & (SECOND - 1)) & 1 == 1)
    }

    /// Index of the lowest list at or above `index` that holds a block. `index` is a list's number.
    #[inline(always)]
    pub(crate) fn lowest_from(&self, index: usize) -> Option<usize> {
        let level = index >> Self::SECOND_LOG2;
        // SAFETY: a list's level is one of `FIRST`, from `FIRST_LEVEL` on.
        let here = unsafe { self.word(level).read() } >> (index & (SECOND - 1));
        if let Some(here) = NonZeroU32::new(here) {
            return Some(index + here.trailing_zeros() as usize);
        }
        cold_path();
        let above = NonZeroUsize::new(self.first & (usize::MAX - 1).wrapping_shl(level as u32))?;
        let level = FIRST_LEVEL + above.trailing_zeros() as usize;
        // SAFETY: a bit of the first level is set only for one of `FIRST`, and only while its word has one.
        let word = unsafe { NonZeroU32::new_unchecked(self.word(level).read()) };
        Some((level << Self::SECOND_LOG2) + word.trailing_zeros() as usize)
    }

    /// Whether the first level agrees with the second.
    pub(crate) fn is_consistent(&self) -> bool {
        self.second
            .iter()
            .enumerate()
            .all(|(level, word)| (self.first.checked_shr(level as u32).unwrap_or(0) & 1 == 1) == (*word != 0))
    }
}

#[cfg(test)]
mod tests;
