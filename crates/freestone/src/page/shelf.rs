//! Shelves: runs of large blocks that a thread freed a moment ago, for its next blocks as long.
#![allow(unsafe_code)]
//!
//! ```text
//!           free, under the lock          free
//!  closed ─────────────────────▶ a run ◀────────── no run
//!    ▲                             │ └── allocate ──▶ │
//!    └─ idle, or room is needed: under the lock ──────┘
//! ```
//!
//! A large block that is freed and allocated again by one thread, over and over, has no need of the page heap: its run stays on the
//! thread's shelf meanwhile, in a slot for its length. A slot opens when blocks of that length were seen to come back, and closes when it
//! was not used for a while, and when something else could use its memory: before clean memory is taken, before dirty memory is purged for
//! its amount, before a limit is passed.
//!
//! Invariants
//! - A run on a shelf is in use as far as the page heap's sets and counts go (`Kind::Large`, in no explicit heap's list); its page map
//!   entry is [`Entry::KEPT`], so that a second free of it is seen.
//! - `shelf_pages` counts the pages of all open slots, whether their run is there or with the program. Together with what is dirty they
//!   obey the dirty bound; alone they are at most a part of it, `KEPT_SHARE`.
//! - A shelf with an open slot is in the list of shelves; the lock guards the list, and opening and closing.
//!
//! Who may do what: its thread puts and takes, without the lock. Anybody closes, under it: shelves of threads that sleep are emptied too.
//!
//! # Safety
//! As stated at each function.

use crate::page::PageHeap;
use crate::page::state::{Free, State};
use crate::span::{Entry, Layout, PageMap};
use core::cell::Cell;
use core::ptr;
use freestone_base::count;
use freestone_base::slot::{Content, Slot};
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::Os;

/// Longest run that is kept: 1 MiB. To write a longer one takes a hundred times as long as the way to the page heap.
const KEPT_PAGES_MOST: u32 = 16;

/// Runs of one length that a shelf holds.
const RUNS: usize = 2;

/// Open slots may have this part of the dirty bound.
const KEPT_SHARE: u64 = 4;

/// Shelves are looked at, and what is dirty, this many times in a decay time.
pub(crate) const LOOKS: u32 = 4;

/// A length of which runs are kept.
#[derive(Clone, Copy)]
struct Length(u32);

impl Length {
    #[inline(always)]
    fn of(n_pages: u32) -> Option<Self> {
        (n_pages <= KEPT_PAGES_MOST).then_some(Self(n_pages))
    }
}

/// A set of lengths: a bit each.
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

/// One thread's shelf. Zeroed memory is a shelf without an open slot.
#[derive(Debug)]
pub struct Shelf {
    /// Of which lengths there may be a run on the shelf, and an empty slot: a search that finds none takes the length out.
    may_have: Lengths,
    /// See `may_have`.
    may_take: Lengths,
    /// The length that the page heap was given back last, and those that were asked for next; each is worth one slot, until the tick.
    freed: Lengths,
    /// See `freed`.
    came_back: Lengths,
    /// Blocks freed onto it, ever.
    puts: AtomicU64,
    /// Blocks allocated from it, ever.
    takes: AtomicU64,
    next: Cell<*const Shelf>,
    is_listed: Cell<bool>,
    /// By length; those of 0 stay closed.
    slots: [[Slot; RUNS]; KEPT_PAGES_MOST as usize + 1],
}

impl Shelf {
    /// No slot open.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            may_have: Lengths::none(),
            may_take: Lengths::none(),
            freed: Lengths::none(),
            came_back: Lengths::none(),
            puts: AtomicU64::new(0),
            takes: AtomicU64::new(0),
            next: Cell::new(ptr::null()),
            is_listed: Cell::new(false),
            slots: [const { [const { Slot::closed() }; RUNS] }; KEPT_PAGES_MOST as usize + 1],
        }
    }

    #[inline(always)]
    fn slots_for(&self, length: Length) -> &[Slot; RUNS] {
        &self.slots[length.0 as usize]
    }

    /// Takes a run of `n_pages` for a block; its page, or `None`.
    ///
    /// # Safety
    /// - The caller is the shelf's thread, and `map` is the page map of the window that its runs are in.
    #[inline(always)]
    #[must_use]
    pub unsafe fn take(&self, map: PageMap, n_pages: u32) -> Option<u32> {
        let length = Length::of(n_pages).filter(|length| self.may_have.has(*length))?;
        let Some(page) = self.slots_for(length).iter().find_map(Slot::take) else {
            self.may_have.remove(length);
            return None;
        };
        self.may_take.add(length);
        // SAFETY: the run is the caller's from the exchange on.
        unsafe { map.set_one(page, Entry::LARGE) };
        count::increment(&self.takes);
        Some(page)
    }

    /// Puts the run of the large block at `page`, which is freed by that, and says how long it is; `None` if no open slot for its length
    /// is empty.
    ///
    /// # Safety
    /// - The caller is the shelf's thread, and the block is its own, and used no more.
    #[inline(always)]
    #[must_use]
    pub unsafe fn put(&self, layout: &Layout, page: u32) -> Option<u32> {
        // SAFETY: the caller's promise. The entry comes first: from the exchange on, the run may be anybody's.
        unsafe {
            let record = &*layout.record(page);
            let n_pages = record.pages.get();
            let length = Length::of(n_pages).filter(|length| self.may_take.has(*length))?;
            if !record.owner.load(Ordering::Relaxed).is_null() {
                return None;
            }
            layout.map.set_one(page, Entry::KEPT);
            if !self.slots_for(length).iter().any(|slot| slot.put(page)) {
                layout.map.set_one(page, Entry::LARGE);
                self.may_take.remove(length);
                return None;
            }
            self.may_have.add(length);
            count::increment(&self.puts);
            Some(n_pages)
        }
    }

    /// Notes that a block of `n_pages` was wanted, and is not there.
    pub fn note_wanted(&self, n_pages: u32) {
        if let Some(length) = Length::of(n_pages).filter(|length| self.freed.has(*length)) {
            self.came_back.add(length);
        }
    }

    /// Forgets which lengths came back.
    pub fn tick(&self) {
        self.freed.clear();
        self.came_back.clear();
    }

    /// Blocks freed onto the shelf, and allocated from it, ever.
    #[must_use]
    pub fn puts_and_takes(&self) -> (u64, u64) {
        (self.puts.load(Ordering::Relaxed), self.takes.load(Ordering::Relaxed))
    }

    /// Pages of runs on the shelf, as far as that can be told while its thread runs.
    #[must_use]
    pub fn kept_pages(&self) -> u64 {
        self.by_length().map(|(n_pages, slot)| if slot.peek() == 0 { 0 } else { u64::from(n_pages) }).sum()
    }

    /// Every slot, and the length of its runs.
    pub(crate) fn by_length(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0..).zip(&self.slots).flat_map(|(n_pages, slots)| slots.iter().map(move |slot| (n_pages, slot)))
    }
}

impl Default for Shelf {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Os> PageHeap<O> {
    /// Opens a slot for the large block at `page`, which is freed by that; `false` if there is no reason to, or no room.
    ///
    /// # Safety
    /// - As for [`Shelf::put`]; under the lock. The shelf stays where it is for good.
    pub(super) unsafe fn keep(&self, state: &mut State, layout: &Layout, page: u32, shelf: &Shelf) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let record = &*layout.record(page);
            let n_pages = record.pages.get();
            let Some(length) = Length::of(n_pages) else { return false };
            shelf.freed.clear();
            shelf.freed.add(length);
            if !shelf.came_back.has(length)
                || !record.owner.load(Ordering::Relaxed).is_null()
                || state.shelf_pages + u64::from(n_pages) > self.kept_pages_most(state)
            {
                return false;
            }
            let Some(slot) = shelf.slots_for(length).iter().find(|slot| slot.is_closed()) else { return false };
            state.shelf_pages += u64::from(n_pages);
            if !shelf.is_listed.replace(true) {
                shelf.next.set(state.shelves);
                state.shelves = shelf;
            }
            layout.map.set_one(page, Entry::KEPT);
            slot.open(page);
            shelf.may_have.add(length);
            shelf.came_back.remove(length);
            count::increment(&shelf.puts);
        }
        true
    }

    /// Pages that open slots may have.
    fn kept_pages_most(&self, state: &State) -> u64 {
        let in_use_bytes = state.in_use_pages() << PAGE_BYTES_LOG2;
        (self.settings.dirty_bound_bytes(in_use_bytes) >> PAGE_BYTES_LOG2) / KEPT_SHARE
    }

    /// Closes all slots of a shelf; what was in them is dirty.
    pub(crate) fn empty_shelf(&self, shelf: &Shelf) {
        let (layout, now) = (self.layout(), self.now_ms());
        let mut state = self.state.lock();
        if shelf.is_listed.get() {
            state.close_slots(layout, shelf, now, Slot::close);
            drop(self.tidy(state, now));
        }
    }

    /// Looks at the shelves once in a while: slots that nobody used since the last look are closed.
    #[inline]
    pub(super) fn look_at_shelves(&self, state: &mut State, now_ms: u32) {
        if !state.shelves.is_null()
            && let Some(decay_ms) = self.settings.decay_ms()
        {
            let since_ms = now_ms.wrapping_sub(state.looked_ms);
            if since_ms >= decay_ms / LOOKS {
                self.close_idle(state, now_ms, since_ms.min(decay_ms));
            }
        }
    }

    /// Closes slots that nobody used in the last `since_ms`, since the last look.
    #[cold]
    fn close_idle(&self, state: &mut State, now_ms: u32, since_ms: u32) {
        state.looked_ms = now_ms;
        let close = if state.shelf_pages > self.kept_pages_most(state) { Slot::close } else { Slot::close_if_idle };
        // What was idle between two looks is at least as old as the first of them.
        state.close_shelves(self.layout(), now_ms.wrapping_sub(since_ms), close);
    }
}

impl State {
    /// Closes all slots of all shelves.
    pub(super) fn empty_shelves(&mut self, layout: &Layout, now_ms: u32) {
        self.close_shelves(layout, now_ms, Slot::close);
    }

    /// Closes slots of all shelves, those that `close` does.
    fn close_shelves(&mut self, layout: &Layout, since_ms: u32, close: fn(&Slot) -> Option<Content>) {
        let mut next = core::mem::replace(&mut self.shelves, ptr::null());
        // SAFETY: shelves in the list stay where they are for good, and the state is borrowed under the lock.
        while let Some(shelf) = unsafe { next.as_ref() } {
            next = shelf.next.get();
            if self.close_slots(layout, shelf, since_ms, close) {
                shelf.next.set(self.shelves);
                self.shelves = shelf;
            } else {
                shelf.is_listed.set(false);
            }
        }
    }

    /// Closes slots of a shelf, those that `close` does: their runs are dirty since `since_ms`. Whether some stay open.
    fn close_slots(
        &mut self,
        layout: &Layout,
        shelf: &Shelf,
        since_ms: u32,
        close: fn(&Slot) -> Option<Content>,
    ) -> bool {
        let mut stays = false;
        for (n_pages, slot) in shelf.by_length() {
            if let Some(had) = close(slot) {
                self.shelf_pages -= u64::from(n_pages);
                if let Content::Number(page) = had {
                    // SAFETY: the run is this closer's, under the lock.
                    unsafe { self.take_back(layout, page, since_ms) };
                }
            }
            stays |= !slot.is_closed();
        }
        stays
    }

    /// Makes the run of a block that was freed onto a shelf dirty, since `since_ms`.
    ///
    /// # Safety
    /// - The run is the caller's, who has taken it off the shelf; under the lock.
    unsafe fn take_back(&mut self, layout: &Layout, page: u32, since_ms: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let is_huge = (*layout.record(page)).is_huge.get();
            layout.map.set_one(page, Entry::NONE);
            let n_pages = self.end_use(layout, page);
            self.insert(layout, page, n_pages, Free::dirty(since_ms, is_huge));
        }
    }

    /// The shelves with an open slot.
    pub(crate) fn shelves(&self) -> impl Iterator<Item = &Shelf> {
        // SAFETY: as in `close_shelves`.
        let mut next = unsafe { self.shelves.as_ref() };
        core::iter::from_fn(move || {
            let shelf = next?;
            // SAFETY: as above.
            next = unsafe { shelf.next.get().as_ref() };
            Some(shelf)
        })
    }
}

#[cfg(test)]
mod tests;
