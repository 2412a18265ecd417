//! A link for each block, in a table beside the blocks, and the lock-free lists of free blocks that are linked through it.
//!
//! ```text
//! head: | tag, 32 bits | first + 1, 32 bits |          links:  | FRESH | next + 1 | IN_USE | KEPT | FRESH ...
//!                                                                                                 ^ high-water mark
//! FRESH ── carved ──▶ IN_USE ◀── handed out ─── next + 1, KEPT
//!                       └─────── freed ───────▶ KEPT (in a magazine) ── flushed ──▶ next + 1 (in a list)
//! ```
//!
//! There are several lists, each with its head on a cache line of its own. A thread uses one list, so it gets back the blocks that it freed,
//! from its own cache, and its exchanges do not contend with those of other threads. It uses the others when its list is empty and all
//! blocks have been used.
//!
//! Links are not in the blocks, because a thread that pops reads the link of a block that another thread may have popped just before and
//! may be writing to. Here that is a read of an atomic, which returns a stale value; the exchange of the head then fails.
//!
//! ABA: every change of a head adds one to its tag, so a head that was read is not mistaken for a later one that names the same
//! block, unless a thread is suspended during 2^32 changes between a load and its exchange.
//!
//! Invariants: a block is in one list, in one magazine, or in use; a list ends with the value KEPT; a block in a list is below the
//! high-water mark.
//! Ordering: a push releases what the last users of its blocks wrote, and a pop acquires it; the head's exchange publishes the links. An exchange
//! of its link claims a block that is freed, so if two threads free it, one is refused.
//! Cost: one exchange for a batch of any length, and a relaxed load per block. Model: `links/tests.rs`.

use freestone_base::sync::{AtomicU32, AtomicU64, Ordering};

/// The link of a block that was never used. It is 0, so memory that is zero needs no preparation.
const FRESH: u32 = 0;

/// The link of a block that is in no list and not in use: in a magazine. It also ends a list.
const KEPT: u32 = u32::MAX - 1;

/// The link of a block in use.
const IN_USE: u32 = u32::MAX;

/// The greatest number of blocks that links can name.
pub(crate) const MOST_BLOCKS: usize = (u32::MAX - 2) as usize;

/// The bytes that the heads need, whatever the alignment of their memory.
pub(crate) const HEADS_BYTES: usize = N_LISTS * size_of::<Head>() + align_of::<Head>();

/// The logarithm of the number of lists. A model has two lists: enough for threads to use different ones.
const N_LISTS_LOG2: u32 = if cfg!(loom) { 1 } else { 3 };

/// The number of lists.
pub(crate) const N_LISTS: usize = 1 << N_LISTS_LOG2;

/// The number of links that a processor fetches together: those of two cache lines.
const LINKS_TOGETHER: usize = 32;

/// The logarithm of the distance from which on two stacks are taken to be of different threads.
const STACK_LOG2: u32 = 21;

/// The list that the calling thread uses. It depends on the address of the thread's stack; two threads may have the same list.
#[inline(always)]
pub(crate) fn list_of_this_thread() -> usize {
    /// The odd number nearest to 2^32 divided by the golden ratio: it spreads adjacent numbers.
    const SPREAD: u32 = 0x9E37_79B9;
    if cfg!(loom) {
        return 0;
    }
    let here = 0_u8;
    let stack = (core::ptr::from_ref(&here).addr() >> STACK_LOG2) as u32;
    (stack.wrapping_mul(SPREAD) >> (u32::BITS - N_LISTS_LOG2)) as usize
}

/// The head of a list. It has two cache lines of its own, for processors that fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Head(AtomicU64);

impl Head {
    /// The head of an empty list.
    pub(crate) fn empty() -> Self {
        Self(AtomicU64::new(u64::from(KEPT)))
    }
}

/// The lists. See the module header.
#[derive(Debug)]
pub(crate) struct Links<'m> {
    heads: &'m [Head; N_LISTS],
    /// The number of blocks that have been used at least once: they come first.
    high_water_mark: AtomicU32,
    /// The list that the next magazine will use.
    next_list: AtomicU32,
    links: &'m [AtomicU32],
}

/// The head after `head` was changed to `first`, which is a block's index plus one or KEPT: with the next tag.
fn packed(head: u64, first: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | u64::from(first)
}

impl<'m> Links<'m> {
    /// Empty lists over `links`, all of which are FRESH.
    pub(crate) fn new(links: &'m [AtomicU32], heads: &'m [Head; N_LISTS]) -> Self {
        Self { heads, high_water_mark: AtomicU32::new(0), next_list: AtomicU32::new(0), links }
    }

    /// The list for a new magazine: each magazine gets the next one.
    pub(crate) fn list_of_magazine(&self) -> usize {
        self.next_list.fetch_add(1, Ordering::Relaxed) as usize % N_LISTS
    }

    #[inline(always)]
    fn head(&self, list: usize) -> &AtomicU64 {
        &self.heads[list % N_LISTS].0
    }

    /// The high-water mark: the number of blocks that have been used at least once.
    pub(crate) fn n_carved(&self) -> usize {
        self.high_water_mark.load(Ordering::Relaxed) as usize
    }

    /// Takes up to `batch.len()` blocks: free blocks of `list`, else blocks that were never used, else free blocks of another list. Returns how
    /// many. They are the caller's, but not yet in use; the first is the best to hand out next. 0 means that at one moment no block was free.
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
    /// each head unique, so there was a moment at which all lists were empty. (A list whose head names no block is empty, also if a write past
    /// the last block put that there.)
    ///
    /// The loads here are relaxed, because the acquire of [`Links::pop`] lies between them: whatever made a later list empty happened before its
    /// head was popped from, so the second round sees every push that happened before that.
    fn pop_any(&self, list: usize, batch: &mut [u32]) -> usize {
        loop {
            let mut seen = [0; N_LISTS];
            for (near, head) in seen.iter_mut().enumerate() {
                *head = self.head(list + near).load(Ordering::Relaxed);
                match self.pop_by_call(list + near, batch) {
                    0 => {}
                    n_taken => return n_taken,
                }
            }
            let is_as_seen = |(near, head): (usize, &u64)| self.head(list + near).load(Ordering::Relaxed) == *head;
            if seen.iter().enumerate().all(is_as_seen) {
                return 0;
            }
        }
    }

    /// [`Links::pop`] by a call: the loop over the lists is unrolled.
    #[inline(never)]
    fn pop_by_call(&self, list: usize, batch: &mut [u32]) -> usize {
        self.pop(list, batch)
    }

    /// Pops up to `batch.len()` blocks from a list with one exchange; returns how many.
    #[inline]
    fn pop(&self, list: usize, batch: &mut [u32]) -> usize {
        let list = self.head(list);
        let mut head = list.load(Ordering::Acquire);
        loop {
            let mut first = head as u32;
            let mut n_taken = 0;
            for place in &mut *batch {
                // A stale chain ends at a link that names no block. The exchange then fails, because the tag has changed.
                let Some(link) = self.links.get((first as usize).wrapping_sub(1)) else { break };
                *place = first - 1;
                first = link.load(Ordering::Relaxed);
                n_taken += 1;
            }
            if n_taken == 0 {
                return 0;
            }
            // The load that read `head` acquired already: an exchange that succeeds read the same store, because no two heads have one tag.
            match list.compare_exchange_weak(head, packed(head, first), Ordering::Release, Ordering::Acquire) {
                Ok(_) => return n_taken,
                Err(now) => head = now,
            }
        }
    }

    /// Takes blocks that were never used, as many as there are places or blocks left, and moves the high-water mark; returns how many. Takes
    /// fewer if the mark then stops at the start of a cache line of links: threads that write to links of one line contend for it.
    fn carve(&self, batch: &mut [u32]) -> usize {
        let mut mark = self.high_water_mark.load(Ordering::Relaxed);
        loop {
            let begun = (self.links.as_ptr().addr() / size_of::<AtomicU32>() + mark as usize) % LINKS_TOGETHER;
            let places = if batch.len() > begun { batch.len() - begun } else { batch.len() };
            let n_taken = places.min(self.links.len().saturating_sub(mark as usize));
            if n_taken == 0 {
                return 0;
            }
            let moved = mark + n_taken as u32;
            match self.high_water_mark.compare_exchange_weak(mark, moved, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    batch.iter_mut().zip(mark..moved).for_each(|(place, index)| *place = index);
                    return n_taken;
                }
                Err(now) => mark = now,
            }
        }
    }

    /// Pushes the caller's blocks onto a list with one exchange. The last of them will be the first to be popped.
    #[inline(never)]
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

    /// Marks a block of the caller's as in use; returns whether it was never used before.
    #[inline(always)]
    pub(crate) fn hand_out(&self, index: u32) -> bool {
        let Some(link) = self.links.get(index as usize) else { return false };
        // No other thread writes the link of the caller's block, so a load and a store are enough.
        let is_fresh = link.load(Ordering::Relaxed) == FRESH;
        link.store(IN_USE, Ordering::Relaxed);
        is_fresh
    }

    /// Makes a block that is in use the caller's; returns `false` and changes nothing if it is not in use.
    #[inline(always)]
    pub(crate) fn take_back(&self, index: usize) -> bool {
        let Some(link) = self.links.get(index) else { return false };
        link.compare_exchange(IN_USE, KEPT, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// As [`Links::take_back`], for a block that is known to be in use.
    #[inline(always)]
    pub(crate) fn take_back_unchecked(&self, index: u32) {
        self.set(index, KEPT);
    }

    /// Whether a block is in use at this moment.
    pub(crate) fn is_used(&self, index: usize) -> bool {
        self.links.get(index).is_some_and(|link| link.load(Ordering::Relaxed) == IN_USE)
    }

    /// Walks the lists while no other thread can change them. Returns the number of free blocks, or the last good block before a wrong link.
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
