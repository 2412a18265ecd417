//! A link for each block, in a table beside the blocks, and the lock-free list that runs through it.
//!
//! ```text
//! head: | tag, 32 bits | first + 1, 32 bits |          links:  | FRESH | next + 1 | IN_USE | KEPT | FRESH ...
//!                                                                                                 ^ frontier
//! FRESH ── carved ──▶ IN_USE ◀── handed out ─── next + 1, KEPT
//!                       └─────── given back ──▶ KEPT (in a magazine) ── flushed ──▶ next + 1 (on the list)
//! ```
//!
//! Links do not lie in the blocks: a thread that pops reads the link of a block that another may have popped just before and be
//! writing to. Here that read is of an atomic, finds a stale value, and the exchange of the head then fails.
//!
//! ABA: every change of the head adds one to its tag, so a head that was read is never mistaken for a later one that names the same
//! block (until a thread sleeps through 2^32 changes between a load and its exchange).
//!
//! Invariants: a block is on the list, kept by one magazine, or in use; the list ends in KEPT's value; what is on the list lies below the frontier.
//! Ordering: a push releases what its blocks' last users wrote, a pop acquires it; links travel with the head. A given-back
//! block is claimed by an exchange of its link, so of two threads that free it one is refused.
//! Cost: one exchange for a batch of any length, plus a relaxed load a block. Model: `links/tests.rs`.

use freestone_base::sync::{AtomicU32, AtomicU64, Ordering};

/// Link of a block that was never handed out. Zero, so that memory known to be zero needs no preparation.
const FRESH: u32 = 0;

/// Link of a block that is on no list and not in use; and the end of the list.
const KEPT: u32 = u32::MAX - 1;

/// Link of a block in use.
const IN_USE: u32 = u32::MAX;

/// The most blocks that links can name.
pub(crate) const MOST_BLOCKS: usize = (u32::MAX - 2) as usize;

/// The list. See the module header.
#[derive(Debug)]
pub(crate) struct Links<'m> {
    head: AtomicU64,
    frontier: AtomicU32,
    links: &'m [AtomicU32],
}

/// The head after a change: `first` (plus one) under the next tag.
fn packed(head: u64, first: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | u64::from(first)
}

impl<'m> Links<'m> {
    /// An empty list over `links`, all of them fresh.
    pub(crate) fn new(links: &'m [AtomicU32]) -> Self {
        Self { head: AtomicU64::new(u64::from(KEPT)), frontier: AtomicU32::new(0), links }
    }

    /// How many blocks have been carved.
    pub(crate) fn n_carved(&self) -> usize {
        self.frontier.load(Ordering::Relaxed) as usize
    }

    /// Takes up to `batch.len()` blocks, free ones if there are any, else fresh ones; returns how many. They are kept by the
    /// caller, not yet in use; the first is the best to hand out next. 0 means that at one moment no block was free.
    #[inline]
    pub(crate) fn take(&self, batch: &mut [u32]) -> usize {
        match self.pop(batch) {
            0 => self.take_fresh(batch),
            n_taken => n_taken,
        }
    }

    /// Fresh blocks; if there are none either, what was freed while we looked.
    #[cold]
    fn take_fresh(&self, batch: &mut [u32]) -> usize {
        match self.carve(batch) {
            0 => self.pop(batch),
            n_taken => n_taken,
        }
    }

    /// Pops a chain from the list with one exchange.
    #[inline]
    fn pop(&self, batch: &mut [u32]) -> usize {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let mut first = head as u32;
            let mut n_taken = 0;
            for place in &mut *batch {
                // A stale chain leads to a mark; the exchange will fail then, for the tag has changed.
                let Some(link) = self.links.get((first as usize).wrapping_sub(1)) else { break };
                *place = first - 1;
                first = link.load(Ordering::Relaxed);
                n_taken += 1;
            }
            if n_taken == 0 {
                return 0;
            }
            match self.head.compare_exchange_weak(head, packed(head, first), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return n_taken,
                Err(now) => head = now,
            }
        }
    }

    /// Moves the frontier by as many blocks as there are places, or as are left.
    fn carve(&self, batch: &mut [u32]) -> usize {
        let mut frontier = self.frontier.load(Ordering::Relaxed);
        loop {
            let n_taken = batch.len().min(self.links.len().saturating_sub(frontier as usize));
            if n_taken == 0 {
                return 0;
            }
            let moved = frontier + n_taken as u32;
            match self.frontier.compare_exchange_weak(frontier, moved, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    batch.iter_mut().zip(frontier..moved).for_each(|(place, index)| *place = index);
                    return n_taken;
                }
                Err(now) => frontier = now,
            }
        }
    }

    /// Puts blocks that the caller keeps on the list, with one exchange; the last of them will be the first to be taken.
    #[inline]
    pub(crate) fn give(&self, batch: &[u32]) {
        let (Some(&bottom), Some(&top)) = (batch.first(), batch.last()) else { return };
        for pair in batch.windows(2) {
            if let &[below, above] = pair {
                self.set(above, below + 1);
            }
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.set(bottom, head as u32);
            match self.head.compare_exchange_weak(head, packed(head, top + 1), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Marks a block that the caller keeps as in use; whether it was fresh.
    #[inline(always)]
    pub(crate) fn hand_out(&self, index: u32) -> bool {
        let Some(link) = self.links.get(index as usize) else { return false };
        // Nobody else writes the link of a kept block: a load and a store do.
        let is_fresh = link.load(Ordering::Relaxed) == FRESH;
        link.store(IN_USE, Ordering::Relaxed);
        is_fresh
    }

    /// Marks a block in use as kept by the caller; `false`, and nothing changed, if it is not in use.
    #[inline(always)]
    pub(crate) fn take_back(&self, index: usize) -> bool {
        let Some(link) = self.links.get(index) else { return false };
        link.compare_exchange(IN_USE, KEPT, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// As [`Links::take_back`], of a block that is known to be in use.
    #[inline(always)]
    pub(crate) fn take_back_unchecked(&self, index: u32) {
        self.set(index, KEPT);
    }

    /// Whether a block is in use at this moment.
    pub(crate) fn is_used(&self, index: usize) -> bool {
        self.links.get(index).is_some_and(|link| link.load(Ordering::Relaxed) == IN_USE)
    }

    /// Walks the list while nobody changes it: the number of free blocks, or the last good block before a wrong link.
    pub(crate) fn check(&mut self) -> Result<usize, u32> {
        let (mut n_free, mut last) = (0, 0);
        let mut link = self.head.load(Ordering::Acquire) as u32;
        while link != KEPT {
            let index = link.wrapping_sub(1);
            if index as usize >= self.n_carved() || n_free == self.n_carved() || self.is_used(index as usize) {
                return Err(last);
            }
            n_free += 1;
            last = index;
            link = self.links.get(index as usize).map_or(KEPT, |link| link.load(Ordering::Relaxed));
        }
        Ok(n_free)
    }

    #[inline(always)]
    fn set(&self, index: u32, value: u32) {
        if let Some(link) = self.links.get(index as usize) {
            link.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, loom))]
mod tests;
