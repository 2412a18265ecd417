//! Giving memory back: what is too old, and what is too much.
#![allow(unsafe_code)]
//!
//! ```text
//!  oldest ─▶ dirty run ─▶ dirty run ─▶ … ─▶ youngest        purged from the old end, bit by bit, while
//!                                                            the oldest is older than `decay_ms`, or all are more than the bound
//! ```
//!
//! **The bound** is `dirty_max`, or a tenth of what is in use. A program whose large blocks come and go pays for that with page faults
//! (a block of 32 MiB: 16 ms, measured): when memory that was purged for the amount is wanted again within the decay time, it was
//! purged in vain, and the program *churns*. As long as it does, use and dirt together may be 7/5 of what was in use lately; but never
//! more than eight times what is in use now is kept, for a program that goes idle is to keep little. It churns until no large block
//! was taken from dirty memory, or purged in vain, for a decay time.
//!
//! One call gives back a bounded piece: the kernel makes forks, and whoever maps memory, wait for it.
//!
//! # Safety
//! Runs purged are taken out first: they are this thread's alone until they are inserted again.

use crate::config::{Purge, Settings};
use crate::page::PageHeap;
use crate::page::heap::RANK;
use crate::page::state::{Free, State};
use crate::span::{Kind, Layout, Span};
use freestone_base::lock::{Guard, Parking};
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::{Futex, Os};

/// What is too much is purged in pieces of at least this much: 1 MiB.
const PURGE_PAGES_LEAST: u32 = 16;

/// One call gives back at most this much, for a fork, and whoever maps memory, waits for it: 2 MiB.
const PURGE_PAGES_MOST: u32 = 32;

/// Who waits for others' purges gives up when none ends for so long. (The one who purges may be the waiter, interrupted by a signal.)
const WAIT_MS: u32 = 1000;

/// What a program that churns may keep, at most: this many times what is in use now.
const CHURN_KEEP: u64 = 8;

/// What it may have in use and dirty, as a part of what was in use lately.
const CHURN_PEAK: (u64, u64) = (7, 5);

/// Or this much more than was in use lately, if that is more: 64 MiB.
const CHURN_PAGES: u64 = 1024;

/// Whether large blocks come and go, and what the program had in use lately.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// When memory was last purged for its amount.
    purged_ms: Option<u32>,
    /// When a large block last had a use for memory that was kept, or would have had.
    useful_ms: Option<u32>,
    /// When the period began whose peak is the first of `peak_pages`; it is as long as the decay time.
    period_ms: u32,
    /// The most pages in use in this period and in the one before.
    peak_pages: [u64; 2],
}

impl Churn {
    /// None seen.
    pub(super) const NONE: Self = Self { purged_ms: None, useful_ms: None, period_ms: 0, peak_pages: [0; 2] };
}

/// Where the one who looks after the heap sleeps, and who waits for memory that is being given back.
#[derive(Debug)]
pub struct Watch {
    wakes: AtomicU32,
    /// It sleeps until something becomes dirty.
    asleep: AtomicBool,
    /// Purges that ended while somebody waited for that. Changed under the lock.
    purges: AtomicU32,
}

impl Watch {
    /// Nobody there.
    pub(super) const fn new() -> Self {
        Self { wakes: AtomicU32::new(0), asleep: AtomicBool::new(false), purges: AtomicU32::new(0) }
    }
}

impl<O: Os> PageHeap<O> {
    /// Gives back, oldest first, what is dirty beyond the bound or for longer than the decay time.
    pub(super) fn tidy<'a>(
        &'a self,
        state: Guard<'a, State, Futex, RANK>,
        now_ms: u32,
    ) -> Guard<'a, State, Futex, RANK> {
        let mut state = state;
        state.pass_time(&self.settings, now_ms);
        self.look_at_shelves(&mut state, now_ms);
        while let Some((page, n_pages)) = self.next_to_purge(&mut state, now_ms) {
            state = self.purge_run(state, page, n_pages, now_ms);
        }
        state
    }

    /// Gives back what is too old or too much, for those who look after the heap from time to time. Whether anything is left that may get
    /// old.
    pub fn tidy_now(&self) -> bool {
        self.tidy(self.state.lock(), self.now_ms()).may_get_old()
    }

    /// How often the one who looks after the heap was woken: to be read before looking, and given to [`PageHeap::sleep`].
    #[must_use]
    pub fn wakes(&self) -> u32 {
        self.watch.wakes.load(Ordering::Acquire)
    }

    /// Sleeps until there is something to look after, or `ms` have passed, or somebody calls [`PageHeap::wake`]; not at all if that was
    /// since `wakes`.
    pub fn sleep(&self, wakes: u32, ms: Option<u32>) {
        // Without a decay time nothing gets old, however dirty.
        let waits_for_dirt = ms.is_none() && self.settings.decay_ms().is_some();
        self.watch.asleep.store(waits_for_dirt, Ordering::Relaxed);
        // What became dirty before the line above called nobody; what does so after the lock below was taken sees that line.
        if !waits_for_dirt || !self.state.lock().may_get_old() {
            Futex::wait_for(&self.watch.wakes, wakes, ms);
        }
        self.watch.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the one who looks after the heap.
    pub fn wake(&self) {
        self.watch.wakes.fetch_add(1, Ordering::Release);
        Futex::wake_one(&self.watch.wakes);
    }

    /// Wakes the one who looks after the heap if it sleeps until something becomes dirty, which has just happened.
    pub(super) fn wake_for_dirty(&self) {
        if self.watch.asleep.load(Ordering::Relaxed) && self.watch.asleep.swap(false, Ordering::Relaxed) {
            self.wake();
        }
    }

    /// The oldest dirty run, if there is a reason to purge it, and how much of it.
    fn next_to_purge(&self, state: &mut State, now_ms: u32) -> Option<(u32, u32)> {
        let bound = state.dirty_bound(&self.settings);
        if state.stats.dirty_pages + state.shelf_pages > bound {
            state.empty_shelves(self.layout(), now_ms);
        }
        let oldest = state.oldest;
        if oldest == 0 {
            return None;
        }
        // SAFETY: a dirty run has a record, and the caller holds the lock.
        let record = unsafe { &*self.layout().record(oldest) };
        let age_ms = now_ms.wrapping_sub(record.dirty_since_ms.get());
        if self.settings.decay_ms().is_some_and(|decay_ms| age_ms >= decay_ms) {
            return Some((oldest, record.pages.get()));
        }
        let excess = state.stats.dirty_pages.saturating_sub(bound);
        if excess == 0 {
            return None;
        }
        state.churn.purged_ms = Some(now_ms);
        let mut excess = u32::try_from(excess).unwrap_or(u32::MAX).max(PURGE_PAGES_LEAST);
        if record.is_huge.get() {
            excess = self.to_huge_page_end(oldest, excess);
        }
        Some((oldest, excess.min(record.pages.get())))
    }

    /// Notes that a large block takes dirty memory (`reused`), or memory that has to be faulted in.
    pub(super) fn note_churn(&self, state: &mut State, reused: bool) {
        let churn = &mut state.churn;
        let (Some(decay_ms), Some(since_ms)) =
            (self.settings.decay_ms(), if reused { churn.useful_ms } else { churn.purged_ms })
        else {
            return;
        };
        let now_ms = self.now_ms();
        if now_ms.wrapping_sub(since_ms) < decay_ms {
            churn.useful_ms = Some(now_ms);
        }
    }

    /// Purges the first `n_pages` of a dirty run, or as many of them as one call may, without the lock while the kernel works.
    pub(super) fn purge_run<'a>(
        &'a self,
        mut state: Guard<'a, State, Futex, RANK>,
        page: u32,
        n_pages: u32,
        now_ms: u32,
    ) -> Guard<'a, State, Futex, RANK> {
        let layout = self.layout();
        // SAFETY: the run is dirty, hence free; labelled as being purged it is this thread's alone until it is inserted again.
        unsafe {
            let record = &*layout.record(page);
            let was_huge = record.is_huge.get();
            let n_pages = self.bounded(page, n_pages, record);
            state.take(layout, page, n_pages, Kind::Purging);
            state.purging.push(layout, page);
            drop(state);
            let bytes = (n_pages as usize) << PAGE_BYTES_LOG2;
            let purged = self.purge_range(layout.page_start(page), bytes);
            let zeroes = purged && self.settings.purge() == Purge::DontNeed && self.os.purge_zeroes();
            let is_huge = was_huge && !(zeroes && self.forget_huge_pages(page, n_pages));
            let mut state = self.state.lock();
            state.purging.remove(layout, page);
            state.end_use(layout, page);
            state.count_purge(purged, bytes);
            let kind = if zeroes { Kind::Clean } else { Kind::Stuck };
            state.insert(layout, page, n_pages, Free { kind, since_ms: now_ms, is_huge });
            if state.n_waiting > 0 {
                self.watch.purges.fetch_add(1, Ordering::Relaxed);
                Futex::wake_all(&self.watch.purges);
            }
            state
        }
    }

    /// At most as many of `n_pages` as one call gives back: to the end of a huge page, where there may be some.
    fn bounded(&self, page: u32, n_pages: u32, record: &Span) -> u32 {
        let most = if record.is_huge.get() { self.to_huge_page_end(page, PURGE_PAGES_MOST) } else { PURGE_PAGES_MOST };
        n_pages.min(most)
    }

    /// Waits until a run that others are purging is back; `Err` if that takes so long that it may never be.
    pub(super) fn await_purge<'a>(
        &'a self,
        state: Guard<'a, State, Futex, RANK>,
    ) -> Result<Guard<'a, State, Futex, RANK>, Guard<'a, State, Futex, RANK>> {
        let mut state = state;
        let (seen, since_ms) = (self.watch.purges.load(Ordering::Relaxed), self.now_ms());
        loop {
            state.n_waiting += 1;
            drop(state);
            Futex::wait_for(&self.watch.purges, seen, Some(WAIT_MS));
            state = self.state.lock();
            state.n_waiting -= 1;
            if self.watch.purges.load(Ordering::Relaxed) != seen {
                return Ok(state);
            }
            if self.now_ms().wrapping_sub(since_ms) >= WAIT_MS {
                return Err(state);
            }
        }
    }

    /// Makes the runs dirty again that threads of the parent were purging at the fork: the child does not have these threads. To be called
    /// in the child before anything else uses the heap, when the lock is let go.
    pub(crate) fn adopt_purging_in_child(&self) {
        let (layout, now_ms) = (self.layout(), self.now_ms());
        let mut state = self.state.lock();
        state.n_waiting = 0;
        loop {
            // SAFETY: runs in the list are nobody's in this process, and the lock is held. The kernel may have taken a part of their memory.
            unsafe {
                let page = state.purging.pop(layout);
                if page == 0 {
                    break;
                }
                let is_huge = (*layout.record(page)).is_huge.get();
                let n_pages = state.end_use(layout, page);
                state.insert(layout, page, n_pages, Free::dirty(now_ms, is_huge));
            }
        }
    }

    /// Bytes of dirty runs by age: younger than a quarter of the decay time, than half of it, than all of it, and older.
    #[must_use]
    pub fn dirty_by_age(&self) -> [u64; 4] {
        let (layout, now_ms) = (self.layout(), self.now_ms());
        let decay_ms = self.settings.decay_ms().unwrap_or(u32::MAX);
        let state = self.state.lock();
        let (mut bytes, mut page) = ([0; 4], state.oldest);
        while page != 0 {
            // SAFETY: a dirty run has a record, and the lock is held.
            let record = unsafe { &*layout.record(page) };
            let age_ms = now_ms.wrapping_sub(record.dirty_since_ms.get());
            let older_than = [decay_ms / 4, decay_ms / 2, decay_ms].iter().filter(|&&bound| age_ms >= bound).count();
            if let Some(slot) = bytes.get_mut(older_than) {
                *slot += u64::from(record.pages.get()) << PAGE_BYTES_LOG2;
            }
            page = record.younger.get();
        }
        bytes
    }

    /// Gives memory inside a run in use back. `false` if the kernel would not take it.
    ///
    /// # Safety
    /// - The range is made of whole OS pages of a run in use that is the caller's, and nobody needs its contents.
    pub unsafe fn purge_inside(&self, start: *mut u8, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        let purged = unsafe { self.purge_range(start, bytes) };
        self.state.lock().count_purge(purged, bytes);
        purged
    }

    /// Gives a range back as the options say; whether the kernel took it.
    unsafe fn purge_range(&self, start: *mut u8, bytes: usize) -> bool {
        // SAFETY: the caller needs the contents no more.
        unsafe {
            match self.settings.purge() {
                Purge::DontNeed => self.os.purge(start, bytes).is_ok(),
                Purge::Free => self.os.purge_lazily(start, bytes).is_ok(),
            }
        }
    }

    /// Gives all dirty memory back now, and what threads keep on their shelves. Returns the bytes given back.
    pub fn purge(&self) -> usize {
        let layout = self.layout();
        if layout.n_pages == 0 {
            return 0;
        }
        let now = self.now_ms();
        let mut state = self.state.lock();
        let before = state.stats.purged_bytes;
        state.empty_shelves(layout, now);
        while let Some((page, n_pages)) = state.oldest_dirty(layout) {
            state = self.purge_run(state, page, n_pages, now);
        }
        (state.stats.purged_bytes - before) as usize
    }
}

impl State {
    /// The oldest dirty run and its length.
    pub(super) fn oldest_dirty(&self, layout: &Layout) -> Option<(u32, u32)> {
        // SAFETY: a dirty run has a record, and the state is borrowed under the lock.
        (self.oldest != 0).then(|| (self.oldest, unsafe { (*layout.record(self.oldest)).pages.get() }))
    }

    /// Whether there is something that only has to be left alone to be given back.
    fn may_get_old(&self) -> bool {
        self.oldest != 0 || self.shelf_pages != 0
    }

    /// Dirty pages that may stay, whatever their age. See the module header.
    fn dirty_bound(&self, settings: &Settings) -> u64 {
        let in_use = self.in_use_pages();
        let bound = settings.dirty_bound_bytes(in_use << PAGE_BYTES_LOG2) >> PAGE_BYTES_LOG2;
        if self.churn.useful_ms.is_none() {
            return bound;
        }
        let lately = self.churn.peak_pages[0].max(self.churn.peak_pages[1]);
        let peak = (lately * CHURN_PEAK.0 / CHURN_PEAK.1).max(lately + CHURN_PAGES);
        let raised = peak.saturating_sub(in_use).min(CHURN_KEEP * in_use);
        bound.max(raised)
    }

    /// Forgets churn, and peaks, that are too long ago.
    fn pass_time(&mut self, settings: &Settings, now_ms: u32) {
        let decay_ms = settings.decay_ms().unwrap_or(u32::MAX);
        let in_use = self.in_use_pages();
        let churn = &mut self.churn;
        churn.useful_ms = churn.useful_ms.filter(|since_ms| now_ms.wrapping_sub(*since_ms) < decay_ms);
        if now_ms.wrapping_sub(churn.period_ms) >= decay_ms {
            churn.period_ms = now_ms;
            churn.peak_pages = [in_use, churn.peak_pages[0]];
        }
    }

    /// Remembers what is in use, if it is more than lately.
    pub(super) fn note_peak(&mut self, in_use: u64) {
        self.churn.peak_pages[0] = self.churn.peak_pages[0].max(in_use);
    }

    fn count_purge(&mut self, purged: bool, bytes: usize) {
        if purged {
            self.stats.purged_bytes += bytes as u64;
            self.stats.n_purges += 1;
        }
    }
}
