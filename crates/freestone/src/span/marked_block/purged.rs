//! A free block, OS pages of which are purged.
//!
//! ```text
//!  OS pages   │ stays              │ purged, reads as zero         │
//!  block           │ first bytes                │ trailer │
//! ```
//!
//! All of a free block but its first OS page may be purged, and with the last its trailer: then nobody knows whether the block was ever handed out, nor for how
//! many bytes. What such a block begins with is known in both cases, filled or zero, so that a write to it is seen. When it leaves its span, its trailer is
//! made whole: whoever frees its right neighbour looks at the trailer of a block that is out.

use crate::span::marked_block::MarkedBlock;
use crate::span::trailer::{State, Trailer};
use crate::span::{erase, fill};
use freestone_base::sync::Ordering;

/// Whether a block of `bytes` at an address lies in several OS pages.
#[inline(always)]
pub(crate) fn straddles(start: usize, bytes: usize, os_page_bytes: usize) -> bool {
    (start ^ (start + bytes - 1)) >= os_page_bytes
}

impl MarkedBlock {
    /// Whether the trailer, of a free block, may be zero because its OS page was purged.
    pub(crate) fn is_tail_purged(&self, os_page_bytes: usize) -> bool {
        straddles(self.start.addr(), self.bytes, os_page_bytes) && self.is_blank()
    }

    /// So many bytes at the start of a free block that straddles OS pages are known whatever was purged: all of its first OS page where freed blocks are
    /// cleared, else the shortest filling.
    fn n_kept(&self, os_page_bytes: usize) -> usize {
        let in_first_page = (os_page_bytes - self.start.addr() % os_page_bytes).min(self.capacity());
        if self.erases { in_first_page } else { fill::LEAST_BYTES }
    }

    /// Makes the block, which is free, one that was never handed out.
    #[inline]
    pub(crate) fn renew(&self, os_page_bytes: usize) {
        self.set_trailer(Trailer::FRESH);
        if straddles(self.start.addr(), self.bytes, os_page_bytes) {
            self.clear_kept(os_page_bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn clear_kept(&self, os_page_bytes: usize) {
        self.clear(0..self.n_kept(os_page_bytes));
    }

    /// The offset of the first byte that was written of those that are known: they are zero, or filled.
    fn kept_damage(&self, os_page_bytes: usize) -> Option<usize> {
        let kept = self.slice(0..self.n_kept(os_page_bytes));
        let from_zero = erase::damage(kept)?;
        if self.erases { Some(from_zero) } else { Some(from_zero.max(fill::damage(kept, os_page_bytes)?)) }
    }

    /// Makes the trailer of a block whole that straddles OS pages and comes out of its span, if it was purged: whoever frees the right neighbour looks at
    /// it. The block counts as never handed out then. Returns the offset of the first byte that was written, of those that were not purged.
    pub(crate) fn restore(&self, os_page_bytes: usize) -> Option<usize> {
        let stored = self.cell().load(Ordering::Acquire);
        if stored != 0 {
            // The kernel may take a page later that was purged lazily, unless it is written.
            self.cell().store(stored, Ordering::Release);
            return None;
        }
        let damage = self.kept_damage(os_page_bytes);
        self.renew(os_page_bytes);
        damage
    }

    /// Whether the block, which is in its span, is as it was when it came there, as far as it was not purged. For checks.
    pub(crate) fn is_as_left(&self, os_page_bytes: usize) -> bool {
        if self.is_tail_purged(os_page_bytes) {
            return self.kept_damage(os_page_bytes).is_none();
        }
        match self.trailer() {
            Some(Trailer { state: State::Freed, size, .. }) => self.freed_damage(size, true, os_page_bytes).is_none(),
            Some(Trailer { state: State::Fresh, .. }) => true,
            _ => false,
        }
    }
}
