//! Free runs of pages, by length.
#![allow(unsafe_code)]
//!
//! ```text
//! bitmap   …0 1 0 0 1 1          a bit for each list that is not empty
//! lists      │     │ └─▶ runs of 1 page
//!            │     └───▶ runs of 2 pages
//!            └─────────▶ runs of 20 to 21 pages       (8 lists a doubling)
//! ```
//!
//! Best fit, nearly: the list that a length falls in is searched for the closest, a bounded way; then the next list that has
//! anything. Cost: O(1).
//!
//! # Safety
//! The records of runs in the set are the page heap's, under its lock.

use crate::span::{Layout, SpanList};
use freestone_base::bits::two_level_log2;

/// Lists a doubling, log2.
const SUB_LOG2: u32 = 3;

/// Lists: enough for 2^32 pages.
const N_LISTS: usize = (32 - SUB_LOG2 as usize + 1) << SUB_LOG2;

/// Runs looked at in one list before settling for the best so far.
const SEARCHED: usize = 16;

const WORDS: usize = N_LISTS.div_ceil(64);

/// See the module header.
#[derive(Debug)]
pub struct RunSet {
    bitmap: [u64; WORDS],
    lists: [SpanList; N_LISTS],
}

impl RunSet {
    /// No runs.
    #[must_use]
    pub const fn empty() -> Self {
        Self { bitmap: [0; WORDS], lists: [const { SpanList::new() }; N_LISTS] }
    }

    fn list_of(n_pages: u32) -> usize {
        two_level_log2(n_pages as usize, SUB_LOG2)
    }

    /// Adds a run.
    ///
    /// # Safety
    /// - Its record says how long it is, and is in no list.
    pub unsafe fn insert(&mut self, layout: &Layout, page: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let list = Self::list_of((*layout.record(page)).pages.get());
            self.lists[list].push(layout, page);
            self.bitmap[list / 64] |= 1 << (list % 64);
        }
    }

    /// Takes a run out.
    ///
    /// # Safety
    /// - It is in this set, and its length is what it was when inserted.
    pub unsafe fn remove(&mut self, layout: &Layout, page: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let list = Self::list_of((*layout.record(page)).pages.get());
            self.lists[list].remove(layout, page);
            if self.lists[list].is_empty() {
                self.bitmap[list / 64] &= !(1 << (list % 64));
            }
        }
    }

    /// A run of at least `n_pages`, the shortest of those looked at. It stays in the set.
    #[must_use]
    pub fn find(&self, layout: &Layout, n_pages: u32) -> Option<u32> {
        let own = Self::list_of(n_pages);
        self.best_in(layout, own, n_pages).or_else(|| {
            let list = self.next_list(own + 1)?;
            self.best_in(layout, list, n_pages)
        })
    }

    fn best_in(&self, layout: &Layout, list: usize, n_pages: u32) -> Option<u32> {
        // SAFETY: runs in the set have records, and the set is borrowed.
        let runs = unsafe { self.lists[list].iter(layout) };
        runs.take(SEARCHED)
            .filter(|(_, run)| run.pages.get() >= n_pages)
            .min_by_key(|(page, run)| (run.pages.get(), *page))
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

    /// The runs of the longest lists, longest list first.
    pub fn longest<'a>(&self, layout: &'a Layout) -> impl Iterator<Item = (u32, u32)> + use<'a, '_> {
        let mut words = self.bitmap;
        let mut lists = core::iter::from_fn(move || {
            let (at, word) = words.iter_mut().enumerate().rev().find(|(_, word)| **word != 0)?;
            let bit = word.ilog2() as usize;
            *word &= !(1 << bit);
            self.lists.get(at * 64 + bit)
        });
        let mut runs = None;
        core::iter::from_fn(move || {
            loop {
                if runs.is_none() {
                    // SAFETY: as in `best_in`.
                    runs = Some(unsafe { lists.next()?.iter(layout) });
                }
                match runs.as_mut().and_then(Iterator::next) {
                    Some((page, run)) => return Some((page, run.pages.get())),
                    None => runs = None,
                }
            }
        })
    }

    /// Every run in the set, by page.
    pub fn for_each(&self, layout: &Layout, mut visit: impl FnMut(u32)) {
        for list in &self.lists {
            // SAFETY: as in `best_in`.
            unsafe { list.iter(layout) }.for_each(|(page, _)| visit(page));
        }
    }
}
