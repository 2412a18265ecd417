//! A set of OS pages, one bit each: Miri takes a second to look at the pages of an address range one by one.

use alloc::vec::Vec;
use core::ops::Range;

/// See the module header. It starts empty, with room for no page.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    words: Vec<u64>,
}

impl PageSet {
    /// An empty set with room for `n_pages`.
    pub(super) fn with_room(n_pages: usize) -> Self {
        Self { words: alloc::vec![0; n_pages.div_ceil(64)] }
    }

    /// Puts the pages of a range into the set, or takes them out.
    pub(super) fn set(&mut self, pages: Range<usize>, are_in: bool) {
        for (word, mask) in by_words(pages) {
            self.words[word] = if are_in { self.words[word] | mask } else { self.words[word] & !mask };
        }
    }

    /// Puts as many pages from `to` on into the set, or takes them out, as those of a range are.
    pub(super) fn copy(&mut self, from: Range<usize>, to: usize) {
        for (at, page) in from.enumerate() {
            self.set(to + at..to + at + 1, self.has_all(page..page + 1));
        }
    }

    /// Whether every page of a range is in the set.
    pub(super) fn has_all(&self, pages: Range<usize>) -> bool {
        by_words(pages).all(|(word, mask)| self.words[word] & mask == mask)
    }

    /// Whether a page of a range is in the set.
    pub(super) fn has_any(&self, pages: Range<usize>) -> bool {
        by_words(pages).any(|(word, mask)| self.words[word] & mask != 0)
    }

    /// Pages in the set.
    pub(super) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The pages in the set, in their order.
    pub(super) fn pages(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(word, &bits)| pages_of(word, bits))
    }

    /// The pages in this set that are not in `others`, in their order.
    pub(super) fn without<'set>(&'set self, others: &'set Self) -> impl Iterator<Item = usize> + 'set {
        let words = self.words.iter().zip(&others.words).map(|(word, others)| word & !others);
        words.enumerate().flat_map(|(word, bits)| pages_of(word, bits))
    }
}

/// The pages that the bits of a word stand for.
fn pages_of(word: usize, bits: u64) -> impl Iterator<Item = usize> {
    let rest = core::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
    rest.take_while(|&bits| bits != 0).map(move |bits| 64 * word + bits.trailing_zeros() as usize)
}

/// The words that have the pages of a range, and their bits in each.
fn by_words(pages: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    (pages.start / 64..pages.end.div_ceil(64)).map(move |word| {
        let below = |page: usize| match page.saturating_sub(64 * word) {
            n @ 0..64 => (1 << n) - 1,
            _ => u64::MAX,
        };
        (word, below(pages.end) & !below(pages.start))
    })
}

#[cfg(test)]
mod tests;
