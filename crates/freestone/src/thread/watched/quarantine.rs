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
//! **Bound.** The queues together hold at most half as much again as must wait. If they hold more, those that have waited leave, and what stays
//! was freed within the last so many bytes.
//!
//! The queues are linked through places of one array: a place is a few bytes, and which class needs how many differs from program to program. Behind its
//! youngest block each queue has a vacant place of its own, so that neither a first block nor a last one is a special case:
//!
//! ```text
//!  first ─▶ oldest ─▶ … ─▶ youngest ─▶ vacant ◀─ last        empty: first = last
//! ```
//!
//! Threads: only the heap's thread. Any thread may read what large blocks count.

use crate::size_class::N_CLASSES;
use core::cell::Cell;
use freestone_base::count;
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::Pages;

/// Places for blocks: more than can wait.
const PLACES: usize = 1024;

/// What a block counts as at least; a unit.
const UNIT_BYTES: usize = 256;

/// Most bytes that must wait, in a process of few threads: a few times what the first-level cache of one core holds, and a part of the second, so that a
/// block is still there when it is handed out again.
const BYTES_MOST: usize = 128 * 1024;

/// Most bytes that may wait longer than they must, so that an allocation of their class finds them.
const SLACK_MOST: usize = BYTES_MOST / 2;

/// Most bytes that must wait in all quarantines of a process of many threads: those that sleep keep theirs. A quarter of it may wait longer.
const BYTES_OF_ALL: usize = 3 << 19;

/// Only the ends of a large block are looked at, so it counts as one part in this many of its bytes.
const LARGE_PART: usize = 4;

/// Blocks longer than this do not wait.
const LONGEST_BYTES: usize = LARGE_PART * BYTES_MOST * 3 / 4;

/// The queue of blocks that are no small ones of the heap.
pub(crate) const OTHERS: usize = N_CLASSES;

/// One for each class, and [`OTHERS`].
const N_QUEUES: usize = N_CLASSES + 1;

/// The first place that is in no queue at the beginning. Place 0 is never used, so that zero is a quarantine that has not begun.
const FIRST_VACANT: usize = 1 + N_QUEUES;

const _: () = assert!(PLACES.is_power_of_two() && PLACES > FIRST_VACANT + (BYTES_MOST + SLACK_MOST) / UNIT_BYTES + 1);

/// What is known of a block that waits.
#[derive(Debug)]
struct Place {
    start: Cell<*mut u8>,
    /// The clock when the block came.
    at: Cell<u32>,
    /// What the block counts as.
    units: Cell<u32>,
}

/// The place of the oldest block, and the vacant one behind the youngest.
#[derive(Debug)]
struct Queue {
    first: Cell<u16>,
    last: Cell<u16>,
}

impl Queue {
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.first.get() == self.last.get()
    }
}

/// See the module header. Zero is an empty one that has not begun.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Quarantine {
    /// Units that came, ever.
    clock: Cell<u32>,
    /// What the clock says when some have to leave.
    limit: Cell<u32>,
    /// How many units must wait, and how many may; as of when blocks left last.
    most: Cell<u32>,
    bound: Cell<u32>,
    /// The first vacant place that is in no queue; 0 before the beginning.
    vacant: Cell<u16>,
    queues: [Queue; N_QUEUES],
    /// The place behind each one, in its queue or among the vacant ones.
    next: [Cell<u16>; PLACES],
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

    /// Links the places. The quarantine is new, or empty since an earlier life of the heap's record ended.
    pub(crate) fn begin(&self) {
        for (number, next) in self.next.iter().enumerate() {
            next.set(number as u16 + 1);
        }
        for (number, queue) in self.queues.iter().enumerate() {
            queue.first.set(number as u16 + 1);
            queue.last.set(number as u16 + 1);
        }
        self.vacant.set(FIRST_VACANT as u16);
    }

    #[inline(always)]
    fn place(&self, number: u16) -> &Place {
        &self.places[usize::from(number) % PLACES]
    }

    /// The number of the place behind one.
    #[inline(always)]
    fn behind(&self, number: u16) -> &Cell<u16> {
        &self.next[usize::from(number) % PLACES]
    }

    /// Adds a block that counts as `bytes` to a queue: that of its class if it is a small one of this heap, else [`OTHERS`]. Returns whether others have to
    /// leave before the next one comes.
    #[inline(always)]
    pub(crate) fn push(&self, start: *mut u8, bytes: usize, queue: usize) -> bool {
        let (queue, units) = (&self.queues[queue], units(bytes));
        let (number, last) = (queue.last.get(), self.vacant.get());
        self.vacant.set(self.behind(last).get());
        self.behind(number).set(last);
        queue.last.set(last);
        let place = self.place(number);
        place.start.set(start);
        place.at.set(self.clock.get());
        place.units.set(units);
        self.clock.set(self.clock.get().wrapping_add(units));
        self.is_over()
    }

    /// Units that may come before some have to leave. More have come if it is not above zero.
    #[inline(always)]
    fn room(&self) -> i32 {
        self.limit.get().wrapping_sub(self.clock.get()) as i32
    }

    /// The oldest block of a queue, if it has waited.
    #[inline(always)]
    pub(crate) fn waited(&self, queue: usize) -> Option<*mut u8> {
        let queue = &self.queues[queue];
        if queue.is_empty() {
            return None;
        }
        let place = self.place(queue.first.get());
        let has_waited = self.clock.get().wrapping_sub(place.at.get()) >= self.most.get();
        has_waited.then(|| place.start.get())
    }

    /// Removes the oldest block of a queue, which has one.
    #[inline(always)]
    pub(crate) fn remove(&self, queue: usize) {
        let queue = &self.queues[queue];
        let number = queue.first.get();
        queue.first.set(self.behind(number).get());
        self.behind(number).set(self.vacant.replace(number));
        self.limit.set(self.limit.get().wrapping_add(self.place(number).units.get()));
    }

    /// Takes the oldest block out of a queue, if it has waited, or with `all`.
    #[inline]
    pub(crate) fn pop(&self, queue: usize, all: bool) -> Option<*mut u8> {
        let first = &self.queues[queue];
        let oldest = (all && !first.is_empty()).then(|| self.place(first.first.get()).start.get());
        let start = oldest.or_else(|| self.waited(queue))?;
        self.remove(queue);
        Some(start)
    }

    /// Whether others have to leave before a block comes.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.room() <= 0
    }

    /// Makes as many bytes wait as a process of so many heaps may have.
    pub(crate) fn share(&self, n_heaps: u32) {
        let share = BYTES_OF_ALL / n_heaps.max(1) as usize;
        let (most, slack) = (BYTES_MOST.min(share) / UNIT_BYTES, SLACK_MOST.min(share / 4) / UNIT_BYTES);
        let bound = (most + slack) as u32;
        self.most.set(most as u32);
        self.limit.set(self.limit.get().wrapping_add(bound).wrapping_sub(self.bound.replace(bound)));
    }

    /// The blocks, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut u8> {
        self.queues.iter().flat_map(|queue| {
            let numbers = core::iter::successors(Some(queue.first.get()), |&number| Some(self.behind(number).get()));
            numbers.take_while(|&number| number != queue.last.get()).map(|number| self.place(number).start.get())
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
        let waiting = |came: &AtomicU64, left: &AtomicU64| {
            let left = left.load(Ordering::Relaxed);
            came.load(Ordering::Relaxed).saturating_sub(left)
        };
        let ([blocks_came, pages_came], [blocks_left, pages_left]) = (&self.large_came, &self.large_left);
        (waiting(blocks_came, blocks_left), waiting(pages_came, pages_left))
    }
}

#[cfg(test)]
mod tests;
