//! The number of a page.

use core::fmt;
use core::ops::{Add, Sub};
use freestone_base::units::Pages;

/// The number of a page in the address range: its distance from page 0, in pages. Page 0 is never handed out, so that 0 means "none" where
/// a record links to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct PageIndex(pub u32);

impl PageIndex {
    /// No page.
    pub(crate) const NONE: Self = Self(0);

    /// This page, unless it is [`PageIndex::NONE`].
    #[must_use]
    pub(crate) const fn some(self) -> Option<Self> {
        if self.0 == 0 { None } else { Some(self) }
    }
}

impl Add<Pages> for PageIndex {
    type Output = Self;
    fn add(self, pages: Pages) -> Self {
        Self(self.0 + pages.0)
    }
}

impl Sub<Pages> for PageIndex {
    type Output = Self;
    fn sub(self, pages: Pages) -> Self {
        Self(self.0 - pages.0)
    }
}

impl Sub for PageIndex {
    type Output = Pages;
    fn sub(self, other: Self) -> Pages {
        Pages(self.0 - other.0)
    }
}

impl fmt::Display for PageIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
