//! The operations of the page heap.
#![allow(unsafe_code)]
//!
//! One lock (rank [`RANK`]); no system call that takes long is made while it is held: purging takes a run out, lets the lock go,
//! and puts the run back clean. Memory that is short is an answer (`None`), never a call upwards.
//!
//! # Safety
//! Records are touched under the lock, or when the run is the caller's.

use crate::config::Settings;
use crate::page::state::{PageStats, State};
use crate::page::window;
use crate::span::layout::CHUNK_PAGES;
use crate::span::{Entry, Kind, Layout, SpanList};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use freestone_base::align;
use freestone_base::lock::{Guard, Lock};
use freestone_base::once::Once;
use freestone_base::sync::Ordering;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};
use freestone_os::{Errno, Futex, Os};

/// Rank of the lock: the innermost.
pub const RANK: u8 = 30;

/// The arena grows by at least this much: 1 MiB, so that a small process stays small.
const GROW_PAGES_LEAST: u32 = 16;

/// The arena grows by at most this much beyond what is asked for: 64 MiB.
const GROW_PAGES_MOST: u32 = 1024;

/// The arena grows by this part of what it has, so that the number of system calls stays logarithmic.
const GROW_SHARE: u32 = 8;

/// A block that grows gets this many times its size of address space, itself included.
const ROOM_FACTOR: u32 = 4;

/// Bytes of a piece of metadata storage.
const METADATA_PAGES: u32 = 1;

/// The dirty bound is this part of the pages in use, or the option's, whichever is larger.
const DIRTY_SHARE: u64 = 10;

/// Pages handed out.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The first page.
    pub page: u32,
    /// Whether all of it reads as zero.
    pub zero: bool,
}

/// See the module header.
pub struct PageHeap<O: Os> {
    os: O,
    opened: Once<Futex>,
    layout: UnsafeCell<Layout>,
    state: Lock<State, Futex, RANK>,
}

// SAFETY: `layout` is written once, inside `opened`, and read only after it.
unsafe impl<O: Os> Sync for PageHeap<O> {}

impl<O: Os> PageHeap<O> {
    /// A heap that has asked the operating system for nothing yet.
    #[must_use]
    pub const fn new(os: O) -> Self {
        Self { os, opened: Once::new(), layout: UnsafeCell::new(Layout::EMPTY), state: Lock::new(State::empty()) }
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
                Some(layout) => {
                    // SAFETY: this closure runs alone, and nobody reads before it is done.
                    unsafe { *self.layout.get() = layout };
                    let mut state = self.state.lock();
                    state.n_chunks = 1;
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

    /// Allocates `n_pages` in a row for `kind`, the first a multiple of `align_pages` (a power of two) from address 0.
    /// `None` when memory or the window runs out.
    pub fn allocate(&self, n_pages: u32, align_pages: u32, kind: Kind) -> Option<Run> {
        let layout = self.open()?;
        let searched = n_pages.checked_add(align_pages - 1)?;
        let mut state = self.state.lock();
        let page = match state.dirty.find(layout, searched).or_else(|| state.clean.find(layout, searched)) {
            Some(page) => page,
            None => {
                self.grow(&mut state, layout, searched)?;
                state.clean.find(layout, searched)?
            }
        };
        // SAFETY: `find` answers with a free run that is long enough, and the lock is held.
        Some(unsafe { self.take(&mut state, layout, page, (n_pages, align_pages), kind) })
    }

    /// Allocates `n_pages` for a large block that is going to grow: with as much address space again, several times, free behind it.
    /// `None` when that is not to be had.
    pub fn allocate_roomy(&self, n_pages: u32) -> Option<Run> {
        let layout = self.open()?;
        let searched = n_pages.checked_mul(ROOM_FACTOR)?;
        let mut state = self.state.lock();
        let page = match state.clean.find(layout, searched) {
            Some(page) => page,
            None => {
                self.grow(&mut state, layout, searched)?;
                state.clean.find(layout, searched)?
            }
        };
        // SAFETY: as in `allocate`.
        Some(unsafe { self.take(&mut state, layout, page, (n_pages, 1), Kind::Large) })
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
            let record = &*layout.record(page);
            let (was, since) = (record.kind.get(), record.dirty_since_ms.get());
            state.take(layout, page, searched, kind);
            let first = self.align_up(layout, page, align_pages);
            self.trim(state, layout, (page, searched), (first, n_pages), (was, since), kind);
            if kind == Kind::Large {
                state.stats.large_allocs += 1;
                (*layout.record(first)).owner.store(core::ptr::null_mut(), Ordering::Relaxed);
                layout.map.set(first, 1, Entry::LARGE);
            }
            Run { page: first, zero: was == Kind::Clean }
        }
    }

    /// Moves the memory behind a large block to the start of another, without copying; the old block is freed, and clean. `false` if the
    /// kernel would not: nothing has moved then, and what the new block holds is undefined.
    ///
    /// # Safety
    /// - Both are large blocks of the caller's, the new one not shorter.
    pub unsafe fn relocate(&self, from: u32, to: u32) -> bool {
        let layout = self.layout();
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = ((*layout.record(from)).pages.get() as usize) << PAGE_BYTES_LOG2;
            if self.os.relocate(layout.page_start(from), bytes, layout.page_start(to)).is_err() {
                return false;
            }
        }
        let mut state = self.state.lock();
        // SAFETY: the old block is the caller's; its memory is gone, and reads as zero.
        unsafe {
            self.end_large(&mut state, layout, from);
            let n_pages = state.end_use(layout, from);
            state.insert(layout, from, n_pages, Kind::Clean, 0);
        }
        true
    }

    /// Takes a large block out of the map, the counts and its heap's list.
    unsafe fn end_large(&self, state: &mut State, layout: &Layout, page: u32) {
        // SAFETY: the caller's block, under the lock.
        unsafe {
            let list: *const SpanList = (*layout.record(page)).owner.load(Ordering::Relaxed).cast();
            if !list.is_null() {
                (*list).remove(layout, page);
            }
            // Only the first page of a large block has an entry.
            layout.map.set(page, 1, Entry::NONE);
        }
        state.stats.large_frees += 1;
    }

    fn align_up(&self, layout: &Layout, page: u32, align_pages: u32) -> u32 {
        let address = layout.page_start(page).addr();
        let aligned = align::up(address, (align_pages as usize) << PAGE_BYTES_LOG2);
        page + ((aligned - address) >> PAGE_BYTES_LOG2) as u32
    }

    /// Gives back what was taken before and after the pages that are wanted, as the kind it was.
    unsafe fn trim(
        &self,
        state: &mut State,
        layout: &Layout,
        taken: (u32, u32),
        wanted: (u32, u32),
        was: (Kind, u32),
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
                state.insert(layout, from, first - from, was.0, was.1);
            }
            if from + n_taken > end {
                state.insert(layout, end, from + n_taken - end, was.0, was.1);
            }
            state.begin_use(kind, n_wanted);
        }
    }

    /// Commits more pages at the frontier, at least `n_pages` in a row, as a clean run.
    fn grow(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Option<()> {
        let generous = (state.frontier / GROW_SHARE).clamp(GROW_PAGES_LEAST, GROW_PAGES_MOST).max(n_pages);
        let mut skip = 1;
        let mut wanted = generous;
        loop {
            if state.frontier as usize + wanted as usize > layout.n_pages {
                if wanted == n_pages {
                    return None;
                }
                wanted = n_pages;
                continue;
            }
            match self.commit(state, layout, wanted) {
                Ok(()) => return Some(()),
                Err(Errno::EXIST) => {
                    // Somebody mapped something in our window: leave it there and go on behind it.
                    self.commit_metadata(state, layout, skip).ok()?;
                    // SAFETY: under the lock; the skipped pages have never been used.
                    unsafe { state.skip(layout, skip) };
                    skip = skip.saturating_mul(2);
                }
                Err(_) if wanted > n_pages => wanted = n_pages,
                Err(_) => return None,
            }
        }
    }

    fn commit(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Result<(), Errno> {
        self.commit_metadata(state, layout, n_pages)?;
        let from = state.frontier;
        // SAFETY: the pages lie in the window, beyond the frontier; committed memory is zero.
        unsafe {
            self.os.commit(layout.page_start(from), (n_pages as usize) << PAGE_BYTES_LOG2, false)?;
            state.frontier += n_pages;
            state.insert(layout, from, n_pages, Kind::Clean, 0);
        }
        Ok(())
    }

    /// Sees to the records and bitmaps of the next `n_pages`, and of the page after them.
    fn commit_metadata(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Result<(), Errno> {
        let last = (state.frontier as usize + n_pages as usize).min(layout.n_pages - 1);
        while (state.n_chunks as usize) <= last / CHUNK_PAGES {
            window::commit_chunk(&self.os, layout, state.n_chunks)?;
            state.n_chunks += 1;
        }
        Ok(())
    }

    /// Takes a run back: it is dirty from now on. Then purges what is too much or too old.
    ///
    /// # Safety
    /// - `page` starts a run in use that is the caller's, and nobody uses its memory any more.
    pub unsafe fn free(&self, page: u32, settings: &Settings) {
        let layout = self.layout();
        let now = self.now_ms();
        let mut state = self.state.lock();
        // SAFETY: the caller's promise; under the lock.
        unsafe {
            let record = &*layout.record(page);
            if record.kind.get() == Kind::Large {
                self.end_large(&mut state, layout, page);
            } else {
                layout.map.set(page, record.pages.get(), Entry::NONE);
            }
            let n_pages = state.end_use(layout, page);
            state.insert(layout, page, n_pages, Kind::Dirty, now);
        }
        self.tidy(state, settings, now);
    }

    /// Cuts the pages from `keep` on off a large block; they are dirty from now on.
    ///
    /// # Safety
    /// - `page` starts a large block of more than `keep` pages (at least 1) that is the caller's.
    pub unsafe fn shrink(&self, page: u32, keep: u32, settings: &Settings) {
        let layout = self.layout();
        let now = self.now_ms();
        let mut state = self.state.lock();
        // SAFETY: the caller's promise; under the lock.
        unsafe {
            let all = state.end_use(layout, page);
            state.label(layout, page, keep, Kind::Large);
            state.begin_use(Kind::Large, keep);
            state.insert(layout, page + keep, all - keep, Kind::Dirty, now);
        }
        self.tidy(state, settings, now);
    }

    /// Makes a large block `n_pages` long by taking the free run behind it; `false` if there is none or it is too short.
    ///
    /// # Safety
    /// - `page` starts a large block of fewer than `n_pages` that is the caller's.
    pub unsafe fn extend(&self, page: u32, n_pages: u32) -> bool {
        let layout = self.layout();
        let mut state = self.state.lock();
        // SAFETY: the caller's promise; under the lock. The page behind a run starts a run, or is at the frontier.
        unsafe {
            let all = (*layout.record(page)).pages.get();
            let (next, more) = (page + all, n_pages - all);
            if next >= state.frontier && (state.frontier as usize + more as usize) < layout.n_pages {
                // The block is the last thing before the frontier: grow under it.
                if self.commit(&mut state, layout, more).is_err() {
                    return false;
                }
            }
            if next >= state.frontier {
                return false;
            }
            let behind = &*layout.record(next);
            if !matches!(behind.kind.get(), Kind::Clean | Kind::Dirty | Kind::Stuck) || behind.pages.get() < more {
                return false;
            }
            state.take(layout, next, more, Kind::Large);
            state.label(layout, page, n_pages, Kind::Large);
        }
        true
    }

    /// Gives back, oldest first, what is dirty beyond the bound or for longer than the decay time.
    fn tidy(&self, state: Guard<'_, State, Futex, RANK>, settings: &Settings, now_ms: u32) {
        let mut state = state;
        while let Some(page) = self.next_to_purge(&state, settings, now_ms) {
            state = self.purge_run(state, page, now_ms);
        }
    }

    /// The oldest dirty run, if there is a reason to purge it.
    fn next_to_purge(&self, state: &State, settings: &Settings, now_ms: u32) -> Option<u32> {
        let oldest = state.oldest;
        if oldest == 0 {
            return None;
        }
        let in_use = state.stats.small_pages + state.stats.large_pages;
        let bound = (settings.dirty_max_bytes() as u64 >> PAGE_BYTES_LOG2).max(in_use / DIRTY_SHARE);
        // SAFETY: a dirty run has a record, and the caller holds the lock.
        let age_ms = now_ms.wrapping_sub(unsafe { (*self.layout().record(oldest)).dirty_since_ms.get() });
        (state.stats.dirty_pages > bound || age_ms >= settings.decay_ms()).then_some(oldest)
    }

    /// Purges one dirty run, without the lock while the kernel works.
    fn purge_run<'a>(
        &'a self,
        mut state: Guard<'a, State, Futex, RANK>,
        page: u32,
        now_ms: u32,
    ) -> Guard<'a, State, Futex, RANK> {
        let layout = self.layout();
        // SAFETY: the run is dirty, hence free; labelled as in use it is this thread's alone until it is inserted again.
        unsafe {
            let n_pages = (*layout.record(page)).pages.get();
            state.take(layout, page, n_pages, Kind::Metadata);
            drop(state);
            let bytes = (n_pages as usize) << PAGE_BYTES_LOG2;
            let purged = self.os.purge(layout.page_start(page), bytes).is_ok();
            let zeroes = purged && self.os.purge_zeroes();
            let mut state = self.state.lock();
            state.end_use(layout, page);
            if purged {
                state.stats.purged_bytes += bytes as u64;
                state.stats.n_purges += 1;
            }
            let kind = if zeroes { Kind::Clean } else { Kind::Stuck };
            state.insert(layout, page, n_pages, kind, now_ms);
            state
        }
    }

    /// Gives memory inside a run in use back. `false` if the kernel would not take it.
    ///
    /// # Safety
    /// - The range is made of whole OS pages of a run in use that is the caller's, and nobody needs its contents.
    pub unsafe fn purge_inside(&self, start: *mut u8, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        let purged = unsafe { self.os.purge(start, bytes) }.is_ok();
        if purged {
            let mut state = self.state.lock();
            state.stats.purged_bytes += bytes as u64;
            state.stats.n_purges += 1;
        }
        purged
    }

    /// Gives all dirty memory back now. Returns the bytes given back.
    pub fn purge(&self) -> usize {
        if self.layout().n_pages == 0 {
            return 0;
        }
        let now = self.now_ms();
        let mut state = self.state.lock();
        let before = state.stats.purged_bytes;
        while state.oldest != 0 {
            let oldest = state.oldest;
            state = self.purge_run(state, oldest, now);
        }
        (state.stats.purged_bytes - before) as usize
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
                    state.stats.metadata_bytes += bytes as u64;
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

    /// Enters a large block into the list of an explicit heap; freeing it takes it out.
    ///
    /// # Safety
    /// - `page` starts a large block that is the caller's, and `list` stays where it is as long as the block lives.
    pub unsafe fn list_large(&self, page: u32, list: &SpanList) {
        let layout = self.layout();
        let _state = self.state.lock();
        // SAFETY: the caller's promise; the lock guards all such lists.
        unsafe {
            (*layout.record(page)).owner.store(core::ptr::from_ref(list).cast_mut().cast(), Ordering::Relaxed);
            list.push(layout, page);
        }
    }

    /// The first large block of a list, by page, or 0.
    #[must_use]
    pub fn first_large(&self, list: &SpanList) -> u32 {
        let _state = self.state.lock();
        list.first()
    }

    /// Calls `visit` with the state under the lock, for `check`.
    pub fn inspect<R>(&self, visit: impl FnOnce(&State, &Layout) -> R) -> R {
        let state = self.state.lock();
        visit(&state, self.layout())
    }

    /// Takes the lock and keeps it, before a fork.
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

    fn now_ms(&self) -> u32 {
        self.os.now_ms() as u32
    }
}
