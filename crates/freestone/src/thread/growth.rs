//! The size that a resized block should get: sizes in, a decision out; and which blocks have grown lately.
//!
//! A small block stays where it is as long as the new size fits and fills three quarters of it. One that has to move because it grew a little gets what was asked for the first time: programs have
//! many blocks that grow once. The next time it gets room, so that a buffer that grows in small steps moves at each doubling, not at every size class
//! (`docs/decisions/0086-room-from-the-second-growth-on.md`).

use crate::size_class::{GRANULE_BYTES, SMALL_MAX};
use core::cell::Cell;

/// A block stays while this many sixteenths of it are used.
const STAY_SIXTEENTHS: usize = 12;

/// The same of a block that has grown. One that has just got room uses more than that, also where its size class adds an eighth.
const GROWN_STAY_SIXTEENTHS: usize = 7;

/// The buffers that a thread may grow side by side before it forgets some.
const REMEMBERED: usize = 1 << REMEMBERED_LOG2;

/// See [`REMEMBERED`].
const REMEMBERED_LOG2: u32 = 5;

/// The golden ratio, of addresses in granules: multiplied by it, the blocks of a span spread over the places.
const SPREAD: u32 = 0x9E37_79B9 / GRANULE_BYTES as u32;

/// Whether a small block of `usable` bytes stays where it is when it is to hold `size`. It does if another would have as many.
#[inline(always)]
#[must_use]
pub(crate) fn small_stays(usable: usize, size: usize) -> bool {
    size <= usable && (size + GRANULE_BYTES) * 16 >= usable * STAY_SIXTEENTHS
}

/// Whether a small block of `usable` bytes that has grown before keeps the room that it may have got when it is to hold `size`.
#[inline(always)]
#[must_use]
pub(crate) fn keeps_room(usable: usize, size: usize) -> bool {
    size <= usable && size * 16 >= usable * GROWN_STAY_SIXTEENTHS
}

/// Whether a block of `usable` bytes that is to hold `size` grows by less than twice: it is likely to grow again.
#[inline(always)]
pub(crate) fn grows_a_little(usable: usize, size: usize) -> bool {
    size > usable && size < usable.saturating_mul(2)
}

/// The size that a block of `usable` bytes that grows a little, and has before, should get when it moves to hold `size`: twice its own. What a small block can hold gets no
/// more than the largest has: a large one would not keep it.
#[inline(always)]
#[must_use]
pub(crate) fn with_growth_room(usable: usize, size: usize) -> usize {
    let most = if size <= SMALL_MAX { SMALL_MAX } else { usize::MAX };
    usable.saturating_mul(2).min(most)
}

/// Small blocks that a heap has moved because they grew, and that may grow again. A block that was freed since may be among them: who has its address
/// now gets room at once.
#[derive(Debug)]
pub(crate) struct GrownBlocks {
    addrs: [Cell<usize>; REMEMBERED],
}

impl GrownBlocks {
    /// None.
    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        Self { addrs: [const { Cell::new(0) }; REMEMBERED] }
    }

    fn place(&self, addr: usize) -> &Cell<usize> {
        let spread = (addr as u32).wrapping_mul(SPREAD);
        &self.addrs[(spread >> (u32::BITS - REMEMBERED_LOG2)) as usize]
    }

    /// Whether the small block at `addr` has grown a little before.
    #[inline]
    pub(crate) fn has(&self, addr: usize) -> bool {
        self.place(addr).get() == addr
    }

    /// Whether the small block at `addr`, of `usable` bytes, stays where it is when it is to hold `size`: it is used enough, or may have room that it keeps.
    #[inline]
    pub(crate) fn stays(&self, addr: usize, usable: usize, size: usize) -> bool {
        small_stays(usable, size) || (keeps_room(usable, size) && self.has(addr))
    }

    /// Notes that the block at `addr` is one that has grown a little.
    #[inline]
    pub(crate) fn note(&self, addr: usize) {
        self.place(addr).set(addr);
    }
}

#[cfg(test)]
mod tests;
