//! The bitmap of what was collected.

use crate::size_class::GRANULE_BYTES;
use crate::span::Layout;
use freestone_base::units::PAGE_BYTES;

/// Words that a bit of the summary stands for: those of an OS page, or of a part of one. A bitmap of which a few words are set may be one of many GiB.
const GROUP: usize = 512;

/// A bit for each granule of the address range, set where a block starts; and a summary, with a bit for each [`GROUP`] of words that has one.
pub(super) struct Bits<'a> {
    words: &'a mut [u64],
    summary: &'a mut [u64],
    layout: &'a Layout,
}

impl<'a> Bits<'a> {
    /// Words for a page.
    const WORDS_PER_PAGE: usize = PAGE_BYTES / GRANULE_BYTES / 64;

    /// Words for so many pages, with those of the summary.
    pub(super) fn n_words(pages: usize) -> usize {
        let n = pages * Self::WORDS_PER_PAGE;
        n + n.div_ceil(64 * GROUP)
    }

    /// [`Bits::n_words`] words that are all zero, for the granules from the first page on.
    pub(super) fn new(words: &'a mut [u64], layout: &'a Layout) -> Self {
        let (summary, words) = words.split_at_mut(words.len().div_ceil(64 * GROUP + 1));
        Self { words, summary, layout }
    }

    /// Where the pages are.
    pub(super) fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Sets the bit of an address. Returns whether it was not set, and there is one.
    pub(super) fn set(&mut self, address: usize) -> bool {
        let granule = (address - self.layout.base.addr()) / GRANULE_BYTES;
        let Some(word) = self.words.get_mut(granule / 64) else { return false };
        let before = *word;
        *word |= 1 << (granule % 64);
        let group = granule / 64 / GROUP;
        if let Some(groups) = self.summary.get_mut(group / 64).filter(|_| before == 0) {
            *groups |= 1 << (group % 64);
        }
        *word != before
    }

    /// Whether the bit of an address is set.
    pub(super) fn is_set(&self, address: usize) -> bool {
        let granule = (address - self.layout.base.addr()) / GRANULE_BYTES;
        self.words.get(granule / 64).is_some_and(|word| word >> (granule % 64) & 1 == 1)
    }

    /// The first granule from one on whose bit is set.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let group = from / 64 / GROUP;
        let group_end = ((group + 1) * GROUP).min(self.words.len());
        next_bit(self.words.get(..group_end)?, from).or_else(|| {
            let group = next_bit(self.summary, group + 1)?;
            next_bit(self.words, group * GROUP * 64)
        })
    }
}

/// The first bit from one on that is set.
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    let (at, kept) = (from / 64, u64::MAX << (from % 64));
    let first = words.get(at)? & kept;
    if first != 0 {
        return Some(at * 64 + first.trailing_zeros() as usize);
    }
    let ahead = words.get(at + 1..)?.iter().position(|word| *word != 0)?;
    Some((at + 1 + ahead) * 64 + words.get(at + 1 + ahead)?.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests;
