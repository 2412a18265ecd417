//! Runs of large blocks that were freed, by length, in lists that all threads share ([`freed`](crate::page::freed)).
//!
//! Threads: any thread puts and takes, without the page heap's lock. One that has taken a run out of a list has exclusive access to it.

use crate::page::policy::large_cache_share::LISTED_MOST;
use crate::span::{PageIndex, Span};
use freestone_base::sync::{AtomicU32, Ordering};
use freestone_base::tagged_stack::TaggedStack;
use freestone_base::units::{Millis, Moment, Pages};

/// One for each length in pages, 0 included, of which there is none.
pub(super) const LENGTHS: usize = LISTED_MOST.0 as usize + 1;

/// Numbers of runs, by length.
pub(super) type Numbers = [u32; LENGTHS];

/// See the module header.
#[derive(Debug)]
pub(super) struct FreedRuns {
    lists: [TaggedStack; LENGTHS],
    /// Pages of all, and of those that are about to be put.
    pages: AtomicU32,
    /// How many there may be.
    most: AtomicU32,
    /// When all were last given to the page heap because time had passed.
    emptied_ms: AtomicU32,
}

impl FreedRuns {
    /// None, and none may be put before [`FreedRuns::set_most`].
    pub(super) const fn new() -> Self {
        Self {
            lists: [const { TaggedStack::new() }; LENGTHS],
            pages: AtomicU32::new(0),
            most: AtomicU32::new(0),
            emptied_ms: AtomicU32::new(0),
        }
    }

    /// Counts a run of `pages` that is about to be put; `false` if there are enough.
    pub(super) fn make_room(&self, pages: Pages) -> bool {
        let has_room = self.pages.fetch_add(pages.0, Ordering::Relaxed) + pages.0 <= self.most.load(Ordering::Relaxed);
        if !has_room {
            self.subtract(pages);
        }
        has_room
    }

    /// Counts a run of `pages` that was taken, or was not put after all.
    pub(super) fn subtract(&self, pages: Pages) {
        self.pages.fetch_sub(pages.0, Ordering::Relaxed);
    }

    /// Puts the run of `pages` at `page`, which was counted. From then on any thread may have it.
    pub(super) fn put(&self, page: PageIndex, pages: Pages, record: &Span) {
        if let Some(list) = self.lists.get(pages.0 as usize) {
            list.push(page.0, |next| record.set_older(PageIndex(next)));
        }
    }

    /// Takes the run of `pages` that was put last. `next` reads the link of a run's record.
    pub(super) fn take(&self, pages: Pages, next: impl Fn(PageIndex) -> PageIndex) -> Option<PageIndex> {
        let page = self.lists.get(pages.0 as usize)?.pop(|page| next(PageIndex(page)).0)?;
        self.subtract(pages);
        Some(PageIndex(page))
    }

    /// Takes the list of each length: its first run, which links to the next, or `NONE`. They stay counted.
    pub(super) fn take_all(&self) -> impl Iterator<Item = (Pages, PageIndex)> {
        (0..).map(Pages).zip(&self.lists).map(|(pages, list)| (pages, PageIndex(list.take())))
    }

    /// The list of each length: its first run, which links to the next, or `NONE`. For checks, while no other thread uses the lists.
    pub(super) fn peek(&self) -> impl Iterator<Item = (Pages, PageIndex)> {
        (0..).map(Pages).zip(&self.lists).map(|(pages, list)| (pages, PageIndex(list.peek())))
    }

    /// Pages of all runs, as far as that can be told while threads put and take.
    pub(super) fn pages(&self) -> Pages {
        Pages(self.pages.load(Ordering::Relaxed))
    }

    /// Sets how many pages there may be.
    pub(super) fn set_most(&self, most: Pages) {
        self.most.store(most.0, Ordering::Relaxed);
    }

    /// Whether `period` has passed since [`FreedRuns::note_emptied`].
    pub(super) fn is_time(&self, now: Moment, period: Millis) -> bool {
        now.since(Moment(self.emptied_ms.load(Ordering::Relaxed))) >= period
    }

    /// Notes that all are given to the page heap because time has passed.
    pub(super) fn note_emptied(&self, now: Moment) {
        self.emptied_ms.store(now.0, Ordering::Relaxed);
    }

    /// In a forked child, with the lists empty: forgets what threads of the parent were about to put.
    pub(super) fn forget_others(&self) {
        self.pages.store(0, Ordering::Relaxed);
    }
}
