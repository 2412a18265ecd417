//! Free runs of pages, by length.
//!
//! ```text
//! bitmap   …0 1 0 0 1 1          one bit per list that is not empty
//! lists      │     │ └─▶ runs of 1 page
//!            │     └───▶ runs of 2 pages
//!            └─────────▶ runs of 20 to 21 pages       (8 lists per doubling)
//! ```
//!
//! The search takes a close fit: the shortest run that is long enough, among a bounded number of runs in the list of that length; else
//! a run of the next list that has any. Cost: O(1).

use crate::page::runs::records::Records;
use crate::span::{PageIndex, SpanList};
use freestone_base::bits::two_level_log2;
use freestone_base::units::Pages;

/// Lists per doubling, log2.
const SUB_LOG2: u32 = 3;

/// The number of lists: enough for 2^32 pages.
const N_LISTS: usize = (32 - SUB_LOG2 as usize + 1) << SUB_LOG2;

/// The most runs of one list that a search compares; it takes the best of them.
const SEARCHED: usize = 16;

const WORDS: usize = N_LISTS.div_ceil(64);

/// See the module header.
#[derive(Debug)]
pub(super) struct RunSet {
    bitmap: [u64; WORDS],
    lists: [SpanList; N_LISTS],
}

impl RunSet {
    /// No runs.
    pub(super) const fn empty() -> Self {
        Self { bitmap: [0; WORDS], lists: [const { SpanList::new() }; N_LISTS] }
    }

    fn list_of(pages: Pages) -> usize {
        two_level_log2(pages.0 as usize, SUB_LOG2)
    }

    /// Adds the run that starts at `page`, which is in no set; its record has its length.
    pub(super) fn insert(&mut self, records: &Records, page: PageIndex) {
        let list = Self::list_of(records.get(page).n_pages());
        records.push(&self.lists[list], page);
        self.bitmap[list / 64] |= 1 << (list % 64);
    }

    /// Removes the run that starts at `page`, whose length is what it was when it was inserted.
    pub(super) fn remove(&mut self, records: &Records, page: PageIndex) {
        let list = Self::list_of(records.get(page).n_pages());
        records.remove(&self.lists[list], page);
        if self.lists[list].is_empty() {
            self.bitmap[list / 64] &= !(1 << (list % 64));
        }
    }

    /// A run of at least `pages`, the shortest of those compared. It stays in the set.
    pub(super) fn find(&self, records: &Records, pages: Pages) -> Option<PageIndex> {
        let own = Self::list_of(pages);
        self.best_in(records, own, pages).or_else(|| {
            let list = self.next_list(own + 1)?;
            self.best_in(records, list, pages)
        })
    }

    fn best_in(&self, records: &Records, list: usize, pages: Pages) -> Option<PageIndex> {
        records
            .iter(&self.lists[list])
            .take(SEARCHED)
            .filter(|(_, run)| run.n_pages() >= pages)
            .min_by_key(|(page, run)| (run.n_pages(), *page))
            .map(|(page, _)| page)
    }

    /// The first list at or after `from` that is not empty.
    fn next_list(&self, from: usize) -> Option<usize> {
        let mut from = from;
        while from < N_LISTS {
            let rest = self.bitmap[from / 64] >> (from % 64);
            if rest != 0 {
                return Some(from + rest.trailing_zeros() as usize);
            }
            from = (from / 64 + 1) * 64;
        }
        None
    }

    /// The runs, those of the list with the longest first.
    pub(super) fn longest<'a>(&'a self, records: &'a Records) -> Longest<'a> {
        Longest { set: self, records, bitmap: self.bitmap, next: PageIndex::NONE }
    }

    /// Every run in the set.
    pub(super) fn iter(&self, records: &Records) -> impl Iterator<Item = PageIndex> {
        self.lists.iter().flat_map(|list| records.iter(list).map(|(page, _)| page))
    }
}

/// See [`RunSet::longest`].
pub(super) struct Longest<'a> {
    set: &'a RunSet,
    records: &'a Records,
    /// The lists that were not looked at yet.
    bitmap: [u64; WORDS],
    /// The next run of the list that was looked at last.
    next: PageIndex,
}

impl Iterator for Longest<'_> {
    type Item = (PageIndex, Pages);

    /// A function of its own, because several searches have one loop around it each.
    #[inline(never)]
    fn next(&mut self) -> Option<Self::Item> {
        while self.next == PageIndex::NONE {
            let (at, word) = self.bitmap.iter_mut().enumerate().rev().find(|(_, word)| **word != 0)?;
            let bit = word.ilog2() as usize;
            *word &= !(1 << bit);
            self.next = self.set.lists.get(at * 64 + bit).and_then(SpanList::first).unwrap_or(PageIndex::NONE);
        }
        let (page, run) = (self.next, self.records.get(self.next));
        self.next = run.next.get();
        Some((page, run.n_pages()))
    }
}
