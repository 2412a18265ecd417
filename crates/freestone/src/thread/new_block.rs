//! A block that was just allocated.

use core::ptr;

/// See the module header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewBlock {
    /// Its first byte, or null.
    pub start: *mut u8,
    /// Whether all of it reads as zero.
    pub zero: bool,
}

impl NewBlock {
    /// No memory.
    pub(crate) const NONE: Self = Self { start: ptr::null_mut(), zero: false };
}
