//! Held back: freed large blocks whose addresses are not used again yet, first in, first out, and how many there may be.
//!
//! A program that uses a large block after its free most likely does so soon. Each block that is held back costs addresses, a mapping or two where the
//! kernel has no markers, and one 512th of its length for page tables where it has. So there may be as many pages as are in use, within bounds:
//! 64 MiB, below which nobody counts addresses, and 1 GiB, of which page tables take 2 MiB.

use crate::span::PageIndex;
use freestone_base::units::Pages;
use freestone_os::GuardBy;

/// Most blocks.
pub(in crate::page) const BLOCKS_MOST: usize = 512;

/// There may always be this many pages: 64 MiB.
const PAGES_LEAST: Pages = Pages(1024);

/// There are never more: 1 GiB.
const PAGES_MOST: Pages = Pages(16384);

/// A block that is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) struct Held {
    /// Its first page.
    pub(in crate::page) page: PageIndex,
    /// How it was made inaccessible.
    pub(in crate::page) by: GuardBy,
}

/// See the module header.
#[derive(Debug)]
pub(in crate::page) struct HeldBack {
    /// None before the first block is held back, and then [`BLOCKS_MOST`].
    ring: Option<&'static mut [Held]>,
    first: usize,
    len: usize,
    pages: Pages,
}

impl HeldBack {
    /// None.
    pub(in crate::page) const NONE: Self = Self { ring: None, first: 0, len: 0, pages: Pages::ZERO };

    /// Gets the places for blocks from `ring`, if it has none yet.
    pub(in crate::page) fn provide(&mut self, ring: impl FnOnce() -> Option<&'static mut [Held]>) {
        if self.ring.is_none() {
            self.ring = ring();
        }
    }

    /// Whether a block of `pages` may be held back at all while `in_use` pages are in use.
    pub(in crate::page) fn takes(pages: Pages, in_use: Pages) -> bool {
        pages <= in_use.max(PAGES_LEAST).min(PAGES_MOST)
    }

    /// Whether there is room for a block of `pages` while `in_use` pages are in use.
    pub(in crate::page) fn has_room(&self, pages: Pages, in_use: Pages) -> bool {
        self.ring.is_some() && self.len < BLOCKS_MOST && Self::takes(self.pages + pages, in_use)
    }

    /// Adds a block of `pages`, if there is a place for it.
    pub(in crate::page) fn push(&mut self, held: Held, pages: Pages) {
        let at = (self.first + self.len) % BLOCKS_MOST;
        let ring = self.ring.as_deref_mut().filter(|_| self.len < BLOCKS_MOST);
        let place = ring.and_then(|ring| ring.get_mut(at));
        if let Some(place) = place {
            *place = held;
            self.len += 1;
            self.pages += pages;
        }
    }

    /// The block that came first.
    pub(in crate::page) fn oldest(&self) -> Option<Held> {
        let ring = self.ring.as_deref().filter(|_| self.len > 0)?;
        ring.get(self.first).copied()
    }

    /// Takes out the block that came first, which has `pages`.
    pub(in crate::page) fn drop_oldest(&mut self, pages: Pages) {
        self.first = (self.first + 1) % BLOCKS_MOST;
        self.len = self.len.saturating_sub(1);
        self.pages -= pages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    fn none() -> HeldBack {
        let mut waiting = HeldBack::NONE;
        waiting.provide(|| Some(std::vec![held(0); BLOCKS_MOST].leak()));
        waiting
    }

    fn held(page: u32) -> Held {
        Held { page: PageIndex(page), by: GuardBy::Marker }
    }

    #[test]
    fn blocks_leave_in_the_order_in_which_they_came_however_often_the_ring_goes_round() {
        let mut waiting = none();
        assert_eq!(waiting.oldest(), None);
        for round in 0..3 * BLOCKS_MOST as u32 {
            waiting.push(held(2 * round), Pages(4));
            waiting.push(held(2 * round + 1), Pages(5));
            for (at, pages) in [(0, 4), (1, 5)] {
                assert_eq!(waiting.oldest(), Some(held(2 * round + at)));
                waiting.drop_oldest(Pages(pages));
            }
        }
        assert_eq!(waiting.oldest(), None);
        assert!(waiting.has_room(PAGES_LEAST, Pages::ZERO));
    }

    #[test]
    fn as_many_pages_wait_as_are_in_use_within_the_bounds() {
        let mut waiting = none();
        for (in_use, most) in [(0, 1024), (1024, 1024), (5000, 5000), (1 << 20, 16384)] {
            assert!(HeldBack::takes(Pages(most), Pages(in_use)));
            assert!(!HeldBack::takes(Pages(most + 1), Pages(in_use)));
        }
        waiting.push(held(1), Pages(1000));
        assert!(waiting.has_room(Pages(24), Pages(0)) && !waiting.has_room(Pages(25), Pages(0)));
        assert!(waiting.has_room(Pages(25), Pages(2000)));
    }

    #[test]
    fn no_more_blocks_wait_than_the_ring_has_places() {
        let mut waiting = none();
        for page in 0..BLOCKS_MOST as u32 {
            assert!(waiting.has_room(Pages(1), Pages(0)));
            waiting.push(held(page), Pages(1));
        }
        assert!(!waiting.has_room(Pages(1), Pages(0)));
        waiting.push(held(1000), Pages(1));
        assert_eq!(waiting.oldest(), Some(held(0)), "it takes no other block's place");
    }

    #[test]
    fn without_places_nothing_is_held_back_and_a_later_ring_is_taken() {
        let mut waiting = HeldBack::NONE;
        waiting.provide(|| None);
        assert!(!waiting.has_room(Pages(1), Pages(0)));
        waiting.provide(|| Some(std::vec![held(0); BLOCKS_MOST].leak()));
        assert!(waiting.has_room(Pages(1), Pages(0)));
        waiting.provide(|| unreachable!("it has places"));
    }
}
