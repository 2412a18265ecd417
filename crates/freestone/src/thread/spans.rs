//! The small spans that a heap owns: of each class the one that blocks are taken from, and the others.
#![allow(unsafe_code)]
//!
//! ```text
//!  new or adopted ─▶ current ── no block left ─▶ full ── a block comes home ─▶ partial ── the fullest ─▶ current
//!                       └──────────── no block is out any more ────────────────────┴─▶ page heap
//! ```
//!
//! Long because: all that moves a span from one place to another is here, beside the lists.
//!
//! Invariants
//! - A span in `current`, `partial` or `full` is a small span of this class, has this heap's generation in the page map, and has this heap's
//!   mailbox as its owner. It is in one of the three, and `listed` in its record says in which.
//! - Spans in `partial` have a block to give, free or never carved; those in `full` have none. `current` may be either.
//! - `n_out` counts the blocks that this heap took out of spans, less those that it gave back.
//!
//! Threads: only the heap's thread. Any thread may read `n_out`.
//!
//! # Safety
//! What the lists name has a record, for they hold only small spans; and a span of this heap is this thread's to change. [`home_of`] finds one
//! of them by the heap's tag in the page map, which no span of another owner has.

use crate::central;
use crate::page::{OwnedRun, PageHeap};
use crate::shared::Shared;
use crate::size_class::{N_CLASSES, span_pages};
use crate::span::blocks::{self, Home, Refused};
use crate::span::record::Listed;
use crate::span::{Entry, Generation, Kind, Layout, Span, SpanList, os_pages, single_block};
use crate::thread::free_block::{FreeBatch, FreeChain};
use crate::thread::lookup::Lookup;
use crate::thread::remote_frees::{Mailbox, owner_of_span};
use core::cell::Cell;
use core::ptr;
use freestone_base::inbox::Node;
use freestone_base::sync::{AtomicI64, Ordering};
use freestone_os::Os;

/// Partial spans looked at for the fullest.
const SEARCHED: usize = 8;

/// The spans of one class that a heap owns. See the module header.
#[derive(Debug)]
pub(crate) struct ClassSpans {
    /// First page of the span that blocks are taken from, or 0.
    current: Cell<u32>,
    partial: SpanList,
    full: SpanList,
    n_out: AtomicI64,
}

/// What became of blocks that were given back to a span.
#[derive(Debug)]
pub(crate) struct Returned {
    /// How many are back.
    pub(crate) n: u32,
    /// The number of the last of them in its span.
    pub(crate) last: usize,
    /// The block behind them, if the span refused it, and why. The chain goes on behind it.
    pub(crate) refused: Option<(*mut Node, Refused)>,
    /// No block of the span is out any more.
    pub(crate) is_empty: bool,
}

impl ClassSpans {
    const fn new() -> Self {
        Self { current: Cell::new(0), partial: SpanList::new(), full: SpanList::new(), n_out: AtomicI64::new(0) }
    }

    /// Takes up to `n` blocks out of the current span: free ones, or else those of the next OS page that was never carved. Returns them, and how
    /// many of them had been free before. `None` if there is no current span, or it has no block left: then it is in `full` afterwards.
    pub(crate) fn take(&self, layout: &Layout, n: u32, os_page_bytes: usize) -> Option<(FreeBatch, u32)> {
        let page = self.current.get();
        if page == 0 {
            return None;
        }
        // SAFETY: the current span is this heap's, so it has a record and is this thread's.
        let span = unsafe { &*layout.record(page) };
        let n_reused = n.min(span.n_free.get());
        let blocks = if n_reused == 0 {
            // SAFETY: the span is this heap's.
            unsafe { blocks::carve(layout, page, os_page_bytes) }
        } else {
            // SAFETY: the span is this heap's, and has that many free blocks.
            unsafe { blocks::take(layout, page, n_reused) }
        };
        // SAFETY: the blocks just left their span for us, linked.
        let Some(batch) = (unsafe { FreeBatch::new(blocks, span.class.get() as usize) }) else {
            self.retire_current(layout, span, page);
            return None;
        };
        self.count_out(i64::from(batch.len()));
        Some((batch, n_reused))
    }

    /// Takes one block out of the current span, which of its free ones a random number says; carves the next OS page first if it has none:
    /// `prepare` is called with each block that is carved. Returns the block, and how many were carved. `None` if there is no current span, or
    /// it has no block left: then it is in `full` afterwards.
    pub(crate) fn take_single(
        &self,
        layout: &Layout,
        random: u32,
        os_page_bytes: usize,
        prepare: impl FnMut(*mut u8),
    ) -> Option<(*mut u8, u32)> {
        let page = self.current.get();
        if page == 0 {
            return None;
        }
        // SAFETY: the current span is this heap's, so it has a record and is this thread's.
        let span = unsafe { &*layout.record(page) };
        let mut n_carved = 0;
        if span.n_free.get() == 0 {
            // SAFETY: the span is this heap's.
            n_carved = unsafe { single_block::carve(layout, page, os_page_bytes, prepare) };
            if n_carved == 0 {
                self.retire_current(layout, span, page);
                return None;
            }
        }
        self.count_out(1);
        // SAFETY: the span is this heap's, and has a free block.
        Some((unsafe { single_block::take(layout, page, random) }, n_carved))
    }

    /// Lists the current span, which has no block left, as full.
    fn retire_current(&self, layout: &Layout, span: &Span, page: u32) {
        span.listed.set(Listed::Full);
        // SAFETY: the current span is in no list, and it and the list are this heap's.
        unsafe { self.full.push(layout, page) };
        self.current.set(0);
    }

    /// Makes the fullest of the first few partial spans the current one, so that the emptier ones may become empty. `false` if there is none.
    /// There is no current span before.
    pub(crate) fn use_fullest_partial(&self, layout: &Layout) -> bool {
        // SAFETY: the list is this heap's, and does not change while it is searched.
        let spans = unsafe { self.partial.iter(layout) };
        let Some((page, span)) = spans.take(SEARCHED).max_by_key(|(_, span)| span.n_out.get()) else { return false };
        // SAFETY: the span was just found in this list.
        unsafe { self.partial.remove(layout, page) };
        self.use_span(span, page);
        true
    }

    /// Makes a span the current one, which is in no list.
    fn use_span(&self, span: &Span, page: u32) {
        span.listed.set(Listed::No);
        self.current.set(page);
    }

    /// Counts blocks taken out of spans of the heap (or, negative, given back).
    pub(crate) fn count_out(&self, blocks: i64) {
        self.n_out.store(self.n_out.load(Ordering::Relaxed) + blocks, Ordering::Relaxed);
    }

    /// Blocks that this heap took out of its spans, less those that it gave back. Any thread may ask.
    pub(crate) fn n_out(&self) -> i64 {
        self.n_out.load(Ordering::Relaxed)
    }

    /// Takes any span out of the heap's, the current one first; its first page, or `None`.
    pub(crate) fn pop(&self, layout: &Layout) -> Option<u32> {
        let current = self.current.replace(0);
        if current != 0 {
            return Some(current);
        }
        [&self.partial, &self.full].into_iter().find_map(|list| {
            // SAFETY: the list is this heap's.
            let page = unsafe { list.pop(layout) };
            (page != 0).then_some(page)
        })
    }

    /// The spans that may have free blocks: the partial ones, and the current one.
    fn with_free_blocks<'a>(&self, layout: &'a Layout) -> impl Iterator<Item = (u32, &'a Span)> {
        let current = self.current.get();
        // SAFETY: the current span, if there is one, has a record.
        let current = (current != 0).then(|| (current, unsafe { &*layout.record(current) }));
        // SAFETY: the list is this heap's, and giving OS pages back does not change it.
        unsafe { self.partial.iter(layout) }.chain(current)
    }

    /// Calls `visit` with every span, and where its record says that it is. For checks.
    pub(crate) fn for_each(&self, layout: &Layout, mut visit: impl FnMut(u32, Listed)) {
        if self.current.get() != 0 {
            visit(self.current.get(), Listed::No);
        }
        for (list, listed) in [(&self.partial, Listed::Partial), (&self.full, Listed::Full)] {
            // SAFETY: the list is this heap's, and is not changed meanwhile.
            unsafe { list.iter(layout) }.for_each(|(page, _)| visit(page, listed));
        }
    }
}

/// All small spans that a heap owns.
#[derive(Debug)]
pub(crate) struct OwnedSpans {
    classes: [ClassSpans; N_CLASSES],
    /// Pages in them.
    n_pages: Cell<u64>,
}

impl OwnedSpans {
    /// None.
    pub(crate) const fn new() -> Self {
        Self { classes: [const { ClassSpans::new() }; N_CLASSES], n_pages: Cell::new(0) }
    }

    /// Those of one class.
    #[inline]
    pub(crate) fn of(&self, class: usize) -> &ClassSpans {
        &self.classes[class]
    }

    /// Pages in all of them, but for adopted ones: only an explicit heap, which adopts none, asks.
    pub(crate) fn n_pages(&self) -> u64 {
        self.n_pages.get()
    }

    /// Pages that a new span of a class has.
    pub(crate) fn new_span_pages<O: Os>(shared: &Shared<O>, class: usize) -> u32 {
        span_pages(class).0.max(shared.settings().span_pages())
    }

    /// Makes a run from the page heap the current span of a class; `false` when memory runs out. `is_watched`: its blocks will have trailers.
    pub(crate) fn allocate<O: Os>(
        &self,
        shared: &Shared<O>,
        class: usize,
        owner: &Mailbox,
        generation: Generation,
        is_watched: bool,
    ) -> bool {
        let (pages, layout) = (&shared.pages, shared.pages.layout());
        let n_pages = Self::new_span_pages(shared, class);
        let Some(run) = pages.allocate(n_pages, 1, Kind::Small) else { return false };
        let record = |page| {
            // SAFETY: the page is in the run, which was handed out, so it has a record.
            unsafe { &*layout.record(page) }
        };
        // SAFETY: the run was just handed out to this heap, and no other thread can find it before the page map says so.
        unsafe { blocks::format(layout, run.page, class, shared.os().os_page_bytes(), !run.zero) };
        for page in run.page..run.page + n_pages {
            record(page).first.store(run.page, Ordering::Relaxed);
        }
        record(run.page).is_watched.set(is_watched);
        record(run.page).owner.store(owner.as_owner().cast_mut(), Ordering::Release);
        // SAFETY: the pages are this heap's, and their entries committed.
        unsafe { layout.map.set(run.page, n_pages, Entry::small(generation, class as u8)) };
        self.n_pages.set(self.n_pages.get() + u64::from(n_pages));
        self.of(class).use_span(record(run.page), run.page);
        true
    }

    /// Makes an abandoned span the current one of a class; `false` if there is none.
    pub(crate) fn adopt<O: Os>(
        &self,
        shared: &Shared<O>,
        class: usize,
        owner: &Mailbox,
        generation: Generation,
    ) -> bool {
        let Some(page) = shared.central.adopt(&shared.pages, class, owner.as_owner().cast_mut(), generation) else {
            return false;
        };
        // SAFETY: the span was just made this heap's.
        let span = unsafe { shared.span(page) };
        self.of(class).use_span(span, page);
        true
    }

    /// Gives the first block of a chain back to its span, and those behind it up to the first that does not lie in the span, at most `most`
    /// (1 or more) in all. The chain goes on behind them, and behind a block that the span refuses.
    #[inline(always)]
    pub(crate) fn give_back(&self, layout: &Layout, home: &Home<'_>, chain: &mut FreeChain, most: u32) -> Returned {
        let second = if most == 1 && chain.n_left() > 1 { chain.second() } else { ptr::null_mut() };
        // SAFETY: the span is this heap's, for `home_of` and `home_at` find no other. The chain's blocks are linked and ours to give.
        let came = unsafe { home.give_back(chain.first(), most) };
        self.of(home.class).count_out(-i64::from(came.n));
        if home.span.listed.get() == Listed::Full && came.n > 0 {
            self.list_as_partial(layout, home);
        }
        let refused = came.refused.map(|why| (came.next, why));
        let behind = match refused {
            _ if most == 1 => second,
            // SAFETY: a refused block was in the chain, so its first word was a link when the chain was made.
            Some((block, _)) => unsafe { (*block).next },
            None => came.next,
        };
        chain.advance(came.n + u32::from(refused.is_some()), behind);
        let is_empty = refused.is_none() && home.span.n_out.get() == 0;
        Returned { n: came.n, last: came.last, refused, is_empty }
    }

    /// Moves a full span that has a free block now to the partial ones.
    #[cold]
    fn list_as_partial(&self, layout: &Layout, home: &Home<'_>) {
        let spans = self.of(home.class);
        // SAFETY: the span is this heap's, and its record says that it is in `full`.
        unsafe { spans.full.remove(layout, home.page) };
        // SAFETY: the span is in no list now.
        unsafe { spans.partial.push(layout, home.page) };
        home.span.listed.set(Listed::Partial);
    }

    /// Takes a span of which no block is out away from the heap and gives it to the page heap.
    pub(crate) fn free_empty<O: Os>(&self, pages: &PageHeap<O>, home: &Home<'_>) {
        let (layout, spans) = (pages.layout(), self.of(home.class));
        if spans.current.get() == home.page {
            spans.current.set(0);
        } else {
            // SAFETY: a span that has just got a block back is the current one or a partial one.
            unsafe { spans.partial.remove(layout, home.page) };
            home.span.listed.set(Listed::No);
        }
        self.free_span(pages, home.span, home.page);
    }

    /// Frees a span that was taken off the lists, with the blocks that are out of it. Returns how many those are, and how many were free.
    ///
    /// # Safety
    /// - The span at `page` is this heap's and in no list, and no code uses its blocks.
    pub(crate) unsafe fn free_with_blocks<O: Os>(&self, pages: &PageHeap<O>, class: usize, page: u32) -> (u32, u32) {
        // SAFETY: a span of this heap has a record.
        let span = unsafe { &*pages.layout().record(page) };
        let (n_out, n_free) = (span.n_out.replace(0), span.n_free.get());
        self.of(class).count_out(-i64::from(n_out));
        self.free_span(pages, span, page);
        (n_out, n_free)
    }

    /// Calls `visit` with the first page of each span that is mostly free.
    pub(crate) fn for_each_mostly_free(&self, layout: &Layout, mut visit: impl FnMut(u32)) {
        let spans = self.classes.iter().flat_map(|class| class.with_free_blocks(layout));
        spans.filter(|(_, span)| os_pages::is_mostly_free(span)).for_each(|(page, _)| visit(page));
    }

    /// Gives a span to the page heap: no block of it is out, and it is in no list.
    fn free_span<O: Os>(&self, pages: &PageHeap<O>, span: &Span, page: u32) {
        self.n_pages.set(self.n_pages.get().saturating_sub(u64::from(span.pages.get())));
        // SAFETY: the span is this heap's and in no list, and no block of it is out; so no other code uses its bitmap or its pages.
        unsafe { blocks::clear(pages.layout(), page) };
        // SAFETY: as above.
        pages.free(unsafe { OwnedRun::at(page) });
    }

    /// Starts counting anew: no span is the heap's.
    pub(crate) fn reset_pages(&self) {
        self.n_pages.set(0);
    }
}

/// The span that holds the block at `address`, if it is this heap's: `lookup` is up to date.
#[inline]
pub(crate) fn home_of<'a>(layout: &'a Layout, lookup: &Lookup, address: usize) -> Option<Home<'a>> {
    lookup.own_class(address)?;
    let page = lookup.view().page_of(address)? as u32;
    // SAFETY: a page with an entry has a record, and in a small span every record has the first page right.
    let first = unsafe { (*layout.record(page)).first.load(Ordering::Relaxed) };
    // SAFETY: the page has this heap's tag, so the small span that starts at `first` is this heap's.
    Some(unsafe { Home::at(layout, first) })
}

/// The small span that starts at `page`, a block of which the caller has, if `owner` owns it: the mailbox of this heap.
pub(crate) fn home_at<'a, O: Os>(shared: &'a Shared<O>, owner: &Mailbox, page: u32) -> Option<Home<'a>> {
    let is_own = owner_of_span(shared, page).is_some_and(|it| ptr::eq(it, owner));
    // SAFETY: the span is small and names this heap as its owner.
    is_own.then(|| unsafe { Home::at(shared.pages.layout(), page) })
}

/// Whether the block with number `last`, which has just come home, was the last one out of an OS page, in a span that is mostly free.
pub(crate) fn has_emptied_os_page<O: Os>(shared: &Shared<O>, home: &Home<'_>, last: usize) -> bool {
    // SAFETY: the span is this heap's, and the block is one of its free ones.
    unsafe { os_pages::has_emptied_a_page(shared.pages.layout(), home.page, last, shared.os().os_page_bytes()) }
}

/// Gives back the OS pages of a span of this heap in which no block is out. Returns the span's class and the number of blocks that are no
/// longer free; `None` if the span at `page` is not this heap's.
pub(crate) fn release_os_pages<O: Os>(shared: &Shared<O>, lookup: &Lookup, page: u32) -> Option<(usize, u32)> {
    let class = lookup.own_class(shared.pages.layout().page_start(page).addr())?;
    // SAFETY: the page has this heap's tag, so the small span is this heap's.
    Some((class, unsafe { central::release_os_pages(&shared.pages, page) }))
}

#[cfg(test)]
mod tests;
