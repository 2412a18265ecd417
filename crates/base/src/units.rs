//! Bytes, pages, and milliseconds as types.
//!
//! A page is always one of Freestone's own, of 64 KiB ([`PAGE_BYTES`]). A page of the operating system is called an "OS page", and its size is
//! known at run time only.

use core::ops::{Add, AddAssign, Sub, SubAssign};

/// log2 of [`PAGE_BYTES`].
pub const PAGE_BYTES_LOG2: u32 = 16;

/// Size of a page in bytes: the unit of the page map and of every run. 64 KiB is also the largest OS page that Freestone supports.
pub const PAGE_BYTES: usize = 1 << PAGE_BYTES_LOG2;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Bytes(pub usize);

/// A number of pages of [`PAGE_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Pages(pub u32);

impl Bytes {
    /// The pages that hold this many bytes, the last one perhaps in part; `None` beyond `u32` pages (256 TiB).
    ///
    /// ```
    /// use freestone_base::units::{Bytes, Pages};
    ///
    /// assert_eq!(Bytes(65_537).to_pages(), Some(Pages(2)));
    /// ```
    #[must_use]
    pub const fn to_pages(self) -> Option<Pages> {
        let pages = self.0.div_ceil(PAGE_BYTES);
        if pages > u32::MAX as usize { None } else { Some(Pages(pages as u32)) }
    }
}

impl Pages {
    /// No pages.
    pub const ZERO: Self = Self(0);
    /// More pages than any address range has.
    pub const MAX: Self = Self(u32::MAX);

    /// The whole pages in a number of bytes; [`Pages::MAX`] if there are more.
    #[must_use]
    pub const fn in_bytes(bytes: u64) -> Self {
        Self::saturating_from(bytes >> PAGE_BYTES_LOG2)
    }

    /// As many pages, or [`Pages::MAX`] if the number is larger.
    #[must_use]
    pub const fn saturating_from(pages: u64) -> Self {
        if pages > u32::MAX as u64 { Self::MAX } else { Self(pages as u32) }
    }

    /// The bytes in these pages.
    ///
    /// ```
    /// use freestone_base::units::{Bytes, Pages};
    ///
    /// assert_eq!(Pages(2).to_bytes(), Bytes(131_072));
    /// ```
    #[must_use]
    pub const fn to_bytes(self) -> Bytes {
        Bytes((self.0 as usize) << PAGE_BYTES_LOG2)
    }

    /// The sum, or [`Pages::MAX`] if it is larger.
    #[must_use]
    pub const fn saturating_add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// The difference, or no pages if it is negative.
    #[must_use]
    pub const fn saturating_sub(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }

    /// The difference, unless it is negative.
    #[must_use]
    pub const fn checked_sub(self, less: Self) -> Option<Self> {
        match self.0.checked_sub(less.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }
}

impl Add for Pages {
    type Output = Self;
    fn add(self, more: Self) -> Self {
        Self(self.0 + more.0)
    }
}

impl Sub for Pages {
    type Output = Self;
    fn sub(self, less: Self) -> Self {
        Self(self.0 - less.0)
    }
}

impl AddAssign for Pages {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

impl SubAssign for Pages {
    fn sub_assign(&mut self, less: Self) {
        *self = *self - less;
    }
}

/// A duration in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Millis(pub u32);

impl Millis {
    /// The largest duration: stands for never.
    pub const MAX: Self = Self(u32::MAX);
}

/// A moment: milliseconds of a monotonic clock, cut to 32 bits. Two moments can be compared if they are less than 24 days apart.
///
/// ```
/// use freestone_base::units::{Millis, Moment};
///
/// // The clock has passed the end of its 32 bits.
/// assert_eq!(Moment(4).since(Moment(u32::MAX)), Millis(5));
/// assert!(Moment(4).is_after(Moment(u32::MAX)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Moment(pub u32);

impl Moment {
    /// How long it is from `earlier` to this moment.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.wrapping_sub(earlier.0))
    }

    /// How long ago `earlier` was; zero if it comes after this moment, by 65 seconds at most: other threads' clocks may have been read later.
    #[must_use]
    pub const fn age_of(self, earlier: Self) -> Millis {
        let Millis(age) = self.since(earlier);
        Millis(age.wrapping_add(Self::LATER_MOST.0).saturating_sub(Self::LATER_MOST.0))
    }

    /// No other thread's clock was read later than this by more. Not half of all numbers: what lies more than 24 days back is not of now.
    const LATER_MOST: Millis = Millis(1 << 16);

    /// The moment that was `ago` before this one.
    #[must_use]
    pub const fn minus(self, ago: Millis) -> Self {
        Self(self.0.wrapping_sub(ago.0))
    }

    /// Whether this moment comes after `other`.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) as i32 > 0
    }
}

#[cfg(test)]
mod tests;
