//! The bitmap of what was collected.

use crate::size_class::GRANULE_BYTES;
use crate::span::Layout;
use freestone_base::units::PAGE_BYTES;

/// A bit for each granule of the address range, set where a block starts.
pub(super) struct Bits<'a> {
    words: &'a mut [u64],
    layout: &'a Layout,
}

impl<'a> Bits<'a> {
    /// Words for a page.
    pub(super) const WORDS_PER_PAGE: usize = PAGE_BYTES / GRANULE_BYTES / 64;

    /// Words that are all zero, for the granules from the first page on.
    pub(super) fn new(words: &'a mut [u64], layout: &'a Layout) -> Self {
        Self { words, layout }
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
        *word != before
    }

    /// Whether the bit of an address is set.
    pub(super) fn is_set(&self, address: usize) -> bool {
        let granule = (address - self.layout.base.addr()) / GRANULE_BYTES;
        self.words.get(granule / 64).is_some_and(|word| word >> (granule % 64) & 1 == 1)
    }

    /// The first granule from one on whose bit is set.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let (at, kept) = (from / 64, u64::MAX << (from % 64));
        let first = self.words.get(at)? & kept;
        if first != 0 {
            return Some(at * 64 + first.trailing_zeros() as usize);
        }
        let rest = self.words.get(at + 1..)?;
        let ahead = rest.iter().position(|word| *word != 0)?;
        Some((at + 1 + ahead) * 64 + rest.get(ahead)?.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests;
