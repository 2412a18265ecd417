//! The list of spans and runs that are nobody's any more ([`emptied`](crate::page::emptied)): threads add to it without the page heap's lock.

use crate::span::{PageIndex, Span};
use freestone_base::sync::{AtomicU32, Ordering};
use freestone_base::tagged_stack::TaggedStack;
use freestone_base::units::{Millis, Moment, Pages};

/// The most pages that wait: 4 MiB. Who frees them holds the lock for as many short steps.
pub(super) const MOST: Pages = Pages(64);

/// Of the dirty bound, one part in this many waits at most.
const SHARE: u32 = 4;

/// See the module header.
#[derive(Debug)]
pub(super) struct Emptied {
    first: TaggedStack,
    /// About how many pages are in it.
    pages: AtomicU32,
    /// With how many it is emptied.
    most: AtomicU32,
    /// When a thread that listed a run last looked for what has expired.
    looked_ms: AtomicU32,
}

impl Emptied {
    /// An empty list.
    pub(super) const fn new() -> Self {
        Self {
            first: TaggedStack::new(),
            pages: AtomicU32::new(0),
            most: AtomicU32::new(0),
            looked_ms: AtomicU32::new(0),
        }
    }

    /// Lists the run at `page`. Returns whether so much is listed that the list should be emptied.
    pub(super) fn push(&self, page: PageIndex, record: &Span) -> bool {
        let pages = record.n_pages().0;
        let n = self.pages.fetch_add(pages, Ordering::Relaxed).wrapping_add(pages);
        self.first.push(page.0, |next| record.next.set(PageIndex(next)));
        n >= self.most.load(Ordering::Relaxed)
    }

    /// Whether it is time to look for what has expired, `period` after the last look; if so that counts as done.
    pub(super) fn begin_look(&self, now: Moment, period: Millis) -> bool {
        let is_due = now.since(Moment(self.looked_ms.load(Ordering::Relaxed))) >= period;
        if is_due {
            self.looked_ms.store(now.0, Ordering::Relaxed);
        }
        is_due
    }

    /// Sets how much may wait while `dirty` pages are dirty and `bound` may be.
    pub(super) fn set_most(&self, dirty: Pages, bound: Pages) {
        let most = if dirty > bound { 0 } else { MOST.0.min(bound.0 / SHARE) };
        self.most.store(most, Ordering::Relaxed);
    }

    /// Whether nothing is listed. Another thread may list a run meanwhile.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.peek() == 0
    }

    /// Takes all: the first, which links to the next; `NONE` if nothing is listed.
    pub(super) fn take(&self) -> PageIndex {
        self.pages.store(0, Ordering::Relaxed);
        PageIndex(self.first.take())
    }

    /// About how many pages are listed.
    #[cfg(test)]
    pub(super) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }
}
