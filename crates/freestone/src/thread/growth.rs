//! The size that a resized block should get: sizes in, a decision out.
//!
//! A small block stays where it is as long as the new size fits and fills enough of it. A block that moves because it grew a little is likely
//! to grow again: it gets room, so that a buffer that grows in small steps moves a few times, not at every size class. Short blocks get less room, and
//! keep less, because programs have many of them (`docs/decisions/0068-what-resized-blocks-keep.md`).

use crate::size_class::GRANULE_BYTES;

/// A block of at most this many bytes is short.
const SHORT_MAX: usize = 512;

/// A short block stays while this many sixteenths of it are used, a longer one while [`STAY_SIXTEENTHS`] are. A block that has just got room uses more
/// than that, also where its size class adds an eighth: half of a short one, and a quarter of a longer one.
const SHORT_STAY_SIXTEENTHS: usize = 7;

/// See [`SHORT_STAY_SIXTEENTHS`].
const STAY_SIXTEENTHS: usize = 3;

/// A block that grows in steps gets four times its size between these two, otherwise twice. (From 27 bytes by eighths to 32 KiB: eight moves.)
const QUADRUPLE_LEAST: usize = SHORT_MAX / 2 + 1;

/// See [`QUADRUPLE_LEAST`].
const QUADRUPLE_MAX: usize = 8 * 1024;

/// Whether a small block of `usable` bytes stays where it is when it is to hold `size`.
#[inline(always)]
#[must_use]
pub(crate) fn small_stays(usable: usize, size: usize) -> bool {
    let sixteenths = if usable <= SHORT_MAX { SHORT_STAY_SIXTEENTHS } else { STAY_SIXTEENTHS };
    size <= usable && size.max(GRANULE_BYTES) * 16 >= usable * sixteenths
}

/// The size that a block of `usable` bytes should get when it moves to hold `size`: more than `size` if it grows by less than twice.
#[inline(always)]
#[must_use]
pub(crate) fn with_growth_room(usable: usize, size: usize) -> usize {
    let factor = if (QUADRUPLE_LEAST..=QUADRUPLE_MAX).contains(&usable) { 4 } else { 2 };
    if size > usable && size < usable.saturating_mul(2) { usable.saturating_mul(factor) } else { size }
}

#[cfg(test)]
mod tests;
