//! The large-run caches that have an open slot, as the page heap sees them, under its lock.

use crate::page::large_cache::{CacheLink, LargeRunCache, PermanentCache};
use crate::page::runs::{Broken, Extent, Runs, hold};
use crate::span::{Entry, Kind, PageIndex};
use freestone_base::slot::{Content, Slot};
use freestone_base::units::{Moment, Pages};

/// Closes a slot, or leaves it open: [`Slot::close`] or [`Slot::close_if_idle`].
pub(super) type Close = fn(&Slot) -> Option<Content>;

/// See the module header.
#[derive(Debug)]
pub(super) struct CacheList {
    /// The first cache.
    first: CacheLink,
    /// Pages of all open slots, full or empty.
    open_pages: Pages,
    /// When slots were last checked for use.
    checked: Moment,
}

impl CacheList {
    /// No caches.
    pub(super) const fn empty() -> Self {
        Self { first: CacheLink::NONE, open_pages: Pages::ZERO, checked: Moment(0) }
    }

    /// Whether no cache has an open slot.
    pub(super) fn is_empty(&self) -> bool {
        self.first.cache().is_none()
    }

    /// Pages of all open slots.
    pub(super) fn open_pages(&self) -> Pages {
        self.open_pages
    }

    /// When slots were last checked for use.
    pub(super) fn checked(&self) -> Moment {
        self.checked
    }

    /// Notes that slots are checked.
    pub(super) fn note_check(&mut self, now: Moment) {
        self.checked = now;
    }

    /// The caches.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LargeRunCache> {
        core::iter::successors(self.first.cache(), |cache| cache.next())
    }

    /// Opens a slot of a cache with a run in it, which was freed; `false` if the cache has none that is closed.
    pub(super) fn open(&mut self, cache: PermanentCache<'_>, run: Extent) -> bool {
        if !cache.get().open_slot(run) {
            return false;
        }
        self.open_pages += run.pages;
        if cache.get().enter_list(self.first) {
            self.first = cache.link();
        }
        true
    }

    /// Closes the slots of all caches that `close` closes. `free` gets the runs that were in them.
    pub(super) fn close(&mut self, close: Close, mut free: impl FnMut(PageIndex)) {
        let mut link = core::mem::replace(&mut self.first, CacheLink::NONE);
        while let Some(cache) = link.cache() {
            let next = cache.leave_list();
            if self.close_slots(cache, close, &mut free) && cache.enter_list(self.first) {
                self.first = link;
            }
            link = next;
        }
    }

    /// Closes all slots of one cache. `free` gets the runs that were in them.
    pub(super) fn close_one(&mut self, cache: &LargeRunCache, free: impl FnMut(PageIndex)) {
        self.close_slots(cache, Slot::close, free);
    }

    /// Checks that what is in a slot is a cached run of the slot's length, and the count of pages.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub(super) fn check(&self, runs: &Runs) -> Result<(), Broken> {
        let mut open_pages = Pages::ZERO;
        for (pages, slot) in self.iter().flat_map(LargeRunCache::slots).filter(|(_, slot)| !slot.is_closed()) {
            open_pages += pages;
            if let Some(page) = PageIndex(slot.peek()).some() {
                let is_cached = runs.record(page).kind.get() == Kind::Large && runs.entry(page) == Entry::CACHED;
                hold(is_cached, "what is in a slot is a cached run", page)?;
                hold(runs.record(page).n_pages() == pages, "a cached run is as long as its slot says", page)?;
            }
        }
        hold(open_pages == self.open_pages, "the count of cached pages is that of open slots", PageIndex::NONE)
    }

    /// Closes slots of a cache. Returns whether some stay open.
    fn close_slots(&mut self, cache: &LargeRunCache, close: Close, mut free: impl FnMut(PageIndex)) -> bool {
        let mut stays_open = false;
        for (pages, slot) in cache.slots() {
            if let Some(had) = close(slot) {
                self.open_pages -= pages;
                if let Content::Number(page) = had {
                    free(PageIndex(page));
                }
            }
            stays_open |= !slot.is_closed();
        }
        stays_open
    }
}

#[cfg(test)]
mod tests;
