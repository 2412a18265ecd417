//! The large-run cache: runs of large blocks that a thread has freed, for its next blocks of the same length.
#![allow(unsafe_code)]
//!
//! ```text
//!           free, under the lock          free
//!  closed ─────────────────────▶ a run ◀────────── no run
//!    ▲                             │ └── allocate ──▶ │
//!    └─ idle, or room is needed: under the lock ──────┘
//! ```
//!
//! A thread that frees and allocates large blocks of one length again and again does not need the page heap for that: the run stays in the
//! thread's cache meanwhile, in a slot for its length. A slot opens when blocks of a length were freed and then requested next again and again, so often
//! that what other lengths do does not matter. It closes when it was not used for a while, and when its memory is needed elsewhere: before clean memory is taken, before dirty memory beyond the bound is
//! purged, before a limit is passed.
//!
//! Invariants
//! - For the page heap's sets and counts a cached run is in use (`Kind::Large`, in no explicit heap's list). Its page map entry is
//!   [`Entry::CACHED`], so that a second free of it is seen.
//! - Open slots count towards the dirty bound, whether their run is there or with the program; alone they have at most a part of it
//!   (`policy::large_cache_share`).
//! - A cache with an open slot is in the page heap's list of caches (`cache_list`). The page heap's lock guards the list, and opening and
//!   closing.
//!
//! Threads: the cache's thread puts and takes, without the lock. Any thread closes slots, under it, so that caches of threads that sleep are
//! emptied, too. `docs/decisions/0015-large-blocks-that-come-back-stay-with-their-thread.md` has the measurements.
//!
//! # Safety
//! A thread that takes a run out of a slot has exclusive access to it. `put` and `take` state their conditions.

use crate::page::runs::Extent;
use crate::span::{Entry, Layout, PageIndex, PageMap};
use core::cell::Cell;
use core::ptr;
use freestone_base::count;
use freestone_base::slot::Slot;
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::Pages;

/// Longest run that is cached: 1 MiB. Writing a longer one takes a hundred times as long as allocating it from the page heap.
const CACHED_MOST: Pages = Pages(16);

/// A slot opens when a length was freed and requested next so many times more often than another was requested in its place. Until then its runs go
/// to the lists of freed ones, which cost little more; and threads whose blocks have many lengths, which find little in slots, seldom open one.
const RETURNS: u8 = 16;

/// Runs of one length that a cache holds.
const RUNS: usize = 2;

/// A length of which runs are cached, in pages.
#[derive(Clone, Copy)]
struct Length(u32);

impl Length {
    #[inline(always)]
    fn of(pages: Pages) -> Option<Self> {
        (pages <= CACHED_MOST).then_some(Self(pages.0))
    }
}

/// A set of lengths: one bit per length.
#[derive(Debug)]
struct Lengths(Cell<u32>);

impl Lengths {
    const fn none() -> Self {
        Self(Cell::new(0))
    }

    #[inline(always)]
    fn has(&self, length: Length) -> bool {
        self.0.get() & 1 << length.0 != 0
    }

    #[inline(always)]
    fn add(&self, length: Length) {
        self.0.set(self.0.get() | 1 << length.0);
    }

    fn remove(&self, length: Length) {
        self.0.set(self.0.get() & !(1 << length.0));
    }

    fn clear(&self) {
        self.0.set(0);
    }
}

/// One thread's cache. Zeroed memory is a cache without an open slot.
#[derive(Debug)]
pub(crate) struct LargeRunCache {
    /// Lengths of which there may be a run in a slot. A search that finds none removes the length.
    may_have: Lengths,
    /// Lengths of which there may be an open slot without a run. A search that finds none removes the length.
    may_take: Lengths,
    /// The length of the run that was freed last and did not get into the cache, until it is requested.
    freed: Lengths,
    /// For each length: how often it was requested after it was freed, less how often after another was, but at least 0. At [`RETURNS`] it may get a slot,
    /// until the tick.
    returns: [Cell<u8>; CACHED_MOST.0 as usize + 1],
    /// Blocks freed into the cache, or into the lists of freed runs, ever.
    puts: AtomicU64,
    /// Blocks allocated from the cache, or from these lists, ever.
    takes: AtomicU64,
    /// The next cache in the page heap's list. The lock guards this and `is_listed`.
    next: Cell<CacheLink>,
    is_listed: Cell<bool>,
    /// By length; those of length 0 stay closed.
    slots: [[Slot; RUNS]; CACHED_MOST.0 as usize + 1],
}

impl LargeRunCache {
    /// No slot is open.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            may_have: Lengths::none(),
            may_take: Lengths::none(),
            freed: Lengths::none(),
            returns: [const { Cell::new(0) }; CACHED_MOST.0 as usize + 1],
            puts: AtomicU64::new(0),
            takes: AtomicU64::new(0),
            next: Cell::new(CacheLink::NONE),
            is_listed: Cell::new(false),
            slots: [const { [const { Slot::closed() }; RUNS] }; CACHED_MOST.0 as usize + 1],
        }
    }

    #[inline(always)]
    fn slots_for(&self, length: Length) -> &[Slot; RUNS] {
        &self.slots[length.0 as usize]
    }

    /// Takes a run of `pages` for a block; its first page.
    ///
    /// # Safety
    /// - The caller is the cache's thread, and `map` is the page map of the address range that its runs are in.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn take(&self, map: PageMap, pages: Pages) -> Option<PageIndex> {
        let length = Length::of(pages).filter(|length| self.may_have.has(*length))?;
        let Some(page) = self.slots_for(length).iter().find_map(Slot::take).map(PageIndex) else {
            self.may_have.remove(length);
            return None;
        };
        self.may_take.add(length);
        // SAFETY: The slot gave the run to this thread alone; a run that was in use has an entry.
        unsafe { map.set_one(page, Entry::LARGE) };
        count::increment(&self.takes);
        Some(page)
    }

    /// Frees the large block at `page` by putting its run into a slot, and returns its length in pages; `None` if no open slot for that length
    /// is empty: then the caller frees it elsewhere, and its entry may say already that it is free.
    ///
    /// # Safety
    /// - The caller is the cache's thread, and `page` starts a large block that the caller frees.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn put(&self, layout: &Layout, page: PageIndex) -> Option<Pages> {
        // SAFETY: The block is in use until now, so its first page has a record.
        let record = unsafe { &*layout.record(page) };
        let pages = record.n_pages();
        let length = Length::of(pages).filter(|length| self.may_take.has(*length))?;
        if !record.owner.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // The entry comes first: from the exchange on, any thread may have the run.
        // SAFETY: The block is the caller's, and its first page has an entry.
        unsafe { layout.map.set_one(page, Entry::CACHED) };
        if !self.slots_for(length).iter().any(|slot| slot.put(page.0)) {
            self.may_take.remove(length);
            return None;
        }
        self.may_have.add(length);
        count::increment(&self.puts);
        Some(pages)
    }

    /// Notes a request for a block of `pages` that the cache does not have.
    pub(crate) fn note_wanted(&self, pages: Pages) {
        let Some(length) = Length::of(pages) else { return };
        let returns = self.returns_of(length);
        if self.freed.has(length) {
            self.freed.remove(length);
            returns.set((returns.get() + 1).min(RETURNS));
        } else {
            returns.set(returns.get().saturating_sub(1));
        }
    }

    /// Notes that a block of `pages` is freed for which the cache has no room. Returns whether this length came back so often that it is to get a slot; if so that counts
    /// as done.
    #[must_use]
    pub(crate) fn note_freed(&self, pages: Pages) -> bool {
        let Some(length) = Length::of(pages) else { return false };
        self.freed.clear();
        self.freed.add(length);
        let comes_back = self.returns_of(length).get() >= RETURNS;
        if comes_back {
            self.returns_of(length).set(0);
        }
        comes_back
    }

    /// Counts a block that was freed into a list that all threads share.
    pub(crate) fn count_put(&self) {
        count::increment(&self.puts);
    }

    /// Counts a block that was allocated from such a list.
    pub(crate) fn count_take(&self) {
        count::increment(&self.takes);
    }

    fn returns_of(&self, length: Length) -> &Cell<u8> {
        &self.returns[length.0 as usize]
    }

    /// This cache, for the page heap to remember.
    ///
    /// # Safety
    /// - The cache stays where it is for good.
    #[must_use]
    pub(crate) unsafe fn permanent(&self) -> PermanentCache<'_> {
        PermanentCache(self)
    }

    /// Forgets how often lengths came back.
    pub(crate) fn tick(&self) {
        self.freed.clear();
        self.returns.iter().for_each(|returns| returns.set(0));
    }

    /// Blocks freed into the cache and the lists of freed runs, and allocated from them, ever.
    #[must_use]
    pub(crate) fn puts_and_takes(&self) -> (u64, u64) {
        (self.puts.load(Ordering::Relaxed), self.takes.load(Ordering::Relaxed))
    }

    /// Pages of runs in the cache, as far as that can be told while its thread runs.
    #[must_use]
    pub(crate) fn cached_pages(&self) -> u64 {
        self.slots().map(|(pages, slot)| if slot.peek() == 0 { 0 } else { u64::from(pages.0) }).sum()
    }

    /// Every slot, and the length of its runs.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Pages, &Slot)> {
        (0..).map(Pages).zip(&self.slots).flat_map(|(pages, slots)| slots.iter().map(move |slot| (pages, slot)))
    }

    /// Opens a closed slot with a run in it; `false` if there is none for its length. Under the page heap's lock.
    pub(super) fn open_slot(&self, run: Extent) -> bool {
        let Some(length) = Length::of(run.pages) else { return false };
        let Some(slot) = self.slots_for(length).iter().find(|slot| slot.is_closed()) else { return false };
        slot.open(run.first.0);
        self.may_have.add(length);
        count::increment(&self.puts);
        true
    }

    /// The next cache in the page heap's list.
    pub(super) fn next(&self) -> Option<&Self> {
        // SAFETY: null, or a cache that stays where it is for good, as a `PermanentCache` says.
        unsafe { self.next.get().0.as_ref() }
    }

    /// Whether the cache is in the page heap's list.
    pub(super) fn is_listed(&self) -> bool {
        self.is_listed.get()
    }

    /// Links the cache in front of `next`; `false` if it is in the list already.
    pub(super) fn enter_list(&self, next: CacheLink) -> bool {
        if self.is_listed.replace(true) {
            return false;
        }
        self.next.set(next);
        true
    }

    /// Takes the cache out of the front of the list. Returns the next one.
    pub(super) fn leave_list(&self) -> CacheLink {
        self.is_listed.set(false);
        self.next.get()
    }
}

/// A cache that stays where it is for good: the page heap may remember it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermanentCache<'a>(&'a LargeRunCache);

impl<'a> PermanentCache<'a> {
    /// The cache.
    pub(super) fn get(self) -> &'a LargeRunCache {
        self.0
    }

    /// What a list remembers of it.
    pub(super) fn link(self) -> CacheLink {
        CacheLink(self.0)
    }
}

/// A cache in the page heap's list, which stays where it is for good; or none, behind the last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheLink(*const LargeRunCache);

// SAFETY: any thread may look at a cache under the page heap's lock, which guards the list.
unsafe impl Send for CacheLink {}

impl CacheLink {
    /// No cache.
    pub(super) const NONE: Self = Self(ptr::null());

    /// The cache, if there is one.
    pub(super) fn cache(&self) -> Option<&LargeRunCache> {
        // SAFETY: null, or a cache that stays where it is for good, as a `PermanentCache` says.
        unsafe { self.0.as_ref() }
    }
}

impl Default for LargeRunCache {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
