//! The quarantine: blocks that the program freed, and that are not handed out again for a while.
//!
//! First in, first out, bounded in bytes, of which a short block counts for more than it has. A block that is used after it was freed is most likely
//! used soon: as long as it waits, no other thread has it, and when it leaves, its contents show whether it was written.
//!
//! Threads: only the heap's thread. Any thread may read what large blocks count.

use crate::size_class::BLOCK_BYTES;
use crate::thread::watched::place::Place;
use core::cell::Cell;
use freestone_base::count;
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::Pages;

/// Places for blocks: more than can wait.
const PLACES: usize = BYTES_MOST / LEAST_BYTES;

/// What a block counts as at least.
const LEAST_BYTES: usize = 256;

/// Most bytes, in a process of few threads: a few times what the first-level cache of one core holds, and a part of the second, so that a block is
/// still there when it is handed out again.
const BYTES_MOST: usize = 128 * 1024;

/// Most bytes in all quarantines of a process of many threads: those that sleep keep theirs.
const BYTES_OF_ALL: usize = 3 << 19;

/// Only the ends of a large block are looked at, so it counts as one part in this many of its bytes.
const LARGE_PART: usize = 4;

/// Blocks longer than this do not wait.
const LONGEST_BYTES: usize = LARGE_PART * BYTES_MOST * 3 / 4;

/// When there is no room, one part in this many of what may wait leaves at once: what is done per batch is done less often.
const PART_LEAVES: usize = 16;

const _: () = assert!(PLACES.is_power_of_two());

/// See the module header. Zero is an empty one.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Quarantine {
    /// Bytes that may come before some have to leave. More have come if it is not above zero.
    room: Cell<isize>,
    /// Blocks that came, and those that left, since it was empty.
    came: Cell<u32>,
    left: Cell<u32>,
    /// How many bytes may wait; as of when blocks left last.
    most: Cell<isize>,
    /// Start and class of each block.
    places: [Cell<Place>; PLACES],
    /// Large blocks that came, ever, and their pages; and those that left.
    large_came: [AtomicU64; 2],
    large_left: [AtomicU64; 2],
}

/// What a block of `bytes` counts as.
#[inline(always)]
fn count_as(bytes: usize) -> isize {
    bytes.max(LEAST_BYTES) as isize
}

impl Quarantine {
    /// Whether a large block of `bytes` may wait at all.
    pub(crate) fn takes(bytes: usize) -> bool {
        bytes <= LONGEST_BYTES
    }

    /// What a large block of `bytes` counts as.
    pub(crate) fn bytes_of_large(bytes: usize) -> usize {
        bytes / LARGE_PART
    }

    /// Adds a block that counts as `bytes`. `class`: it is a small one of this heap. Returns whether others have to leave before the next one comes.
    #[inline(always)]
    pub(crate) fn push(&self, start: *mut u8, bytes: usize, class: Option<usize>) -> bool {
        let came = self.came.get();
        self.places[came as usize % PLACES].set(Place::new(start, class));
        self.came.set(came.wrapping_add(1));
        self.room.set(self.room.get() - count_as(bytes));
        self.room.get() <= 0
    }

    /// Discounts a block of `bytes` that is no small one of this heap and was taken out.
    #[inline]
    pub(crate) fn discount(&self, bytes: usize) {
        self.room.set(self.room.get() + count_as(bytes));
    }

    /// Whether there is room for a block of `bytes`.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.room.get() > count_as(bytes)
    }

    /// Whether others have to leave before a block comes.
    pub(crate) fn is_over(&self) -> bool {
        self.room.get() <= 0
    }

    /// Takes out blocks, those that came first, until enough have left and one is left, or all, and passes small ones of this heap to `put` with their
    /// class. Returns the first block that is another, or that `put` does not take, and its class if it has one; the caller says to
    /// [`Quarantine::discount`] what one without counts as. No call is made in the loop if `put` makes none.
    #[inline(always)]
    pub(crate) fn pop_each(
        &self,
        all: bool,
        mut put: impl FnMut(*mut u8, usize) -> bool,
    ) -> Option<(*mut u8, Option<usize>)> {
        let enough = if all { isize::MAX } else { self.most.get() / PART_LEAVES as isize };
        let most_left = self.came.get().wrapping_sub(u32::from(!all));
        let (mut left, mut room, mut last) = (self.left.get(), self.room.get(), None);
        while room <= enough && left != most_left {
            let place = self.places[left as usize % PLACES].get();
            left = left.wrapping_add(1);
            let Some(bytes) = BLOCK_BYTES.get(place.class()) else {
                last = Some((place.start(), None));
                break;
            };
            room += count_as(*bytes as usize);
            if !put(place.start(), place.class()) {
                last = Some((place.start(), Some(place.class())));
                break;
            }
        }
        self.room.set(room);
        // An empty ring starts anew, so that a heap that rarely frees touches little of it.
        let is_empty = left == self.came.get();
        self.left.set(if is_empty { 0 } else { left });
        self.came.set(if is_empty { 0 } else { self.came.get() });
        last
    }

    /// Lets as many bytes wait as a process of so many heaps may have.
    pub(crate) fn share(&self, n_heaps: u32) {
        let most = BYTES_MOST.min(BYTES_OF_ALL / n_heaps.max(1) as usize) as isize;
        self.room.set(self.room.get() + most - self.most.replace(most));
    }

    /// The blocks, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut u8> {
        let n = self.came.get().wrapping_sub(self.left.get());
        let places = (0..n).map(|at| self.places[self.left.get().wrapping_add(at) as usize % PLACES].get());
        places.map(Place::start)
    }

    /// Counts a large block of `n_pages` that comes.
    pub(crate) fn count_large(&self, n_pages: Pages) {
        count::increment(&self.large_came[0]);
        count::add(&self.large_came[1], u64::from(n_pages.0));
    }

    /// Counts a large block of `n_pages` that leaves.
    pub(crate) fn discount_large(&self, n_pages: Pages) {
        count::increment(&self.large_left[0]);
        count::add(&self.large_left[1], u64::from(n_pages.0));
    }

    /// Large blocks that wait, and their pages. Any thread may ask.
    pub(crate) fn large(&self) -> (u64, u64) {
        let [blocks, pages] = [0, 1].map(|at: usize| {
            let left = self.large_left[at].load(Ordering::Relaxed);
            self.large_came[at].load(Ordering::Relaxed).saturating_sub(left)
        });
        (blocks, pages)
    }
}

#[cfg(test)]
mod tests;
