//! A link for each block, in a table beside the blocks, and the lock-free lists that run through it.
//!
//! ```text
//! head: | tag, 32 bits | first + 1, 32 bits |          links:  | FRESH | next + 1 | IN_USE | KEPT | FRESH ...
//!                                                                                                 ^ frontier
//! FRESH ── carved ──▶ IN_USE ◀── handed out ─── next + 1, KEPT
//!                       └─────── given back ──▶ KEPT (in a magazine) ── flushed ──▶ next + 1 (on a list)
//! ```
//!
//! There are several lists, each with its head on a cache line of its own. A thread keeps to one, so that what it gives back it gets again,
//! from its own cache, and its exchanges meet nobody else's; it looks at the others when that one and the frontier have nothing.
//!
//! Links do not lie in the blocks: a thread that pops reads the link of a block that another may have popped just before and be
//! writing to. Here that read is of an atomic, finds a stale value, and the exchange of the head then fails.
//!
//! ABA: every change of a head adds one to its tag, so a head that was read is never mistaken for a later one that names the same
//! block (until a thread sleeps through 2^32 changes between a load and its exchange).
//!
//! Invariants: a block is on one list, kept by one magazine, or in use; a list ends in KEPT's value; what is on a list lies below the frontier.
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

/// Memory for the heads, wherever it begins.
pub(crate) const HEADS_BYTES: usize = N_LISTS * size_of::<Head>() + align_of::<Head>();

/// Lists, log2: in a model two, which is what it takes for threads to use different ones.
const N_LISTS_LOG2: u32 = if cfg!(loom) { 1 } else { 3 };

/// Lists.
pub(crate) const N_LISTS: usize = 1 << N_LISTS_LOG2;

/// Links that processors fetch together: those of two cache lines.
const LINKS_TOGETHER: usize = 32;

/// Stacks further apart than this, log2, are different threads'.
const STACK_LOG2: u32 = 21;

/// The list of the calling thread. Threads are told apart by where their stacks are; two may have the same.
#[inline(always)]
pub(crate) fn list_of_this_thread() -> usize {
    /// The odd number nearest to 2^32 over the golden ratio: spreads neighbours.
    const SPREAD: u32 = 0x9E37_79B9;
    if cfg!(loom) {
        return 0;
    }
    let here = 0_u8;
    let stack = (core::ptr::from_ref(&here).addr() >> STACK_LOG2) as u32;
    (stack.wrapping_mul(SPREAD) >> (u32::BITS - N_LISTS_LOG2)) as usize
}

/// A list's head, far enough from the next for processors that fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Head(AtomicU64);

impl Head {
    /// Of an empty list.
    pub(crate) fn empty() -> Self {
        Self(AtomicU64::new(u64::from(KEPT)))
    }
}

/// The lists. See the module header.
#[derive(Debug)]
pub(crate) struct Links<'m> {
    heads: &'m [Head; N_LISTS],
    frontier: AtomicU32,
    /// The list of the next magazine.
    next_list: AtomicU32,
    links: &'m [AtomicU32],
}

/// The head after a change: `first` (plus one) under the next tag.
fn packed(head: u64, first: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | u64::from(first)
}

impl<'m> Links<'m> {
    /// Lists over `links`, all of them fresh; the lists are empty.
    pub(crate) fn new(links: &'m [AtomicU32], heads: &'m [Head; N_LISTS]) -> Self {
        Self { heads, frontier: AtomicU32::new(0), next_list: AtomicU32::new(0), links }
    }

    /// A list for a magazine: each the next one.
    pub(crate) fn list_of_magazine(&self) -> usize {
        self.next_list.fetch_add(1, Ordering::Relaxed) as usize % N_LISTS
    }

    #[inline(always)]
    fn head(&self, list: usize) -> &AtomicU64 {
        &self.heads[list % N_LISTS].0
    }

    /// How many blocks have been carved.
    pub(crate) fn n_carved(&self) -> usize {
        self.frontier.load(Ordering::Relaxed) as usize
    }

    /// Takes up to `batch.len()` blocks: free ones of a list, else fresh ones, else free ones of another list; returns how many. They are
    /// kept by the caller, not yet in use; the first is the best to hand out next. 0 means that at one moment no block was free.
    #[inline]
    pub(crate) fn take(&self, list: usize, batch: &mut [u32]) -> usize {
        match self.pop(list, batch) {
            0 => self.take_elsewhere(list, batch),
            n_taken => n_taken,
        }
    }

    #[cold]
    fn take_elsewhere(&self, list: usize, batch: &mut [u32]) -> usize {
        match self.carve(batch) {
            0 => self.pop_any(list, batch),
            n_taken => n_taken,
        }
    }

    /// Pops free blocks from any list. Returns 0 only if every head is still what it was when its list was found empty: tags make
    /// each head unique, so there was a moment at which all lists were empty.
    ///
    /// The loads here are relaxed, for the acquire of [`Links::pop`] lies between them: whatever made a later list empty happened before its
    /// head was popped from, so the second round sees every push that happened before that.
    fn pop_any(&self, list: usize, batch: &mut [u32]) -> usize {
        loop {
            let mut seen = [0; N_LISTS];
            for (near, head) in seen.iter_mut().enumerate() {
                *head = self.head(list + near).load(Ordering::Relaxed);
                match self.pop(list + near, batch) {
                    0 => {}
                    n_taken => return n_taken,
                }
            }
            let is_as_seen = |(near, head): (usize, &u64)| self.head(list + near).load(Ordering::Relaxed) == *head;
            if seen.iter().all(|head| *head as u32 == KEPT) && seen.iter().enumerate().all(is_as_seen) {
                return 0;
            }
        }
    }

    /// Pops a chain from a list with one exchange.
    #[inline]
    fn pop(&self, list: usize, batch: &mut [u32]) -> usize {
        let list = self.head(list);
        let mut head = list.load(Ordering::Acquire);
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
            // The load that read `head` acquired already: an exchange that succeeds read the same store, for no two heads have one tag.
            match list.compare_exchange_weak(head, packed(head, first), Ordering::Release, Ordering::Acquire) {
                Ok(_) => return n_taken,
                Err(now) => head = now,
            }
        }
    }

    /// Moves the frontier by as many blocks as there are places, or as are left; by fewer if it then stops where a cache line of links
    /// begins: two threads that write to links of one line wait for each other at every block.
    fn carve(&self, batch: &mut [u32]) -> usize {
        let mut frontier = self.frontier.load(Ordering::Relaxed);
        loop {
            let begun = (self.links.as_ptr().addr() / size_of::<AtomicU32>() + frontier as usize) % LINKS_TOGETHER;
            let places = if batch.len() > begun { batch.len() - begun } else { batch.len() };
            let n_taken = places.min(self.links.len().saturating_sub(frontier as usize));
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

    /// Puts blocks that the caller keeps on a list, with one exchange; the last of them will be the first to be taken.
    #[inline]
    pub(crate) fn give(&self, list: usize, batch: &[u32]) {
        let (Some(&bottom), Some(&top)) = (batch.first(), batch.last()) else { return };
        for pair in batch.windows(2) {
            if let &[below, above] = pair {
                self.set(above, below + 1);
            }
        }
        let list = self.head(list);
        let mut head = list.load(Ordering::Relaxed);
        loop {
            self.set(bottom, head as u32);
            match list.compare_exchange_weak(head, packed(head, top + 1), Ordering::Release, Ordering::Relaxed) {
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

    /// Walks the lists while nobody changes them: the number of free blocks, or the last good block before a wrong link.
    pub(crate) fn check(&mut self) -> Result<usize, u32> {
        let (mut n_free, mut last) = (0, 0);
        for head in self.heads {
            let mut link = head.0.load(Ordering::Relaxed) as u32;
            while link != KEPT {
                let index = link.wrapping_sub(1);
                if index as usize >= self.n_carved() || n_free == self.n_carved() || self.is_used(index as usize) {
                    return Err(last);
                }
                n_free += 1;
                last = index;
                link = self.links.get(index as usize).map_or(KEPT, |link| link.load(Ordering::Relaxed));
            }
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
