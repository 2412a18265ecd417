//! Bytes and pages as types.
//!
//! A page is always one of Freestone's own, of 64 KiB ([`PAGE_BYTES`]). A page of the operating system is called an "OS page", and its size is
//! known at run time only.

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
    #[must_use]
    pub const fn to_pages(self) -> Option<Pages> {
        let pages = self.0.div_ceil(PAGE_BYTES);
        if pages > u32::MAX as usize { None } else { Some(Pages(pages as u32)) }
    }
}

impl Pages {
    /// The bytes in these pages.
    #[must_use]
    pub const fn to_bytes(self) -> Bytes {
        Bytes((self.0 as usize) << PAGE_BYTES_LOG2)
    }
}

#[cfg(test)]
mod tests;
