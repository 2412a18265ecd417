//! What an explicit heap has beside its thread heap: the list of its large blocks, a limit to all its pages, and the handle that a C program has of it.
//!
//! Threads: only the thread that holds the heap's gate uses it. Any thread may read how much there is.

use crate::page::{LargeList, PageHeap};
use core::ptr;
use freestone_base::count;
use freestone_base::sync::{AtomicPtr, AtomicU64, Ordering};
use freestone_base::units::Pages;
use freestone_os::Os;

/// See the module header.
#[derive(Debug)]
pub(crate) struct Holdings {
    large: LargeList,
    limit_pages: AtomicU64,
    /// How often the limit refused something.
    n_refused: AtomicU64,
    /// Null, if it is of no C program.
    handle: AtomicPtr<()>,
}

/// The limit of a heap that has none.
const UNLIMITED: u64 = u64::MAX;

/// A limit that cannot be set: the heap has more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BelowUse;

impl Holdings {
    /// The heap's large blocks.
    pub(crate) fn large(&self) -> &LargeList {
        &self.large
    }

    /// Pages of the heap's large blocks, and of its limit if it has one. Takes the page heap's lock.
    pub(crate) fn large_and_limit<O: Os>(&self, pages: &PageHeap<O>) -> (u64, Option<u64>) {
        let limit = self.limit_pages.load(Ordering::Relaxed);
        (pages.listed_pages(&self.large), (limit != UNLIMITED).then_some(limit))
    }

    /// Whether the limit lets the heap have `more`, beside its `small_pages` and its large blocks. Counts that it does not.
    pub(crate) fn has_room<O: Os>(&self, pages: &PageHeap<O>, small_pages: u64, more: Pages) -> bool {
        let limit = self.limit_pages.load(Ordering::Relaxed);
        let has_room = limit == UNLIMITED || small_pages + pages.listed_pages(&self.large) + u64::from(more.0) <= limit;
        if !has_room {
            count::add(&self.n_refused, 1);
        }
        has_room
    }

    /// How often the limit refused something.
    pub(crate) fn n_refused(&self) -> u64 {
        self.n_refused.load(Ordering::Relaxed)
    }

    /// Sets the limit; `None` removes it.
    ///
    /// # Errors
    /// The heap has more than that already; the limit is unchanged.
    pub(crate) fn set_limit<O: Os>(
        &self,
        pages: &PageHeap<O>,
        small_pages: u64,
        limit_pages: Option<u64>,
    ) -> Result<(), BelowUse> {
        let limit = limit_pages.unwrap_or(UNLIMITED);
        if small_pages + pages.listed_pages(&self.large) > limit {
            return Err(BelowUse);
        }
        self.limit_pages.store(limit, Ordering::Relaxed);
        Ok(())
    }

    /// What a new heap has: no limit and no handle.
    pub(crate) fn reset(&self) {
        self.limit_pages.store(UNLIMITED, Ordering::Relaxed);
        self.handle.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// The handle; null if there is none.
    pub(crate) fn handle(&self) -> *mut () {
        self.handle.load(Ordering::Relaxed)
    }

    /// Notes a handle.
    pub(crate) fn set_handle(&self, handle: *mut ()) {
        self.handle.store(handle, Ordering::Relaxed);
    }
}
