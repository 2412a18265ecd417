//! Purging: giving dirty memory back to the kernel.
//!
//! The oldest runs go first (`policy::purge_bound` says when, and how much). The lock is dropped for the system call: the run is taken out first
//! (`Kind::Purging`), and put back clean. One call gives back a bounded piece, because a fork, or a thread that maps memory, waits for it in the
//! kernel.

use crate::config::Purge;
use crate::page::page_heap::{PageHeap, StateGuard};
use crate::page::page_stats::PageStats;
use crate::page::policy::purge_bound::{self, AGE_GROUPS, After, CALL_MOST, Due, PIECE_MOST, RUNS_AT_ONCE};
use crate::page::runs::{Extent, FreeState, PurgingRun};
use crate::page::state::State;
use crate::span::Kind;
use freestone_base::sync::Ordering;
use freestone_base::units::{Millis, Moment, Pages};
use freestone_os::{Inside, Os};

/// A thread that waits for another thread's purge gives up when none ends for so long. (The thread that purges may be the waiter, interrupted by a
/// signal.)
const WAIT_MOST: Millis = Millis(1000);

/// Large blocks that take fewer clean pages than 1 MiB have nothing purged in exchange: there are many of them, and they fit what is dirty soon.
const EXCHANGED_LEAST: Pages = Pages(16);

/// About the most pages that are taken out at once, 4 MiB: no thread can use them meanwhile.
const AT_ONCE_PAGES: Pages = Pages(64);

/// A run that was taken out to be purged.
struct Taken {
    run: PurgingRun,
    /// How many bytes of it may have memory.
    bytes: usize,
    /// Huge pages are requested somewhere in it.
    is_huge: bool,
    /// What it is afterwards.
    kind: Kind,
}

impl<O: Os> PageHeap<O> {
    /// Purges, oldest first, what is dirty beyond the bound or for longer than the decay time. A thread that allocates or frees leaves to later calls what is
    /// more than [`CALL_MOST`] and what has become free since the last call.
    pub(super) fn purge_due<'a>(&'a self, state: StateGuard<'a>, now: Moment, after: After) -> StateGuard<'a> {
        let mut state = state;
        state.pass_time(now, self.decay());
        state.check_caches(&self.settings, now);
        self.check_freed(&mut state, now);
        let new = state.runs.new_free();
        // Other threads that come meanwhile do not count them again.
        state.runs.set_new_free(Pages::ZERO);
        let most = if after == After::Sleep { Pages::MAX } else { CALL_MOST + new };
        let mut left = most;
        while let Some(first) = self.next_due(&mut state, now, after).filter(|_| left > Pages::ZERO) {
            let (mut runs, mut pages, mut due) = ([const { None }; RUNS_AT_ONCE], Pages::ZERO, Some(first));
            for place in &mut runs {
                if due.is_none() && pages < AT_ONCE_PAGES {
                    due = self.next_due(&mut state, now, after);
                }
                let Some(extent) = due.take() else { break };
                let taken = self.take_out(&mut state, extent);
                pages += taken.run.extent().pages;
                *place = Some(taken);
            }
            left = left.saturating_sub(pages);
            state = self.purge_taken(state, &mut runs, now);
        }
        if left < most {
            self.unmap_if_charged(&mut state);
        }
        state
    }

    /// Purges what is due, for a thread that looks for it now and then.
    pub(crate) fn purge_some_due(&self) {
        drop(self.purge_due(self.lock(), self.now(), After::Other));
    }

    /// Purges all that is due, for the background thread. Returns whether anything is left that may become due.
    pub(crate) fn purge_due_now(&self) -> bool {
        let state = self.purge_due(self.lock(), self.now(), After::Sleep);
        state.may_expire() || self.freed.pages() != Pages::ZERO
    }

    /// The pages of the oldest dirty run that are due. Before memory beyond the bound is purged, caches are emptied, and before memory beyond the early
    /// bound, the lists of freed runs: what they hold counts towards the bound.
    fn next_due(&self, state: &mut StateGuard<'_>, now: Moment, after: After) -> Option<Extent> {
        let (decay, bound) = (self.decay(), state.dirty_bound(&self.settings));
        let beside_lists = |state: &State| state.runs.counts().of(Kind::Dirty) + state.cached_pages();
        if self.may_become_dirty(state) > bound {
            self.empty_caches(state, now);
        }
        let early_bound = state.early_bound(now, decay);
        let kept = if after == After::LargeFree { early_bound } else { Pages::MAX };
        if state.runs.counts().of(Kind::Dirty) + self.freed.pages() > kept {
            let _ = self.empty_freed(state);
        }
        let listed_most = state.basic_bound(&self.settings).min(bound.saturating_sub(beside_lists(state)));
        self.freed.set_most(listed_most.min(early_bound));
        self.freed.set_early(early_bound < Pages::MAX);
        self.bound_emptied(state);
        let oldest = state.runs.oldest_dirty()?;
        let (age, is_huge) = {
            let record = state.runs.record(oldest.first);
            (now.age_of(record.dirty_since()), record.is_huge.get())
        };
        // Huge pages stay: a purge would split them.
        let (decay_of_oldest, kept) =
            if is_huge { (decay, Pages::MAX) } else { (state.early_purge.decay(oldest.pages, now, decay), kept) };
        let dirty = state.runs.counts().of(Kind::Dirty);
        match purge_bound::due(age, decay_of_oldest, dirty, bound) {
            None => {
                let beyond = dirty.saturating_sub(kept).min(oldest.pages).min(PIECE_MOST);
                let pages = state.early_purge.spend(beyond, now, decay);
                (pages > Pages::ZERO).then(|| Extent::new(oldest.first, pages))
            }
            Some(Due::Expired) => {
                state.early_purge.note(oldest.pages.min(PIECE_MOST), age, decay);
                Some(oldest)
            }
            Some(Due::Excess(pages)) => {
                let piece = Extent::new(oldest.first, pages);
                let pages = if is_huge { self.to_huge_page_end(piece) } else { pages };
                let pages = pages.min(oldest.pages);
                state.churn.note_purge_for_amount(pages.min(PIECE_MOST), now);
                Some(Extent::new(oldest.first, pages))
            }
        }
    }

    /// Pages that are dirty, or will be when caches and lists of freed runs are emptied.
    #[inline]
    fn may_become_dirty(&self, state: &State) -> Pages {
        state.runs.counts().of(Kind::Dirty) + state.cached_pages() + self.freed.pages()
    }

    /// Purges dirty pages, oldest first, in exchange for `pages` that a large block has taken, some or all of them clean: what is dirty and too short for
    /// the block is not to add to the program's peak. If more is in use than ever, as many as that is more, at most as many as the block has: all that a
    /// program ever purges so is no more than its peak. Beyond that, in a program that had more dirty than the bound, what is beyond it now; in others, as many
    /// as the block has, as far as the budget of early purges goes.
    pub(super) fn purge_in_exchange<'a>(&'a self, state: StateGuard<'a>, pages: Pages) -> StateGuard<'a> {
        let mut state = state;
        if pages < EXCHANGED_LEAST {
            let has_too_much = self.may_become_dirty(&state) > state.dirty_bound(&self.settings);
            return if has_too_much { self.purge_due(state, self.now(), After::Other) } else { state };
        }
        let growth = state.take_growth();
        let mut grown = self.decay().map_or(Pages::ZERO, |_| growth.min(pages));
        let has_churned = state.churn.has_begun();
        let mut left = if has_churned { grown } else { pages };
        if left > Pages::ZERO {
            let _ = self.empty_freed(&mut state);
        }
        while let Some(oldest) = state.runs.oldest_dirty().filter(|_| left > Pages::ZERO) {
            let (now, most) = (self.now(), oldest.pages.min(left).min(PIECE_MOST));
            let is_huge = state.runs.record(oldest.first).is_huge.get();
            // Huge pages stay, unless more is in use than ever: a purge would split them.
            let spent = if is_huge { Pages::ZERO } else { state.early_purge.spend(most, now, self.decay()) };
            let pages = spent.max(most.min(grown));
            if pages == Pages::ZERO {
                break;
            }
            state = self.purge_run(state, Extent::new(oldest.first, pages), now);
            left -= pages;
            grown = grown.saturating_sub(pages);
        }
        if !has_churned {
            return state;
        }
        // The block counts as memory that has become free does.
        let new = state.runs.new_free() + pages;
        state.runs.set_new_free(new);
        self.purge_due(state, self.now(), After::Other)
    }

    /// Purges pages at the start of a dirty run, or as many of them as one call may, without the lock while the kernel works.
    pub(super) fn purge_run<'a>(&'a self, state: StateGuard<'a>, pages: Extent, now: Moment) -> StateGuard<'a> {
        let mut state = state;
        let taken = self.take_out(&mut state, pages);
        self.purge_taken(state, &mut [Some(taken)], now)
    }

    /// Takes pages at the start of a dirty run out, or as many of them as one call may purge.
    fn take_out(&self, state: &mut State, pages: Extent) -> Taken {
        let is_huge = state.runs.record(pages.first).is_huge.get();
        let run = state.runs.begin_purge(self.one_piece(pages, is_huge));
        let bytes = state.runs.n_open(run.extent()).to_bytes().0;
        Taken { run, bytes, is_huge, kind: Kind::Stuck }
    }

    /// Purges runs without the lock, and puts them back.
    fn purge_taken<'a>(&'a self, state: StateGuard<'a>, runs: &mut [Option<Taken>], now: Moment) -> StateGuard<'a> {
        // In the child of a signal handler's fork these runs are still this thread's to put back.
        let _inside = Inside::begin();
        drop(state);
        // Another thread may set the option meanwhile.
        let how = self.settings.purge();
        let gone = self.purge_memory(runs.iter().flatten().map(|taken| &taken.run), how);
        for (at, taken) in runs.iter_mut().flatten().enumerate() {
            let has_gone = gone >> at & 1 == 1;
            self.purges.count(has_gone, taken.bytes);
            if !has_gone && how == Purge::DontNeed {
                self.unmaps.store(true, Ordering::Relaxed);
            }
            if has_gone && how == Purge::DontNeed && self.os.purge_zeroes() {
                taken.is_huge = taken.is_huge && !self.forget_huge_pages(&taken.run);
                taken.kind = Kind::Clean;
            }
        }
        let mut state = self.lock();
        for Taken { run, is_huge, kind, .. } in runs.iter_mut().filter_map(Option::take) {
            state.runs.end_purge(run, FreeState { kind, since: now, is_huge });
        }
        self.tell_waiting(&state);
        state
    }

    /// Spends the budget of early purges: up to the dirty bound, what is freed stays dirty for the decay time.
    #[cfg(test)]
    pub(crate) fn spend_early_purges(&self) {
        let _ = self.lock().early_purge.spend(Pages::MAX, self.now(), self.decay());
    }

    /// Tells threads that wait for a purge that one has ended.
    pub(super) fn tell_waiting(&self, state: &State) {
        if state.n_waiting > 0 {
            self.watch.end_purge();
        }
    }

    /// At most as many pages as one call gives back: to the end of a huge page, where there may be some.
    fn one_piece(&self, pages: Extent, may_be_huge: bool) -> Extent {
        let piece = Extent::new(pages.first, PIECE_MOST);
        let most = if may_be_huge { self.to_huge_page_end(piece) } else { PIECE_MOST };
        Extent::new(pages.first, pages.pages.min(most))
    }

    /// Waits until a run that others are purging is back; `Err` if that takes so long that it may never be.
    pub(super) fn await_purge<'a>(&'a self, state: StateGuard<'a>) -> Result<StateGuard<'a>, StateGuard<'a>> {
        let mut state = state;
        let _inside = Inside::begin();
        let (seen, began) = (self.watch.purges(), self.now());
        loop {
            state.n_waiting += 1;
            drop(state);
            self.watch.await_purge(seen, WAIT_MOST);
            state = self.lock();
            state.n_waiting -= 1;
            if self.watch.purges() != seen {
                return Ok(state);
            }
            if self.now().since(began) >= WAIT_MOST {
                return Err(state);
            }
        }
    }

    /// Makes the runs dirty again that threads of the parent were purging at the fork: the child does not have these threads. To be called
    /// in the child before anything else uses the heap, when the lock was dropped. The kernel may have taken a part of their memory. Blocks that were being
    /// closed stay quarantined for good, for nobody knows whether they are closed. If the parent `had_others` beside the thread that forked, these may have
    /// been about to list freed runs, which are forgotten; else only that thread itself may be, which a signal handler has interrupted.
    pub(crate) fn adopt_purging_in_child(&self, had_others: bool) {
        let now = self.now();
        let mut state = self.lock();
        (state.n_waiting, state.closing) = (0, Pages::ZERO);
        let _ = self.empty_freed(&mut state);
        if had_others {
            self.freed.forget_others();
            self.emptied.forget_others();
        }
        while let Some(run) = state.runs.abandoned_purge() {
            let is_huge = state.runs.record(run.extent().first).is_huge.get();
            state.runs.end_purge(run, FreeState::dirty(now, is_huge));
        }
    }

    /// Bytes given back to the operating system, ever.
    pub(crate) fn purged_bytes(&self) -> u64 {
        self.purges.bytes()
    }

    /// Purges all dirty memory now, and what threads have in their caches, also what the kernel would not take back before. Returns the bytes given back.
    pub(crate) fn purge(&self) -> usize {
        if self.layout().n_pages == 0 {
            return 0;
        }
        let now = self.now();
        let mut state = self.lock();
        let before = self.purges.bytes();
        self.empty_caches(&mut state, now);
        if self.settings.purge() == Purge::DontNeed {
            state.runs.end_stuck(now);
        }
        while let Some(run) = state.runs.oldest_dirty() {
            state = self.purge_run(state, run, now);
        }
        self.unmap_if_charged(&mut state);
        (self.purges.bytes() - before) as usize
    }

    /// The numbers, and bytes of dirty runs by age: younger than a quarter of the decay time, than half of it, than all of it, and older.
    #[must_use]
    pub(crate) fn stats_with_ages(&self) -> (PageStats, [u64; AGE_GROUPS]) {
        let (now, decay) = (self.now(), self.decay().unwrap_or(Millis::MAX));
        let mut state = self.lock();
        let mut bytes = [0; AGE_GROUPS];
        for (run, pages) in state.runs.dirty_by_age() {
            let group = purge_bound::age_group(now.age_of(run.dirty_since()), decay);
            if let Some(sum) = bytes.get_mut(group) {
                *sum += pages.to_bytes().0 as u64;
            }
        }
        (state.stats(&self.purges, self.ahead.pages()), bytes)
    }

    /// How often the background thread was woken: to be read before it looks for work, and given to [`PageHeap::sleep`].
    #[must_use]
    pub(crate) fn wakes(&self) -> u32 {
        self.watch.wakes()
    }

    /// Sleeps until there may be something to purge, or `ms` have passed, or another thread calls [`PageHeap::wake`]; not at all if that was
    /// since `wakes`, nor if there `is_more` to do, which takes the lock under which that comes about.
    pub(crate) fn sleep(&self, wakes: u32, ms: Option<u32>, is_more: impl FnOnce() -> bool) {
        // Without a decay time nothing becomes due, however dirty.
        let waits_for_dirt = ms.is_none() && self.settings.decay_ms().is_some();
        self.watch.sleep(wakes, ms, waits_for_dirt, || is_more() || self.is_dirty());
    }

    /// Whether memory is dirty that will be due by its age alone. A thread that empties a span, or frees a large block, later sees what this one wrote before.
    fn is_dirty(&self) -> bool {
        let mut state = self.state.lock();
        self.free_emptied(&mut state);
        let _ = self.empty_freed(&mut state);
        state.may_expire()
    }

    /// Wakes the background thread if it sleeps until there is something to do, other than by a free that makes memory dirty.
    pub(crate) fn wake_for_work(&self) {
        self.watch.wake_for_work();
    }

    /// Wakes the background thread.
    pub(crate) fn wake(&self) {
        self.watch.wake();
    }
}

#[cfg(test)]
mod tests;
