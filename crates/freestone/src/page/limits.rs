//! Limits: enforced before memory is handed out (`policy::limit` decides).

use crate::config::Mistake;
use crate::page::page_heap::{PageHeap, StateGuard};
use crate::page::policy::limit::{GROUP_LOOKUP_PAGES, Limits, soft_limit_of_group};
use crate::page::state::State;
use freestone_base::sync::Ordering;
use freestone_base::units::Pages;
use freestone_os::Os;

impl<O: Os> PageHeap<O> {
    /// Enforces the limits before `more` pages get memory: purges dirty memory, as far as that is needed. `None` if they would pass the hard
    /// limit.
    pub(super) fn keep_limits<'a>(&'a self, state: StateGuard<'a>, more: Pages) -> Option<StateGuard<'a>> {
        let mut state = state;
        let is_large = state.runs.high_water().0 >= GROUP_LOOKUP_PAGES.0;
        if is_large && !self.group_asked.swap(true, Ordering::Relaxed) {
            // This reads files: the lock is dropped, so that no other thread waits meanwhile.
            drop(state);
            self.ask_limits();
            state = self.lock();
        }
        let Some(limits) = self.limits() else {
            return Some(state);
        };
        let state = self.make_way(state, more, limits);
        if limits.refuse(state.usage(), more) { None } else { Some(state) }
    }

    /// Notes that pages have come into use, clean or dirty: for the policies, and for the soft limit.
    pub(super) fn note_in_use(&self, state: &mut State) {
        state.note_in_use();
        let in_use = state.in_use();
        if self.limits().is_some_and(|limits| state.pressure.rises(limits, in_use)) {
            self.pressed.store(true, Ordering::Relaxed);
        }
    }

    /// The limits, less what counts beside the pages; `None` if there are none.
    fn limits(&self) -> Option<Limits> {
        let beside = self.beside_bytes.load(Ordering::Relaxed);
        let [soft, hard] = [self.settings.limit_bytes(), self.settings.limit_hard_bytes()]
            .map(|limit| limit.map(|bytes| bytes.saturating_sub(beside)));
        Limits::new(soft, hard)
    }

    /// Whether `more` pages with memory would pass a limit, as things are.
    pub(super) fn is_short(&self, state: &State, more: Pages) -> bool {
        self.limits().is_some_and(|limits| limits.are_short(state.usage(), more))
    }

    /// Purges dirty memory as long as `more` pages would pass the lower limit, unmaps what the kernel has kept of it, and waits for memory that other threads
    /// are purging if only that exceeds it.
    fn make_way<'a>(&'a self, state: StateGuard<'a>, more: Pages, limits: Limits) -> StateGuard<'a> {
        let (mut state, now) = (state, self.now());
        while limits.are_short(state.usage(), more) {
            // What is in caches counts as in use until then.
            self.empty_caches(&mut state, now);
            if let Some(run) = state.runs.oldest_dirty() {
                state = self.purge_run(state, run, now);
            } else if state.runs.long_stuck().is_some_and(|run| self.release(&mut state, run)) {
                // The kernel kept it when it was offered, for it may be locked.
            } else if limits.await_purges(state.usage(), more) {
                state = match self.await_purge(state) {
                    Ok(state) => state,
                    Err(state) => return state,
                };
            } else {
                break;
            }
        }
        state
    }

    /// Makes a part of the control group's limit the soft limit, unless there is one, and finds out whether mappings are charged. If the group's limit cannot be read
    /// now, the next expansion asks again.
    fn ask_limits(&self) {
        if self.settings.sandbox() {
            return;
        }
        if self.os.charges_mappings() {
            self.unmaps.store(true, Ordering::Relaxed);
        }
        match self.os.memory_limit_bytes() {
            Ok(limit) => {
                if let Some(bytes) = limit.and_then(|bytes| usize::try_from(bytes).ok()) {
                    self.settings.set_default_limit(soft_limit_of_group(bytes as u64) as usize);
                }
            }
            Err(_) => self.group_asked.store(false, Ordering::Relaxed),
        }
    }

    /// Whether the soft limit was passed since [`PageHeap::relieved`].
    #[must_use]
    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// Notes that a thread is making room.
    pub(crate) fn relieved(&self) {
        self.pressed.store(false, Ordering::Relaxed);
    }

    /// Counts bytes that were allocated outside the pages.
    pub(crate) fn add_beside(&self, bytes: usize) {
        self.beside_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes outside the pages that were freed.
    pub(crate) fn sub_beside(&self, bytes: usize) {
        self.beside_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that count against the limits now.
    #[must_use]
    pub(crate) fn limited_bytes(&self) -> usize {
        self.limited_now(&self.lock())
    }

    /// As [`limited_bytes`](Self::limited_bytes), of a thread that has the lock.
    fn limited_now(&self, state: &State) -> usize {
        state.in_use().saturating_add(state.free_with_memory()).to_bytes().0 + self.beside_bytes.load(Ordering::Relaxed)
    }

    /// Sets the limit that is option `index`. Under the lock, so that no thread allocates meanwhile, and none finds a limit that is refused.
    ///
    /// # Errors
    /// More than `bytes` count against it now; nothing has changed then.
    pub(crate) fn set_limit(&self, index: usize, bytes: usize) -> Result<(), Mistake> {
        if bytes < self.limited_bytes() {
            // What is free gives way.
            self.purge();
        }
        let state = self.lock();
        if bytes < self.limited_now(&state) {
            return Err(Mistake::BelowUse);
        }
        self.settings.store(index, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
