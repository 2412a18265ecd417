//! The page heap: taking pages, and taking them back.
#![allow(unsafe_code)]
//!
//! One lock (rank [`RANK`]); no system call that takes long is made while it is held, but for growing: purging takes a run out, lets the
//! lock go, and puts the run back clean. Memory that is short is an answer (`None`), never a call upwards.
//!
//! # Safety
//! Records are touched under the lock, or when the run is the caller's.

use crate::config::Settings;
use crate::page::limit::Limits;
use crate::page::purge::Watch;
use crate::page::shelf::Shelf;
use crate::page::state::{Free, PageStats, State};
use crate::page::window;
use crate::span::layout::BITMAP_BYTES;
use crate::span::{Entry, Kind, Layout, Span, View};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use freestone_base::align;
use freestone_base::lock::{Guard, Lock};
use freestone_base::once::Once;
use freestone_base::sync::{AtomicUsize, Ordering};
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};
use freestone_os::{Futex, Os};

/// Rank of the lock: the innermost.
pub const RANK: u8 = 30;

/// Bytes of record, bitmap and page map for each page.
const METADATA_BYTES_PER_PAGE: u64 = (size_of::<Span>() + BITMAP_BYTES + size_of::<Entry>()) as u64;

/// Bytes of a piece of metadata storage.
const METADATA_PAGES: u32 = 1;

/// Pages handed out.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The first page.
    pub page: u32,
    /// How many: at least what was asked for.
    pub n_pages: u32,
    /// Whether all of it reads as zero.
    pub zero: bool,
}

/// See the module header.
pub struct PageHeap<O: Os> {
    pub(super) os: O,
    /// The options.
    pub settings: Settings,
    opened: Once<Futex>,
    layout: UnsafeCell<Layout>,
    /// Pages whose page map entries are committed; only ever grows, under the lock. 0: there is no window yet.
    reach: AtomicUsize,
    pub(super) state: Lock<State, Futex, RANK>,
    pub(super) limits: Limits,
    pub(super) watch: Watch,
}

// SAFETY: `layout` is written once, inside `opened`, and read only after it.
unsafe impl<O: Os> Sync for PageHeap<O> {}

impl<O: Os> PageHeap<O> {
    /// A heap that has asked the operating system for nothing yet, with default options.
    #[must_use]
    pub const fn new(os: O) -> Self {
        Self {
            os,
            settings: Settings::new(),
            opened: Once::new(),
            layout: UnsafeCell::new(Layout::EMPTY),
            reach: AtomicUsize::new(0),
            state: Lock::new(State::empty()),
            limits: Limits::new(),
            watch: Watch::new(),
        }
    }

    /// The operating system underneath.
    #[must_use]
    pub fn os(&self) -> &O {
        &self.os
    }

    /// The window, opened if it was not; `None` if the operating system has no room for one.
    pub fn open(&self) -> Option<&Layout> {
        let opened = self.opened.is_done()
            || self.opened.call(|| match window::open(&self.os) {
                Some((layout, committed)) => {
                    // SAFETY: this closure runs alone, and nobody reads before it is done, or `reach` is set.
                    unsafe { *self.layout.get() = layout };
                    let mut state = self.state.lock();
                    state.committed = committed;
                    self.publish_reach(&state, &layout, 1);
                    true
                }
                None => false,
            });
        if opened { Some(self.layout()) } else { None }
    }

    /// The window as it is: empty before [`PageHeap::open`].
    #[must_use]
    pub fn layout(&self) -> &Layout {
        if self.opened.is_done() {
            // SAFETY: written before `is_done` became true, never after.
            unsafe { &*self.layout.get() }
        } else {
            &Layout::EMPTY
        }
    }

    /// What addresses are looked up in: covers every page that was ever handed out, as far as this thread can know of it.
    #[inline]
    #[must_use]
    pub fn view(&self) -> View {
        let reach = self.reach();
        if reach == 0 {
            return View::EMPTY;
        }
        // SAFETY: `layout` was written before `reach` first was set, and never after; entries are committed before `reach` covers them.
        // Both are seen, for `reach` is read with acquire, and written with release.
        unsafe { View::new(&*self.layout.get(), reach) }
    }

    /// The reach of [`PageHeap::view`].
    #[inline]
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach.load(Ordering::Acquire)
    }

    /// Lets views reach as far as the page map is committed; in tests no further than they must, `needed` pages, so that most views are old.
    pub(super) fn publish_reach(&self, state: &State, layout: &Layout, needed: usize) {
        let reach = state.committed.reach(layout);
        self.reach.store(if cfg!(test) { reach.min(needed) } else { reach }, Ordering::Release);
    }

    /// Allocates `n_pages` in a row for `kind`, the first a multiple of `align_pages` (a power of two) from address 0.
    /// `None` when memory or the window runs out, or the hard limit is reached. What is on shelves comes before clean memory.
    pub fn allocate(&self, n_pages: u32, align_pages: u32, kind: Kind) -> Option<Run> {
        let layout = self.open()?;
        if !self.could_hold(n_pages, align_pages) {
            return None;
        }
        let (huge_pages, n_pages) =
            if kind == Kind::Large { self.huge_pages_by_experience(n_pages) } else { (0, n_pages) };
        let searched = n_pages.checked_add(align_pages - 1)?;
        let mut state = self.state.lock();
        let mut dirty = state.dirty.find(layout, searched);
        if dirty.is_none() && state.shelf_pages > 0 {
            state.empty_shelves(layout, self.now_ms());
            dirty = state.dirty.find(layout, searched);
        }
        if let Some(page) = dirty {
            if kind == Kind::Large {
                self.note_churn(&mut state, true);
            }
            // SAFETY: `find` answers with a free run that is long enough, and the lock is held.
            return Some(unsafe { self.take(&mut state, layout, page, (n_pages, align_pages), kind) });
        }
        if kind == Kind::Large && align_pages == 1 {
            // SAFETY: the lock is held.
            if let Some(page) = unsafe { self.take_mixed(&mut state, layout, n_pages) } {
                self.note_churn(&mut state, true);
                drop(state);
                if huge_pages > 0 {
                    // SAFETY: the run was taken just now.
                    unsafe { self.ask_for_huge_pages(page, 0, n_pages) };
                }
                return Some(Run { page, n_pages, zero: false });
            }
        }
        self.take_clean(state, layout, n_pages, (n_pages, align_pages.max(huge_pages)), kind, huge_pages > 0)
    }

    /// Whether the window has as many pages in a row at all, the first a multiple of `align_pages`: what it has not is refused before
    /// anything is given back for it. Yes before the window is open.
    #[must_use]
    pub fn could_hold(&self, n_pages: u32, align_pages: u32) -> bool {
        let n_all = self.layout().n_pages;
        n_all == 0 || (n_pages as usize).saturating_add(align_pages as usize) <= n_all
    }

    /// Takes pages without memory behind them; `room` is how many must be free in a row, and the alignment of the first.
    pub(super) fn take_clean(
        &self,
        state: Guard<'_, State, Futex, RANK>,
        layout: &Layout,
        n_pages: u32,
        room: (u32, u32),
        kind: Kind,
        is_huge: bool,
    ) -> Option<Run> {
        let mut state = self.keep_limits(state, n_pages)?;
        let searched = room.0.checked_add(room.1 - 1)?;
        let page = match state.clean.find(layout, searched) {
            Some(page) => {
                if kind == Kind::Large {
                    self.note_churn(&mut state, false);
                }
                page
            }
            None => {
                self.make_clean(&mut state, layout, searched)?;
                state.clean.find(layout, searched)?
            }
        };
        // SAFETY: as in `allocate`.
        let run = unsafe { self.take(&mut state, layout, page, (n_pages, room.1), kind) };
        state.stats.fresh_bytes += u64::from(n_pages) << PAGE_BYTES_LOG2;
        drop(state);
        if is_huge {
            // SAFETY: the run was taken just now.
            unsafe { self.ask_for_huge_pages(run.page, 0, n_pages) };
        }
        Some(run)
    }

    /// Takes pages out of the free run at `page`, which is long enough for them wherever they are aligned.
    unsafe fn take(
        &self,
        state: &mut State,
        layout: &Layout,
        page: u32,
        (n_pages, align_pages): (u32, u32),
        kind: Kind,
    ) -> Run {
        let searched = n_pages + align_pages - 1;
        // SAFETY: the caller's promise, under the lock.
        unsafe {
            if kind != Kind::Large {
                self.end_huge(layout, page);
            }
            let was = Free::of(&*layout.record(page));
            state.take(layout, page, searched, kind);
            let first = self.align_up(layout, page, align_pages);
            self.trim(state, layout, (page, searched), (first, n_pages), was, kind);
            (*layout.record(first)).is_huge.set(was.is_huge);
            if kind == Kind::Large {
                self.begin_large(state, layout, first);
            }
            Run { page: first, n_pages, zero: was.kind == Kind::Clean }
        }
    }

    /// The first page at or after `page` whose address is a multiple of `align_pages`.
    fn align_up(&self, layout: &Layout, page: u32, align_pages: u32) -> u32 {
        let address = layout.page_start(page).addr();
        let aligned = align::up(address, (align_pages as usize) << PAGE_BYTES_LOG2);
        page + ((aligned - address) >> PAGE_BYTES_LOG2) as u32
    }

    /// Gives back what was taken before and after the pages that are wanted, as it was.
    pub(super) unsafe fn trim(
        &self,
        state: &mut State,
        layout: &Layout,
        taken: (u32, u32),
        wanted: (u32, u32),
        was: Free,
        kind: Kind,
    ) {
        if taken == wanted {
            return;
        }
        // SAFETY: all of `taken` is in use by the caller alone, under the lock.
        unsafe {
            let ((from, n_taken), (first, n_wanted)) = (taken, wanted);
            state.end_use(layout, from);
            // The middle first: what is inserted beside it looks at its ends.
            state.label(layout, first, n_wanted, kind);
            let end = first + n_wanted;
            if first > from {
                state.insert(layout, from, first - from, was);
            }
            if from + n_taken > end {
                state.insert(layout, end, from + n_taken - end, was);
            }
            state.begin_use(kind, n_wanted);
        }
    }

    /// Takes a run back: it is dirty from now on. Then purges what is too much or too old.
    ///
    /// # Safety
    /// - `page` starts a run in use that is the caller's, and nobody uses its memory any more.
    pub unsafe fn free(&self, page: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.free_or_keep(page, None) };
    }

    /// As [`PageHeap::free`], or keeps a large block's run on a shelf: whether it did.
    ///
    /// # Safety
    /// - As for [`PageHeap::free`]; the shelf is this thread's, and stays where it is for good.
    pub unsafe fn free_or_keep(&self, page: u32, shelf: Option<&Shelf>) -> bool {
        let layout = self.layout();
        let now = self.now_ms();
        // SAFETY: the caller's promise; from the lock on, under the lock.
        unsafe {
            let record = &*layout.record(page);
            let density = self.sample_density(record, page);
            let mut state = self.state.lock();
            let is_kept = shelf.is_some_and(|shelf| self.keep(&mut state, layout, page, shelf));
            if !is_kept {
                if record.kind.get() == Kind::Large {
                    self.end_large(&mut state, layout, page);
                    state.learn_density(density);
                } else {
                    layout.map.set(page, record.pages.get(), Entry::NONE);
                }
                let n_pages = state.end_use(layout, page);
                state.insert(layout, page, n_pages, Free::dirty(now, record.is_huge.get()));
            }
            drop(self.tidy(state, now));
            self.wake_for_dirty();
            is_kept
        }
    }

    /// Storage for `bytes` of metadata, zeroed, aligned to 64, never freed; `None` when memory runs out.
    pub fn metadata(&self, bytes: usize) -> Option<*mut c_void> {
        let bytes = align::up(bytes, 64);
        debug_assert!(bytes <= PAGE_BYTES);
        loop {
            {
                let mut state = self.state.lock();
                let (at, left) = state.metadata;
                if left >= bytes {
                    state.metadata = (at.wrapping_add(bytes), left - bytes);
                    return Some(at.cast());
                }
            }
            let run = self.allocate(METADATA_PAGES, 1, Kind::Metadata)?;
            let start = self.layout().page_start(run.page);
            if !run.zero {
                // SAFETY: the run was just allocated for this.
                unsafe { start.write_bytes(0, PAGE_BYTES) };
            }
            self.state.lock().metadata = (start, PAGE_BYTES);
        }
    }

    /// The counts.
    #[must_use]
    pub fn stats(&self) -> PageStats {
        self.state.lock().stats
    }

    /// Calls `visit` with the state under the lock, for `check`.
    pub fn inspect<R>(&self, visit: impl FnOnce(&State, &Layout) -> R) -> R {
        let state = self.state.lock();
        visit(&state, self.layout())
    }

    /// Bytes of what the allocator needs for itself: thread heaps, and records, bitmaps and page map up to the frontier. (They are mapped
    /// beyond it, and have no memory there.)
    #[must_use]
    pub fn metadata_bytes(&self) -> u64 {
        let state = self.state.lock();
        (state.stats.metadata_pages << PAGE_BYTES_LOG2) + u64::from(state.frontier) * METADATA_BYTES_PER_PAGE
    }

    /// Takes the lock and keeps it, before a fork. Runs that others are purging are not waited for: see
    /// `adopt_purging_in_child`.
    pub fn lock_for_fork(&self) {
        self.state.acquire_raw();
    }

    /// Lets the lock of [`PageHeap::lock_for_fork`] go, in parent or child.
    ///
    /// # Safety
    /// - This thread took it, or is the copy of the one that did.
    pub unsafe fn unlock_after_fork(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.state.release_raw() }
    }

    pub(super) fn now_ms(&self) -> u32 {
        self.os.now_ms() as u32
    }
}
