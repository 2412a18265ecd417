//! Blocks of a bin that the heap profile has chosen: the allocation that would take one finds no block.
//!
//! ```text
//!  head ─▶ block ─▶ block ─▶ chosen ─▶ block ─▶ end
//!                        └── the link has `CHOSEN` added: `pop` takes it for the end
//! ```
//!
//! A chosen block stays chosen where it is until it comes first and an allocation asks for it, or until it is flushed.

use super::Bins;
use crate::span::View;
use crate::span::free_node::{chosen, is_aligned, is_plausible, not_chosen};
use core::ptr;
use freestone_base::inbox::Node;

impl Bins {
    /// Chooses the first block of a bin, which has one.
    pub(crate) fn choose_first(&self, class: usize) {
        self.heads[class].set(chosen(self.heads[class].get()));
    }

    /// Chooses among the first `n` blocks of a bin, which were put there just now: the one that is number `next` from the front, and behind each the one
    /// that `draw` says. Returns what is left behind the last.
    ///
    /// Follows the links up to the last one chosen.
    pub(crate) fn choose_among(&self, class: usize, n: u64, next: u64, mut draw: impl FnMut() -> u64) -> u64 {
        let (mut n, mut next, mut at) = (n, next, ptr::null_mut());
        while next <= n {
            at = self.choose_behind(class, self.behind(class, at, next - 1));
            n -= next;
            next = draw();
        }
        next - n
    }

    /// Chooses the block behind one of a bin, or the first behind null. Returns it.
    fn choose_behind(&self, class: usize, before: *mut Node) -> *mut Node {
        let block = self.behind(class, before, 1);
        if before.is_null() {
            self.choose_first(class);
        } else {
            self.link_behind(before, chosen(block));
        }
        block
    }

    /// Whether the first block of a bin is chosen, or its link damaged.
    #[inline(always)]
    pub(crate) fn seems_first_chosen(&self, class: usize) -> bool {
        let head = self.heads[class].get();
        !is_aligned(head) && is_aligned(not_chosen(head))
    }

    /// Whether the first block of a bin is chosen. `false` of a damaged link. `view` covers the bin's blocks.
    #[inline(never)]
    pub(crate) fn is_first_chosen(&self, class: usize, view: impl FnOnce() -> View) -> bool {
        let block = not_chosen(self.heads[class].get());
        self.seems_first_chosen(class) && (self.key().is_plain() || is_plausible(block, class, &view()))
    }

    /// Makes the first block of a bin one that is not chosen.
    pub(crate) fn unchoose_first(&self, class: usize) {
        self.heads[class].set(not_chosen(self.heads[class].get()));
    }
}
