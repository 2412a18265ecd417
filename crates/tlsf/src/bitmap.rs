//! Two levels of bitmaps: one bit per list that holds a block.
//!
//! ```text
//! first:   bit f set  <=>  second[f] != 0
//! second:  bit s of second[f] set  <=>  list (FIRST_LEVEL + f) * SECOND + s is not empty
//! ```
//!
//! Invariant: the two lines above. Cost: a search is at most two masks and two bit scans, whatever is in the heap.
//!
//! # Safety
//! A [`ListIndex`] comes from the size of a block of this heap, or is that plus one. Regions are shorter than
//! [`size_limit`](crate::mapping::size_limit) of `FIRST`, so its level is one of the `FIRST` levels, and the word of that level exists.
#![allow(unsafe_code)]

use crate::mapping::{FIRST_LEVEL, ListIndex, MOST_LEVELS};
use core::num::{NonZeroU32, NonZeroUsize};
use freestone_base::branch::cold_path;

/// One bit per list, in one word per first level; and one bit per word.
pub(crate) struct Bitmap<const FIRST: usize, const SECOND: usize> {
    first: usize,
    second: [u32; FIRST],
}

impl<const FIRST: usize, const SECOND: usize> Bitmap<FIRST, SECOND> {
    /// The bitmap of a heap whose lists are all empty.
    pub(crate) const fn new() -> Self {
        const {
            assert!(FIRST >= 1 && FIRST <= MOST_LEVELS, "FIRST is 1 to 43: a header stores 48 bits of size");
            assert!(SECOND.is_power_of_two() && SECOND >= 2 && SECOND <= 32, "SECOND is 2, 4, 8, 16 or 32");
            assert!(FIRST_LEVEL % usize::BITS as usize == 0, "a shift by a level needs no subtraction");
        }
        Self { first: 0, second: [0; FIRST] }
    }

    /// Where the word of `level` is. One addition finds it, which the compiler folds into the address.
    #[inline(always)]
    fn word(&self, level: usize) -> *const u32 {
        debug_assert!(level - FIRST_LEVEL < FIRST);
        self.second.as_ptr().wrapping_sub(FIRST_LEVEL).wrapping_add(level)
    }

    /// The word of `level`, to be changed.
    #[inline(always)]
    fn word_mut(&mut self, level: usize) -> &mut u32 {
        debug_assert!(level - FIRST_LEVEL < FIRST);
        let word = self.second.as_mut_ptr().wrapping_sub(FIRST_LEVEL).wrapping_add(level);
        // SAFETY: the level is one of the `FIRST` levels, which are stored as `FIRST_LEVEL` and up: the word is in the array.
        unsafe { &mut *word }
    }

    /// Marks list `index` as holding a block, whether it was marked or not.
    #[inline(always)]
    pub(crate) fn set(&mut self, index: ListIndex) {
        let level = index.level(SECOND);
        let word = self.word_mut(level);
        let before = *word;
        *word = before | 1 << index.step(SECOND);
        if before == 0 {
            cold_path();
            self.first |= 1_usize.wrapping_shl(level as u32);
        }
    }

    /// Marks list `index`, which is marked as holding a block, as empty if `is_empty` says so.
    #[inline(always)]
    pub(crate) fn clear_if(&mut self, is_empty: bool, index: ListIndex) {
        let level = index.level(SECOND);
        let word = self.word_mut(level);
        debug_assert!(*word >> index.step(SECOND) & 1 == 1);
        *word &= !(u32::from(is_empty) << index.step(SECOND));
        if *word == 0 {
            cold_path();
            self.first &= !1_usize.wrapping_shl(level as u32);
        }
    }

    /// Whether list `index` is marked as holding a block.
    pub(crate) fn is_set(&self, index: ListIndex) -> bool {
        let level = index.level(SECOND).wrapping_sub(FIRST_LEVEL);
        self.second.get(level).is_some_and(|word| word >> index.step(SECOND) & 1 == 1)
    }

    /// The lowest list at or above `index` that holds a block.
    #[inline(always)]
    pub(crate) fn lowest_from(&self, index: ListIndex) -> Option<ListIndex> {
        let level = index.level(SECOND);
        // SAFETY: the level of a list's index is one of the `FIRST` levels: the word is in the array.
        let here = unsafe { self.word(level).read() } >> index.step(SECOND);
        if let Some(here) = NonZeroU32::new(here) {
            return Some(ListIndex::of_number(index.number() + here.trailing_zeros() as usize));
        }
        cold_path();
        let above = NonZeroUsize::new(self.first & (usize::MAX - 1).wrapping_shl(level as u32))?;
        let level = FIRST_LEVEL + above.trailing_zeros() as usize;
        // SAFETY: only bits of the `FIRST` levels are ever set in `first`: the word is in the array.
        let word = unsafe { self.word(level).read() };
        // SAFETY: a bit of `first` is set only while its word has a bit set.
        let word = unsafe { NonZeroU32::new_unchecked(word) };
        Some(ListIndex::of_level(level, word.trailing_zeros() as usize, SECOND))
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
