//! How many pages are in runs of each kind.

use crate::span::Kind;
use freestone_base::units::Pages;

/// See the module header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindCounts([Pages; Kind::COUNT]);

impl KindCounts {
    /// No pages.
    pub(super) const ZERO: Self = Self([Pages::ZERO; Kind::COUNT]);

    /// Pages of one kind.
    pub(crate) fn of(&self, kind: Kind) -> Pages {
        self.0[kind as usize]
    }

    /// Pages of each kind.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Kind, Pages)> {
        Kind::ALL.into_iter().zip(self.0)
    }

    /// Counts pages that become of a kind.
    pub(super) fn add(&mut self, kind: Kind, pages: Pages) {
        self.0[kind as usize] += pages;
    }

    /// Counts pages that are no longer of a kind.
    pub(super) fn subtract(&mut self, kind: Kind, pages: Pages) {
        self.0[kind as usize] -= pages;
    }

    /// Pages in small spans, large blocks and thread heaps.
    pub(in crate::page) fn in_use(&self) -> Pages {
        self.of(Kind::Small) + self.of(Kind::Large) + self.of(Kind::Metadata)
    }

    /// Free pages that may have memory behind them.
    pub(in crate::page) fn free_with_memory(&self) -> Pages {
        self.of(Kind::Dirty) + self.of(Kind::Stuck) + self.of(Kind::Purging)
    }
}
