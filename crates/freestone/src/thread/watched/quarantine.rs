//! The quarantine: blocks that the program freed, and that are not handed out again for a while.
//!
//! ```text
//!  freed ─▶ class 0      oldest ─▶ … ─▶ youngest      an allocation takes those that have waited into the magazine of its class
//!           class 1      oldest ─▶ … ─▶ youngest
//!           …                                         when all together are too many, those that have waited go back to their spans
//!           all others   oldest ─▶ … ─▶ youngest      large blocks, and blocks of other heaps
//! ```
//!
//! Each class has a queue, first in, first out, so that a block goes straight from there to the next allocation of its class. A clock counts what is freed in
//! the whole heap, in units of bytes, of which a short block counts for more than it has. A block has waited when so much was freed after it came; until
//! then nobody gets it. A block that is used after it was freed is most likely used soon: as long as it waits, no other thread has it, and
//! when it leaves, its contents show whether it was written.
//!
//! **Bound.** The queues together hold at most twice as much as must wait. If they hold more, those that have waited leave, and what stays
//! was freed within the last so many bytes.
//!
//! The queues are linked through places of one array: a place is a few bytes, and which class needs how many differs from program to program.
//!
//! Threads: only the heap's thread. Any thread may read what large blocks count.

use crate::size_class::N_CLASSES;
use core::cell::Cell;
use freestone_base::count;
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::Pages;

/// Places for blocks: more than can wait.
const PLACES: usize = 2048;

/// What a block counts as at least; a unit.
const UNIT_BYTES: usize = 256;

/// Most bytes that must wait, in a process of few threads: a few times what the first-level cache of one core holds, and a part of the second, so that a
/// block is still there when it is handed out again.
const BYTES_MOST: usize = 128 * 1024;

/// Most bytes in all quarantines of a process of many threads: those that sleep keep theirs.
const BYTES_OF_ALL: usize = 3 << 19;

/// Only the ends of a large block are looked at, so it counts as one part in this many of its bytes.
const LARGE_PART: usize = 4;

/// Blocks longer than this do not wait.
const LONGEST_BYTES: usize = LARGE_PART * BYTES_MOST * 3 / 4;

/// The queue of blocks that are no small ones of the heap.
pub(crate) const OTHERS: usize = N_CLASSES;

const _: () = assert!(PLACES.is_power_of_two() && PLACES > 2 * BYTES_MOST / UNIT_BYTES + 1);

/// What is known of a block that waits. Zero is one that holds none.
#[derive(Debug)]
struct Place {
    start: Cell<*mut u8>,
    /// The clock when the block came.
    at: Cell<u32>,
    /// What the block counts as.
    units: Cell<u16>,
    /// The place behind this one in its queue, or in the list of vacant places: less the number of the place right behind it, so that zero is a list of all.
    next: Cell<u16>,
}

/// The first and the last place, and how many.
#[derive(Debug)]
struct Queue {
    first: Cell<u16>,
    last: Cell<u16>,
    len: Cell<u32>,
}

/// See the module header. Zero is an empty one.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Quarantine {
    /// Units that may come before some have to leave. More have come if it is not above zero.
    room: Cell<i32>,
    /// Units that came, ever.
    clock: Cell<u32>,
    /// How many units must wait; as of when blocks left last.
    most: Cell<u32>,
    /// The first vacant place.
    vacant: Cell<u16>,
    queues: [Queue; N_CLASSES + 1],
    places: [Place; PLACES],
    /// Large blocks that came, ever, and their pages; and those that left.
    large_came: [AtomicU64; 2],
    large_left: [AtomicU64; 2],
}

/// What a block of `bytes` counts as.
#[inline(always)]
fn units(bytes: usize) -> u32 {
    ((bytes + (UNIT_BYTES - 1)) >> UNIT_BYTES.ilog2()) as u32
}

impl Quarantine {
    /// Whether a large block of `bytes` may wait at all.
    pub(crate) fn takes(bytes: usize) -> bool {
        bytes <= LONGEST_BYTES
    }

    /// What a large block of `bytes` counts as.
    pub(crate) fn bytes_of_large(bytes: usize) -> usize {
        (bytes / LARGE_PART).max(1)
    }

    #[inline(always)]
    fn place(&self, number: u16) -> &Place {
        &self.places[usize::from(number) % PLACES]
    }

    /// The place behind one in its list.
    #[inline(always)]
    fn behind(&self, number: u16) -> u16 {
        self.place(number).next.get().wrapping_add(number).wrapping_add(1)
    }

    #[inline(always)]
    fn link(&self, number: u16, to: u16) {
        self.place(number).next.set(to.wrapping_sub(number).wrapping_sub(1));
    }

    /// Adds a block that counts as `bytes` to a queue: that of its class if it is a small one of this heap, else [`OTHERS`]. Returns whether others have to
    /// leave before the next one comes.
    #[inline(always)]
    pub(crate) fn push(&self, start: *mut u8, bytes: usize, queue: usize) -> bool {
        let (queue, number, units) = (&self.queues[queue], self.vacant.get(), units(bytes));
        self.vacant.set(self.behind(number));
        let place = self.place(number);
        place.start.set(start);
        place.at.set(self.clock.get());
        place.units.set(units as u16);
        if queue.len.get() == 0 {
            queue.first.set(number);
        } else {
            self.link(queue.last.get(), number);
        }
        queue.last.set(number);
        queue.len.set(queue.len.get() + 1);
        self.clock.set(self.clock.get().wrapping_add(units));
        self.room.set(self.room.get() - units as i32);
        self.room.get() <= 0
    }

    /// The oldest block of a queue, if it has waited.
    #[inline(always)]
    pub(crate) fn waited(&self, queue: usize) -> Option<*mut u8> {
        let queue = &self.queues[queue];
        let place = self.place(queue.first.get());
        let has_waited = self.clock.get().wrapping_sub(place.at.get()) >= self.most.get();
        (queue.len.get() > 0 && has_waited).then(|| place.start.get())
    }

    /// Removes the oldest block of a queue, which has one.
    #[inline(always)]
    pub(crate) fn remove(&self, queue: usize) {
        let queue = &self.queues[queue];
        let number = queue.first.get();
        queue.first.set(self.behind(number));
        queue.len.set(queue.len.get() - 1);
        self.link(number, self.vacant.replace(number));
        self.room.set(self.room.get() + i32::from(self.place(number).units.get()));
    }

    /// Takes the oldest block out of a queue, if it has waited, or with `all`.
    #[inline]
    pub(crate) fn pop(&self, queue: usize, all: bool) -> Option<*mut u8> {
        let first = &self.queues[queue];
        let oldest = (all && first.len.get() > 0).then(|| self.place(first.first.get()).start.get());
        let start = oldest.or_else(|| self.waited(queue))?;
        self.remove(queue);
        Some(start)
    }

    /// Whether there is room for a block of `bytes`.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.room.get() > units(bytes) as i32
    }

    /// Whether others have to leave before a block comes.
    pub(crate) fn is_over(&self) -> bool {
        self.room.get() <= 0
    }

    /// Makes as many bytes wait as a process of so many heaps may have.
    pub(crate) fn share(&self, n_heaps: u32) {
        let most = BYTES_MOST.min(BYTES_OF_ALL / n_heaps.max(1) as usize) / UNIT_BYTES;
        let bound = |most: u32| (2 * most) as i32;
        self.room.set(self.room.get() + bound(most as u32) - bound(self.most.replace(most as u32)));
    }

    /// The blocks, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut u8> {
        self.queues.iter().flat_map(|queue| {
            let numbers = core::iter::successors(Some(queue.first.get()), |&number| Some(self.behind(number)));
            numbers.take(queue.len.get() as usize).map(|number| self.place(number).start.get())
        })
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
