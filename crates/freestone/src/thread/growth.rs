//! The size that a resized block should get: sizes in, a decision out.
//!
//! A small block stays where it is as long as the new size fits and fills a quarter of it. A block that moves because it grew a little is likely
//! to grow again: it gets room, so that a buffer that grows in small steps moves a few times, not at every size class.

use crate::size_class::GRANULE_BYTES;

/// A small block stays while at least one part in this many of it is used: a block that has just got room uses more than that.
const STAY_SHARE: usize = 4;

/// A block that grows in steps gets four times its size up to here, twice from here on. (From 27 bytes by eighths to 32 KiB: seven moves.)
const QUADRUPLE_MAX: usize = 8 * 1024;

/// Whether a small block of `usable` bytes stays where it is when it is to hold `size`.
#[inline(always)]
#[must_use]
pub(crate) fn small_stays(usable: usize, size: usize) -> bool {
    size <= usable && size.max(GRANULE_BYTES) >= usable / STAY_SHARE
}

/// The size that a block of `usable` bytes should get when it moves to hold `size`: more than `size` if it grows by less than twice.
#[inline(always)]
#[must_use]
pub(crate) fn with_growth_room(usable: usize, size: usize) -> usize {
    let factor = if usable <= QUADRUPLE_MAX { 4 } else { 2 };
    if size > usable && size < usable.saturating_mul(2) { usable.saturating_mul(factor) } else { size }
}

#[cfg(test)]
mod tests;
