//! Deallocation: taking runs back.

use crate::page::large_cache::PermanentCache;
use crate::page::page_heap::{OwnedRun, PageHeap, StateGuard};
use crate::page::policy::density::Density;
use crate::page::policy::purge_bound::After;
use crate::page::runs::FreeState;
use crate::page::state::State;
use freestone_base::units::Moment;
use freestone_os::Os;

impl<O: Os> PageHeap<O> {
    /// Puts the run of a large block, whose memory is used no more, into a slot of this cache, if there is one and it has room; whether it did.
    /// Else frees it: it is dirty from now on. Then purges what is due.
    pub(crate) fn free_or_cache(&self, run: OwnedRun, cache: Option<PermanentCache<'_>>) -> bool {
        let (now, density) = (self.now(), self.sample_density(&run));
        let mut state = self.lock();
        let is_cached = cache.is_some_and(|cache| state.cache_run(run.page(), cache, &self.settings));
        if !is_cached {
            free_run(&mut state, run, density, now);
        }
        self.finish(state, now, After::LargeFree);
        is_cached
    }

    /// Frees a run of a large block or a span.
    #[cfg(test)]
    #[expect(unsafe_code, reason = "the run is the test's")]
    pub(crate) fn free(&self, run: OwnedRun) {
        if self.record(&run).kind.get() == crate::span::Kind::Large {
            let _ = self.free_or_cache(run, None);
        } else {
            // SAFETY: the run is in use, and given up by the test.
            self.free_span(unsafe { crate::span::OwnedSpan::at(self.layout(), run.page()) });
        }
    }

    /// Purges what is due after memory became dirty, and wakes the background thread if it waits for that.
    pub(super) fn finish<'a>(&'a self, state: StateGuard<'a>, now: Moment, after: After) {
        self.ahead.note_dirtied();
        drop(self.purge_due(state, now, after));
        self.watch.wake_for_dirty();
    }
}

/// Makes the run of a large block dirty. `density` is how densely it was written, if that says something about others.
fn free_run(state: &mut State, run: OwnedRun, density: Option<Density>, now: Moment) {
    let page = run.page();
    state.end_large(page);
    state.density.learn(density);
    let is_huge = state.runs.record(page).is_huge.get();
    state.runs.free(page, FreeState::dirty(now, is_huge));
}

#[cfg(test)]
mod tests;
