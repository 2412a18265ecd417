//! What the page heap's lock protects: runs, caches, and the state of the policies.

use crate::config::Settings;
use crate::page::cache_list::{CacheList, Close};
use crate::page::large_cache::{LargeRunCache, PermanentCache};
use crate::page::large_list::LargeList;
use crate::page::page_stats::{Events, PageStats, Purges};
use crate::page::policy::churn::Churn;
use crate::page::policy::density::Density;
use crate::page::policy::early_purge::EarlyPurge;
use crate::page::policy::guarding::Guarding;
use crate::page::policy::held_back::HeldBack;
use crate::page::policy::large_cache_share;
use crate::page::policy::limit::{Pressure, Usage};
use crate::page::runs::{Broken, Extent, FreeState, Runs};
use crate::span::{Entry, Kind, PageIndex};
use core::ptr;
use freestone_base::slot::Slot;
use freestone_base::sync::Ordering;
use freestone_base::units::{Millis, Moment, PAGE_BYTES_LOG2, Pages};

/// See the module header.
#[derive(Debug)]
pub(crate) struct State {
    /// Runs of pages.
    pub(crate) runs: Runs,
    /// The large-run caches with an open slot.
    pub(super) caches: CacheList,
    /// Whether large blocks come and go.
    pub(super) churn: Churn,
    /// What was purged before the decay time.
    pub(super) early_purge: EarlyPurge,
    /// How densely recent large blocks were written.
    pub(super) density: Density,
    /// The large block allocated last, if its density was not sampled since.
    pub(super) unsampled: Option<PageIndex>,
    /// Guards behind large blocks and spans.
    pub(super) guarding: Guarding,
    /// Pages in the lists of freed runs, as last told.
    pub(super) listed: Pages,
    /// Freed large blocks whose addresses are not used again yet.
    pub(super) held_back: HeldBack,
    /// Pages of blocks that threads are closing: quarantined ones that may have memory still.
    pub(super) closing: Pages,
    /// Whether it was reported that the soft limit is passed.
    pub(super) pressure: Pressure,
    /// Threads that wait until a run that is being purged is back.
    pub(super) n_waiting: u32,
    /// The most pages that were in use when dirty memory could go back in exchange for a large block.
    exchange_peak: Pages,
    /// Counts of events.
    pub(super) events: Events,
    /// Bytes of the storage that are handed out.
    pub(super) storage: usize,
}

impl State {
    /// Nothing is committed.
    pub(super) const fn empty() -> Self {
        Self {
            runs: Runs::empty(),
            caches: CacheList::empty(),
            churn: Churn::NONE,
            early_purge: EarlyPurge::NONE,
            density: Density::UNKNOWN,
            unsampled: None,
            guarding: Guarding::NEW,
            listed: Pages::ZERO,
            held_back: HeldBack::NONE,
            closing: Pages::ZERO,
            pressure: Pressure::NONE,
            n_waiting: 0,
            exchange_peak: Pages::ZERO,
            events: Events::NONE,
            storage: 0,
        }
    }

    /// Pages in spans and large blocks.
    pub(super) fn in_use(&self) -> Pages {
        self.runs.in_use()
    }

    /// Pages in use but for those in lists of freed runs: what bounds of dirty memory depend on.
    fn in_use_beside_lists(&self) -> Pages {
        self.in_use().saturating_sub(self.listed)
    }

    /// Free pages that may have memory behind them.
    pub(super) fn free_with_memory(&self) -> Pages {
        self.runs.counts().free_with_memory()
    }

    /// What counts against the limits.
    pub(super) fn usage(&self) -> Usage {
        Usage {
            in_use: self.in_use(),
            free_with_memory: self.free_with_memory() + self.closing,
            purging: self.runs.counts().of(Kind::Purging) + self.closing,
        }
    }

    /// Dirty pages that may stay, whatever their age, if the program does not churn.
    pub(super) fn basic_bound(&self, settings: &Settings) -> Pages {
        Pages::in_bytes(settings.dirty_bound_bytes(self.in_use_beside_lists().to_bytes().0 as u64))
    }

    /// Pages of emptied spans that may wait in lists, with those that are dirty. They count as in use until they are freed, so what is needed beside them is not known.
    pub(super) fn emptied_bound(&self, settings: &Settings) -> Pages {
        self.churn.raised(self.basic_bound(settings), self.in_use_beside_lists())
    }

    /// Dirty pages that may stay when a large block is freed; [`Pages::MAX`] once the budget of early purges is spent.
    pub(super) fn early_bound(&mut self, now: Moment, decay: Option<Millis>) -> Pages {
        let in_use = self.in_use_beside_lists();
        self.early_purge.bound(in_use, now, decay)
    }

    /// Dirty pages that may stay, whatever their age: no more than the program has lately needed beside those in use, unless the options ask for more than by default.
    pub(super) fn dirty_bound(&self, settings: &Settings) -> Pages {
        let (bound, in_use) = (self.basic_bound(settings), self.in_use_beside_lists());
        let needed = if settings.keeps_more() { bound } else { self.churn.needed_beside(in_use) };
        self.churn.raised(bound.min(needed), in_use)
    }

    /// Whether there is memory that will be due by its age alone.
    pub(super) fn may_expire(&self) -> bool {
        self.runs.oldest_dirty().is_some() || self.caches.open_pages() != Pages::ZERO
    }

    /// Lets the policies drop what is older than their periods.
    pub(super) fn pass_time(&mut self, now: Moment, decay: Option<Millis>) {
        self.churn.pass_time(now, decay, self.in_use_beside_lists());
    }

    /// Notes that pages have come into use.
    pub(super) fn note_in_use(&mut self) {
        self.churn.note_in_use(self.runs.take_peak_in_use().saturating_sub(self.listed));
    }

    /// How many more pages are in use than at any earlier call.
    pub(super) fn take_growth(&mut self) -> Pages {
        let in_use = self.in_use_beside_lists();
        let growth = in_use.saturating_sub(self.exchange_peak);
        self.exchange_peak += growth;
        growth
    }

    /// Counts a large block that comes into use, and enters it into the page map.
    pub(super) fn begin_large(&mut self, page: PageIndex) {
        self.events.large_allocs += 1;
        self.unsampled = Some(page);
        self.runs.record(page).owner.store(ptr::null_mut(), Ordering::Relaxed);
        self.set_large_entry(page, Entry::LARGE);
    }

    /// Counts a large block that goes out of use, and takes it out of the page map and its heap's list.
    pub(super) fn end_large(&mut self, page: PageIndex) {
        if let Some(list) = LargeList::of(self.runs.record(page)) {
            list.remove(&self.runs, self.runs.run_at(page));
        }
        self.set_large_entry(page, Entry::NONE);
        self.events.large_frees += 1;
    }

    /// Makes a large block that went out of use, of whatever heap it was, a block of no explicit heap again.
    pub(super) fn restore_large(&mut self, page: PageIndex) {
        self.begin_large(page);
        self.events.large_allocs -= 1;
        self.events.large_frees -= 1;
    }

    /// Only the first page of a large block has an entry.
    fn set_large_entry(&self, page: PageIndex, entry: Entry) {
        self.runs.set_entries(Extent::new(page, Pages(1)), entry);
    }

    /// Puts the run of the large block at `page`, which is freed by that, into a slot that is opened for it; `false` if the cache has none, or open slots have
    /// their share of the bound.
    pub(super) fn cache_run(&mut self, page: PageIndex, cache: PermanentCache<'_>, settings: &Settings) -> bool {
        let run = self.runs.run_at(page);
        if !LargeList::has(None, self.runs.record(page))
            || self.caches.open_pages() + run.pages > self.cached_pages_most(settings)
        {
            return false;
        }
        // The entry comes first: once the run is in the slot, the cache's thread may take it.
        self.set_large_entry(page, Entry::CACHED);
        self.caches.open(cache, run)
    }

    /// Pages that open slots may have.
    fn cached_pages_most(&self, settings: &Settings) -> Pages {
        large_cache_share::pages_most(self.basic_bound(settings))
    }

    /// Closes the slots that were not used since the last check, if that is an interval ago; or all, if they have more than their share.
    #[inline]
    pub(super) fn check_caches(&mut self, settings: &Settings, now: Moment) {
        if !self.caches.is_empty() {
            if let Some(decay) = settings.decay_ms().map(Millis) {
                let since = now.age_of(self.caches.checked());
                if since >= large_cache_share::check_interval(decay) {
                    self.close_idle(settings, now, since.min(decay));
                }
            }
        }
    }

    #[cold]
    fn close_idle(&mut self, settings: &Settings, now: Moment, since: Millis) {
        self.caches.note_check(now);
        let has_too_much = self.caches.open_pages() > self.cached_pages_most(settings);
        let close = if has_too_much { Slot::close } else { Slot::close_if_idle };
        // What was idle between two checks is at least as old as the first of them.
        self.close_caches(now.minus(since), close);
    }

    /// Closes all slots of all caches; their runs are dirty from now on.
    pub(super) fn empty_caches(&mut self, now: Moment) {
        self.close_caches(now, Slot::close);
    }

    /// Closes the slots of all caches that `close` closes; their runs are dirty since `since`.
    fn close_caches(&mut self, since: Moment, close: Close) {
        let Self { caches, runs, .. } = self;
        caches.close(close, |page| free_cached(runs, page, since));
    }

    /// Closes all slots of one cache; their runs are dirty from now on.
    pub(super) fn empty_cache(&mut self, cache: &LargeRunCache, now: Moment) {
        let Self { caches, runs, .. } = self;
        caches.close_one(cache, |page| free_cached(runs, page, now));
    }

    /// Checks the invariants of free runs and of cached ones.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub(crate) fn check_free(&self) -> Result<(), Broken> {
        self.runs.check_free()?;
        self.caches.check(&self.runs)
    }

    /// Pages of guards that were given up. They are mapped.
    #[cfg(test)]
    pub(crate) fn n_given_up(&self) -> usize {
        self.guarding.n_given_up() as usize
    }

    /// Pages of all open slots.
    pub(crate) fn cached_pages(&self) -> Pages {
        self.caches.open_pages()
    }

    /// The numbers, of which `ahead` are pages of runs ahead.
    pub(super) fn stats(&mut self, purges: &Purges, ahead: Pages) -> PageStats {
        // Runs ahead come into use without the lock, so that the peak was not noted then.
        self.runs.note_peaks();
        let pages = |kind| u64::from(self.runs.counts().of(kind).0);
        let ahead = u64::from(ahead.0).min(pages(Kind::Small));
        PageStats {
            small_pages: pages(Kind::Small) - ahead,
            large_pages: pages(Kind::Large),
            metadata_pages: pages(Kind::Metadata),
            dirty_pages: pages(Kind::Dirty),
            stuck_pages: pages(Kind::Stuck),
            purging_pages: pages(Kind::Purging),
            clean_pages: pages(Kind::Clean) + ahead,
            guard_pages: pages(Kind::Guard) + pages(Kind::Quarantined),
            reserved_pages: pages(Kind::Reserved),
            foreign_pages: pages(Kind::None),
            purged_bytes: purges.bytes(),
            n_purges: purges.calls(),
            large_allocs: self.events.large_allocs,
            large_frees: self.events.large_frees,
            peak_pages: u64::from(self.runs.peak().0),
            fresh_bytes: self.events.fresh_bytes - (ahead << PAGE_BYTES_LOG2),
        }
    }
}

/// Makes a run that was taken out of a closed slot dirty.
fn free_cached(runs: &mut Runs, page: PageIndex, since: Moment) {
    let is_huge = runs.record(page).is_huge.get();
    runs.set_entries(Extent::new(page, Pages(1)), Entry::NONE);
    runs.free(page, FreeState::dirty(since, is_huge));
}
