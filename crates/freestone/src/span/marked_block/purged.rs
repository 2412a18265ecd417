//! A free block, OS pages of which are purged.
//!
//! ```text
//!  OS pages   │ stays              │ purged, reads as zero         │
//!  block           │ first bytes                │ trailer │
//! ```
//!
//! All of a free block but its first OS page may be purged, and with the last its trailer: then nobody knows whether the block was ever handed out, nor for how
//! many bytes. So a block that straddles OS pages begins with the same bytes in both cases, by which a write to them is seen. When it leaves its span, its trailer is
//! made whole: whoever frees its right neighbour looks at the trailer of a block that is out.

use crate::span::marked_block::MarkedBlock;
use crate::span::trailer::{State, Trailer};
use crate::span::{erase, fill};
use core::ops::Range;
use freestone_base::sync::Ordering;

impl MarkedBlock {
    /// Whether the block lies in several OS pages.
    #[inline]
    fn straddles(&self, os_page_bytes: usize) -> bool {
        let start = self.start.addr();
        (start ^ (start + self.bytes - 1)) >= os_page_bytes
    }

    /// Whether the trailer, of a free block, may be zero because its OS page was purged.
    pub(crate) fn is_tail_purged(&self, os_page_bytes: usize) -> bool {
        self.straddles(os_page_bytes) && self.is_blank()
    }

    /// The first bytes of a free block that straddles OS pages, of which it is known what they are even if its trailer is gone: the shortest filling, or all of
    /// the first OS page where freed blocks are cleared.
    fn kept(&self, os_page_bytes: usize) -> Range<usize> {
        let in_first_page = os_page_bytes - self.start.addr() % os_page_bytes;
        0..if self.erases { in_first_page.min(self.capacity()) } else { fill::LEAST_BYTES }
    }

    /// Makes the block, which is free, one that was never handed out.
    #[inline]
    pub(crate) fn renew(&self, os_page_bytes: usize) {
        self.set_trailer(Trailer::FRESH);
        if self.straddles(os_page_bytes) {
            self.fill_kept(os_page_bytes);
        }
    }

    #[cold]
    fn fill_kept(&self, os_page_bytes: usize) {
        let kept = self.slice_mut(self.kept(os_page_bytes));
        if self.erases { erase::write(kept) } else { fill::write(kept) }
    }

    /// Makes the trailer of a block whole that comes out of its span, if it was purged: whoever frees the right neighbour looks at it. The block counts as
    /// never handed out then. Returns the offset of the first byte that was written, of those that were not purged.
    #[inline]
    pub(crate) fn restore(&self, os_page_bytes: usize) -> Option<usize> {
        if self.straddles(os_page_bytes) { self.restore_trailer(os_page_bytes) } else { None }
    }

    #[cold]
    fn restore_trailer(&self, os_page_bytes: usize) -> Option<usize> {
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

    /// The offset of the first byte that was written of what is known even if the trailer is gone.
    fn kept_damage(&self, os_page_bytes: usize) -> Option<usize> {
        let kept = self.slice(self.kept(os_page_bytes));
        if self.erases { erase::damage(kept) } else { fill::damage(kept, os_page_bytes) }
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
