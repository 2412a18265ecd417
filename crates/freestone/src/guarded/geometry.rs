//! Where slots are: addresses as distances from the start of the mapping.
//!
//! ```text
//!  0          records        first
//!  │ records, whole pages │ closed page │ slot 0 │ closed page │ slot 1 │ … │ closed page │
//!                         └──────────── stride ───┘
//! ```

use crate::guarded::slot::Slot;
use crate::size_class::SMALL_MAX;

/// How many slots: at most so many blocks are guarded at once.
pub(crate) const N_SLOTS: usize = 256;

/// See the module header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Bytes of an OS page: a power of two.
    page: usize,
}

/// What a distance from the start of the mapping is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// The records.
    Records,
    /// A slot: its index.
    Slot(usize),
    /// The closed page before the slot of this index, or behind the last.
    Between(usize),
}

impl Geometry {
    /// With OS pages of `page` bytes.
    pub(crate) fn new(page: usize) -> Self {
        Self { page }
    }

    /// Bytes of an OS page.
    pub(crate) fn page(self) -> usize {
        self.page
    }

    /// Bytes of the records, in whole pages.
    pub(crate) fn records(self) -> usize {
        (N_SLOTS * size_of::<Slot>()).next_multiple_of(self.page)
    }

    /// Bytes of a slot: room for every small block.
    pub(crate) fn slot_bytes(self) -> usize {
        SMALL_MAX.next_multiple_of(self.page)
    }

    fn stride(self) -> usize {
        self.page + self.slot_bytes()
    }

    /// Bytes of the whole mapping.
    pub(crate) fn total(self) -> usize {
        self.records() + N_SLOTS * self.stride() + self.page
    }

    /// Where a slot starts.
    pub(crate) fn slot(self, index: usize) -> usize {
        self.records() + index * self.stride() + self.page
    }

    /// What is at a distance from the start; `None` outside the mapping.
    pub(crate) fn spot(self, distance: usize) -> Option<Spot> {
        if distance >= self.total() {
            return None;
        }
        let Some(far) = distance.checked_sub(self.records()) else { return Some(Spot::Records) };
        let index = far / self.stride();
        Some(if far % self.stride() < self.page { Spot::Between(index) } else { Spot::Slot(index) })
    }

    /// Where in a slot a block of `size` bytes aligned to `align` starts: as near as can be to the end, or at the start. A block of no bytes starts
    /// in the slot, too.
    pub(crate) fn place(self, size: usize, align: usize, at_end: bool) -> usize {
        if at_end { (self.slot_bytes() - size.max(1)) & !(align - 1) } else { 0 }
    }

    /// The OS pages that `size` bytes lie in, from a distance on: where they start, and how many bytes they are.
    pub(crate) fn pages(self, from: usize, size: usize) -> (usize, usize) {
        let start = from & !(self.page - 1);
        (start, if size == 0 { 0 } else { (from + size).next_multiple_of(self.page) - start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_the_mapping_is_in_one_spot_and_slots_lie_between_closed_pages() {
        for page in [4096, 16384, 65536] {
            let geometry = Geometry::new(page);
            assert_eq!(geometry.spot(0), Some(Spot::Records));
            assert_eq!(geometry.spot(geometry.records() - 1), Some(Spot::Records));
            for index in [0, 1, N_SLOTS - 1] {
                let (start, end) = (geometry.slot(index), geometry.slot(index) + geometry.slot_bytes());
                assert_eq!(start % page, 0);
                assert_eq!(geometry.spot(start - page), Some(Spot::Between(index)));
                assert_eq!(geometry.spot(start - 1), Some(Spot::Between(index)));
                assert_eq!([start, end - 1].map(|at| geometry.spot(at)), [Some(Spot::Slot(index)); 2]);
                assert_eq!(geometry.spot(end), Some(Spot::Between(index + 1)));
            }
            assert_eq!(geometry.spot(geometry.total() - 1), Some(Spot::Between(N_SLOTS)));
            assert_eq!(geometry.spot(geometry.total()), None);
        }
    }

    #[test]
    fn a_block_ends_less_than_its_alignment_before_the_end_or_starts_at_the_start() {
        let geometry = Geometry::new(4096);
        for size in [0, 1, 15, 16, 17, 4096, 4097, SMALL_MAX] {
            for align in [16, 64, 4096] {
                let start = geometry.place(size, align, true);
                assert!(start.is_multiple_of(align) && start + size <= geometry.slot_bytes());
                assert!(geometry.slot_bytes() - (start + size.max(1)) < align, "{size} {align}");
                assert_eq!(geometry.place(size, align, false), 0);
            }
        }
    }

    #[test]
    fn pages_are_those_that_a_block_lies_in() {
        let geometry = Geometry::new(4096);
        assert_eq!(geometry.pages(0, 0), (0, 0));
        assert_eq!(geometry.pages(4095, 1), (0, 4096));
        assert_eq!(geometry.pages(4095, 2), (0, 8192));
        assert_eq!(geometry.pages(28672, 4096), (28672, 4096));
    }
}
