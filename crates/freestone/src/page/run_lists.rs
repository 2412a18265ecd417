//! Runs that are free, but not in the page heap yet, in lists by length that all threads share: freed large blocks ([`freed`](crate::page::freed)), and emptied
//! spans ([`emptied`](crate::page::emptied)).
//!
//! Threads: any thread puts and takes, without the page heap's lock. One that has taken a run out of a list has exclusive access to it.

use crate::page::policy::large_cache_share::LISTED_MOST;
use crate::span::{PageIndex, Span};
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_base::tagged_stack::TaggedStack;
use freestone_base::units::{Millis, Moment, Pages};

/// One for each length in pages, and 0: for runs that are not taken one by one.
pub(super) const LENGTHS: usize = LISTED_MOST.0 as usize + 1;

/// Numbers of runs, by length.
pub(super) type Numbers = [u32; LENGTHS];

/// See the module header.
#[derive(Debug)]
pub(super) struct RunLists {
    lists: [TaggedStack; LENGTHS],
    /// Pages of all, and of those that are about to be put.
    pages: AtomicU32,
    /// How many there may be.
    most: AtomicU32,
    /// Whether the early bound holds.
    is_early: AtomicBool,
    /// When a thread last looked for what has expired.
    looked_ms: AtomicU32,
}

impl RunLists {
    /// None, and there is room for none before [`RunLists::set_most`].
    pub(super) const fn new() -> Self {
        Self {
            lists: [const { TaggedStack::new() }; LENGTHS],
            pages: AtomicU32::new(0),
            most: AtomicU32::new(0),
            is_early: AtomicBool::new(false),
            looked_ms: AtomicU32::new(0),
        }
    }

    /// Counts a run of `pages` that is about to be put. Returns whether there is room for it.
    pub(super) fn count(&self, pages: Pages) -> bool {
        self.pages.fetch_add(pages.0, Ordering::Relaxed) + pages.0 <= self.most.load(Ordering::Relaxed)
    }

    /// Counts a run of `pages` that is about to be put; `false` if there is no room for it.
    pub(super) fn make_room(&self, pages: Pages) -> bool {
        let has_room = self.count(pages);
        if !has_room {
            self.subtract(pages);
        }
        has_room
    }

    /// Counts a run of `pages` that was taken, or was not put after all.
    pub(super) fn subtract(&self, pages: Pages) {
        self.pages.fetch_sub(pages.0, Ordering::Relaxed);
    }

    /// Puts the run at `page`, which was counted, into the list of runs of `pages`; 0 is for runs that are not taken one by one. From then on any thread may have it.
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
    pub(super) fn take_all(&self) -> impl Iterator<Item = PageIndex> {
        self.lists.iter().map(|list| PageIndex(list.take()))
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

    /// Sets whether the early bound holds: a large block for which there is no room is freed at once then.
    pub(super) fn set_early(&self, is_early: bool) {
        self.is_early.store(is_early, Ordering::Relaxed);
    }

    /// Whether the early bound holds.
    pub(super) fn is_early(&self) -> bool {
        self.is_early.load(Ordering::Relaxed)
    }

    /// Whether it is time to look for what has expired, `period` after the last look.
    pub(super) fn is_time(&self, now: Moment, period: Millis) -> bool {
        now.age_of(Moment(self.looked_ms.load(Ordering::Relaxed))) >= period
    }

    /// Notes that a thread looks for what has expired.
    pub(super) fn note_look(&self, now: Moment) {
        self.looked_ms.store(now.0, Ordering::Relaxed);
    }

    /// In a forked child, with the lists empty: forgets what threads of the parent were about to put.
    pub(super) fn forget_others(&self) {
        self.pages.store(0, Ordering::Relaxed);
    }
}
