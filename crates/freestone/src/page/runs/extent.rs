//! Pages in a row, and their state while they are free.

use crate::span::{Kind, PageIndex, Span};
use freestone_base::units::{Moment, Pages};

/// Pages in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first page.
    pub(crate) first: PageIndex,
    /// How many pages.
    pub(crate) pages: Pages,
}

impl Extent {
    /// `pages` from `first` on.
    pub(crate) fn new(first: PageIndex, pages: Pages) -> Self {
        Self { first, pages }
    }

    /// The page behind the last one.
    pub(crate) fn end(self) -> PageIndex {
        self.first + self.pages
    }

    /// The last page.
    pub(crate) fn last(self) -> PageIndex {
        self.end() - Pages(1)
    }

    /// The length in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.pages.to_bytes().0
    }
}

/// The state of free pages.
#[derive(Clone, Copy, Debug)]
pub(in crate::page) struct FreeState {
    /// Clean, dirty, stuck or reserved; or `None`: given up.
    pub(in crate::page) kind: Kind,
    /// Dirty: since when.
    pub(in crate::page) since: Moment,
    /// Whether huge pages are requested somewhere in them.
    pub(in crate::page) is_huge: bool,
}

impl FreeState {
    /// Mapped, without memory, as the kernel gives pages.
    pub(in crate::page) const CLEAN: Self = Self { kind: Kind::Clean, since: Moment(0), is_huge: false };
    /// Not mapped.
    pub(in crate::page) const RESERVED: Self = Self { kind: Kind::Reserved, ..Self::CLEAN };
    /// Given up: another part of the program has mapped something there.
    pub(in crate::page) const FOREIGN: Self = Self { kind: Kind::None, ..Self::CLEAN };

    /// With memory behind them since `since`.
    pub(in crate::page) fn dirty(since: Moment, is_huge: bool) -> Self {
        Self { kind: Kind::Dirty, since, is_huge }
    }

    /// The state in the record of a free run.
    pub(super) fn of(record: &Span) -> Self {
        Self { kind: record.kind.get(), since: record.dirty_since(), is_huge: record.is_huge.get() }
    }
}
