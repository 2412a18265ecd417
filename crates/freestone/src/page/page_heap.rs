//! The page heap: one lock, what it protects, and what can be read without it.
#![allow(unsafe_code)]
//!
//! One lock (rank [`RANK`]) protects [`State`]. Purging takes a run out, drops the lock for the system call, and puts the run back clean;
//! growing maps memory under the lock. When memory runs short the page heap returns `None`: it never calls upwards.
//!
//! # Safety
//! `layout` is written once, before `opened` is done and before `reach` is first stored as nonzero; a thread that has seen one of these may read it.

use crate::config::Settings;
use crate::page::address_range;
use crate::page::page_stats::{Ahead, Purges};
use crate::page::run_lists::RunLists;
use crate::page::runs::Extent;
use crate::page::state::State;
use crate::page::watch::Watch;
use crate::span::layout::BITMAP_BYTES;
use crate::span::{Entry, Layout, PageIndex, Span, Uncarved, View};
use core::cell::UnsafeCell;
use freestone_base::lock::{Forker, Guard, Lock};
use freestone_base::once::Once;
use freestone_base::sync::{AtomicBool, AtomicUsize, Ordering};
use freestone_base::units::{Millis, Moment, Pages};
use freestone_os::{Futex, Os};

/// Rank of the lock: the innermost.
pub(crate) const RANK: u8 = 30;

/// Bytes of record, bitmap and page map entry for each page.
const METADATA_BYTES_PER_PAGE: u64 = (size_of::<Span>() + BITMAP_BYTES + size_of::<Entry>()) as u64;

/// The state, under the lock.
pub(super) type StateGuard<'a> = Guard<'a, State, Futex, RANK>;

/// See the module header.
///
/// Wide because: it is the lock, and each thing that is read without it.
pub(crate) struct PageHeap<O: Os> {
    pub(super) os: O,
    /// The options.
    pub settings: Settings,
    opened: Once<Futex>,
    layout: UnsafeCell<Layout>,
    /// Pages whose page map entries are committed; only ever grows, under the lock. 0: there is no address range yet.
    reach: AtomicUsize,
    pub(super) state: Lock<State, Futex, RANK>,
    /// The control group's limit was read.
    pub(super) group_asked: AtomicBool,
    /// Long free runs are unmapped when memory was purged.
    pub(super) unmaps: AtomicBool,
    /// The soft limit was passed, and no thread has made room since.
    pub(super) pressed: AtomicBool,
    /// Bytes that count against the limits and are in no page: of guarded blocks.
    pub(super) beside_bytes: AtomicUsize,
    /// Blocks lack guards because there are as many as the kernel allows.
    pub(super) guards_ran_out: AtomicBool,
    pub(super) watch: Watch,
    pub(super) ahead: Ahead,
    pub(super) emptied: RunLists,
    pub(super) freed: RunLists,
    pub(super) purges: Purges,
    /// What of small spans has no memory.
    pub(crate) uncarved: Uncarved,
}

// SAFETY: `layout` is written once, inside `opened`, and read only after that; everything else is `Sync`.
unsafe impl<O: Os> Sync for PageHeap<O> {}

/// A run in use, and the right to end or change that use.
#[derive(Debug)]
pub(crate) struct OwnedRun(PageIndex);

impl OwnedRun {
    /// The run that starts at `page`.
    ///
    /// # Safety
    /// - `page` starts a run in use of the page heap that this is given to, and the run is the caller's: no other thread changes or ends its use
    ///   meanwhile.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn at(page: PageIndex) -> Self {
        Self(page)
    }

    /// A run that was just taken.
    pub(super) fn taken(run: Extent) -> Self {
        Self(run.first)
    }

    /// The first page.
    pub(super) fn page(&self) -> PageIndex {
        self.0
    }
}

impl<O: Os> PageHeap<O> {
    /// A heap without an address range, with default options. Makes no system call.
    #[must_use]
    pub(crate) const fn new(os: O) -> Self {
        Self {
            os,
            settings: Settings::new(),
            opened: Once::new(),
            layout: UnsafeCell::new(Layout::EMPTY),
            reach: AtomicUsize::new(0),
            state: Lock::new(State::empty()),
            group_asked: AtomicBool::new(false),
            unmaps: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
            beside_bytes: AtomicUsize::new(0),
            guards_ran_out: AtomicBool::new(false),
            watch: Watch::new(),
            ahead: Ahead::none(),
            emptied: RunLists::new(),
            freed: RunLists::new(),
            purges: Purges::none(),
            uncarved: Uncarved::new(),
        }
    }

    /// The operating system underneath.
    #[must_use]
    pub(crate) fn os(&self) -> &O {
        &self.os
    }

    /// The address range, opened if it was not; `None` if the operating system has no room for one.
    pub(crate) fn open(&self) -> Option<&Layout> {
        let opened = self.opened.is_done()
            || self.opened.call(|| match address_range::open(&self.os) {
                Some(metadata) => {
                    // SAFETY: This closure runs alone, and no thread reads `layout` before it is done, or `reach` is set.
                    unsafe { *self.layout.get() = *metadata.layout() };
                    let mut state = self.state.lock();
                    state.runs.begin(metadata);
                    self.publish_reach(&state, 1);
                    true
                }
                None => false,
            });
        if opened { Some(self.layout()) } else { None }
    }

    /// The address range as it is: empty before [`PageHeap::open`].
    #[must_use]
    #[inline(never)]
    pub(crate) fn layout(&self) -> &Layout {
        if self.opened.is_done() {
            // SAFETY: `layout` was written before `is_done` became true, and is never written again.
            unsafe { &*self.layout.get() }
        } else {
            &Layout::EMPTY
        }
    }

    /// As [`PageHeap::layout`], of a page heap that is open.
    ///
    /// # Safety
    /// - [`PageHeap::open`] has succeeded, and this thread has seen that.
    #[inline(always)]
    pub(crate) unsafe fn opened_layout(&self) -> &Layout {
        // SAFETY: `layout` was written before `open` succeeded, and is never written again.
        unsafe { &*self.layout.get() }
    }

    /// The view that addresses are looked up in: it covers every page whose handing out happened before this call.
    #[inline]
    #[must_use]
    pub(crate) fn view(&self) -> View {
        let reach = self.reach();
        if reach == 0 {
            return View::EMPTY;
        }
        // SAFETY: `layout` was written before `reach` first was set, and never after. Both are seen, for `reach` is read with acquire, and written
        // with release.
        let layout = unsafe { &*self.layout.get() };
        // SAFETY: Entries are committed before `reach` covers them.
        unsafe { View::new(layout, reach) }
    }

    /// The reach of [`PageHeap::view`].
    #[inline]
    #[must_use]
    pub(crate) fn reach(&self) -> usize {
        self.reach.load(Ordering::Acquire)
    }

    /// Lets views reach as far as the page map is committed. In tests they reach no further than they must, `needed` pages, so that most
    /// views are old.
    pub(super) fn publish_reach(&self, state: &State, needed: usize) {
        let reach = state.runs.metadata().reach();
        self.reach.store(if cfg!(test) { reach.min(needed) } else { reach }, Ordering::Release);
    }

    /// Whether the address range has `pages` in a row at all, the first a multiple of `align`: what it has not is refused before
    /// anything is purged for it. `true` before the range is open.
    #[must_use]
    pub(crate) fn could_hold(&self, pages: Pages, align: Pages) -> bool {
        let n_all = self.layout().n_pages;
        n_all == 0 || (pages.0 as usize).saturating_add(align.0 as usize) <= n_all
    }

    /// The record of a page.
    ///
    /// # Safety
    /// - The page is below the high-water mark, so it has a record.
    /// - Of its fields, those that are no atomics are read only by the owner of the run that the page is in (see `span::record`).
    #[inline]
    #[must_use]
    pub(crate) unsafe fn span(&self, page: PageIndex) -> &Span {
        // SAFETY: the page has a record (this function's contract), and records are never unmapped.
        unsafe { &*self.layout().record(page) }
    }

    /// The record of a run in use. May be called without the lock.
    pub(super) fn record(&self, run: &OwnedRun) -> &Span {
        // SAFETY: The run is in use, so its page is below the high-water mark and has a record; its fields are the owner's to read.
        unsafe { &*self.layout().record(run.page()) }
    }

    /// The pages of a run in use. May be called without the lock.
    pub(super) fn extent(&self, run: &OwnedRun) -> Extent {
        Extent::new(run.page(), self.record(run).n_pages())
    }

    /// The counts.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn stats(&self) -> crate::page::page_stats::PageStats {
        self.lock().stats(&self.purges, self.ahead.pages())
    }

    /// Calls `visit` with the state under the lock.
    pub(crate) fn inspect<R>(&self, visit: impl FnOnce(&State) -> R) -> R {
        visit(&self.lock())
    }

    /// Bytes of what the allocator needs for itself: thread heaps, and records, bitmaps and page map up to the high-water mark. (They are mapped
    /// beyond it, and have no memory there.)
    #[must_use]
    pub(crate) fn metadata_bytes(&self) -> u64 {
        let state = self.lock();
        let records = u64::from(state.runs.high_water().0) * METADATA_BYTES_PER_PAGE;
        state.runs.counts().of(crate::span::Kind::Metadata).to_bytes().0 as u64 + state.storage as u64 + records
    }

    /// The pages that were ever used.
    pub(super) fn arena(&self) -> Pages {
        Pages(self.lock().runs.high_water().0)
    }

    /// Takes the lock and keeps it, before a fork. Runs that others are purging are not waited for: see
    /// [`PageHeap::adopt_purging_in_child`].
    pub(crate) fn lock_for_fork(&self) {
        self.state.acquire_raw();
    }

    /// Releases the lock of [`PageHeap::lock_for_fork`], in parent or child.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        self.state.release_raw(forker);
    }

    /// How long memory stays dirty at most; `None` without a bound.
    pub(super) fn decay(&self) -> Option<Millis> {
        self.settings.decay_ms().map(Millis)
    }

    /// The time. One function for the many that ask.
    #[inline(never)]
    pub(super) fn now(&self) -> Moment {
        Moment(self.os.now_ms() as u32)
    }
}
