//! The small spans that a heap owns: of each class the one that blocks are taken from, and the others.
#![allow(unsafe_code)]
//!
//! ```text
//!  new or adopted ─▶ current ── no block left ─▶ full ── a block is returned ─▶ partial ── the fullest ─▶ current
//!                       └──────────── no block is out any more ────────────────────┴─▶ page heap
//! ```
//!
//! Long because: all that moves a span from one place to another is here, beside the lists.
//!
//! Invariants
//! - A span in `current`, `partial` or `full` is a small span of this class, has this heap's generation in the page map, and has this heap's
//!   mailbox as its owner. It is in one of the three, and `listed` in its record says in which.
//! - Spans in `partial` have a block to give, free or never carved; those in `full` have none. `current` may be either.
//! - `n_out` is how many blocks of the class's spans are out.
//!
//! Threads: only the heap's thread. Any thread may read `n_out`.
//!
//! # Safety
//! Every page in the lists has a record, because they hold only small spans; and only this thread changes a span of this heap. [`home_of`] finds one
//! of them by the heap's tag in the page map, which no span of another owner has.

use crate::central;
use crate::page::PageHeap;
use crate::page::ahead::SpanRun;
use crate::shared::Shared;
use crate::size_class::{BlockDivision, PerClass, block_bytes, span_pages};
use crate::span::blocks::{self, End, Home, Refused};
use crate::span::free_node;
use crate::span::os_pages::{EmptyStretches, is_mostly_free};
use crate::span::record::Listed;
use crate::span::{Entry, Generation, GoneBytes, Layout, OwnedSpan, PageIndex, Span, SpanList, os_pages, single_block};
use crate::thread::free_block::{FreeBatch, FreeChain, Stretch};
use crate::thread::lookup::Lookup;
use crate::thread::mailbox::Mailbox;
use crate::thread::span_owner::owner_of_span;
use core::cell::Cell;
use core::ptr;
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::sync::{AtomicI64, AtomicU64, Ordering};
use freestone_base::units::Pages;
use freestone_os::Os;

/// The most partial spans that are compared for the fullest.
const SEARCHED: usize = 8;

/// See [`ClassSpans::carved_beside`].
const BYTES_PER_CARVED_PAGE: usize = 256 << 10;

/// See [`ClassSpans::carved_beside`]: with more, links of a batch would fill a large part of the first cache.
const CARVED_BESIDE_MOST: usize = 3;

/// See [`ClassSpans::carved_beside`]: the first block of a batch is known to read as zero, so that of larger ones `calloc` clears more.
const CARVED_BESIDE_BLOCK_MOST: usize = 512;

/// The spans of one class that a heap owns. See the module header.
#[derive(Debug)]
pub(crate) struct ClassSpans {
    /// First page of the span that blocks are taken from, if there is one.
    current: Cell<PageIndex>,
    partial: SpanList,
    full: SpanList,
    gone: GoneBytes,
    n_out: AtomicI64,
}

/// The result of giving the blocks of a chain back to their spans.
#[derive(Debug)]
pub(crate) struct Returned<'a> {
    /// How many are back.
    pub(crate) n: u32,
    /// What the chain goes on with.
    pub(crate) stop: Stop<'a>,
}

/// Why no more blocks of a chain are given back for the moment.
#[derive(Debug)]
pub(crate) enum Stop<'a> {
    /// None is left, or the next one does not lie in a span of this heap and of the chain's class, or it is chosen (`bins::chosen`).
    Elsewhere,
    /// No block of this span is out any more.
    Emptied(Home<'a>),
    /// The span that starts at this page refused the block, which is in the chain no more.
    Refused(PageIndex, *mut Node, Refused),
}

impl ClassSpans {
    /// Takes up to `n` blocks out of the current span: free ones, or else those of the next OS page or pages that were never carved. Returns them, linked
    /// with `key`, and how many blocks fewer are free. `None` if there is no current span, or it has no block left: then it is in `full` afterwards. `few`: only `n` of those that are carved,
    /// and the others are free.
    pub(crate) fn take<O: Os>(&self, pages: &PageHeap<O>, n: u32, few: bool, key: LinkKey) -> Option<(FreeBatch, i64)> {
        let page = self.current.get().some()?;
        // SAFETY: the current span is this heap's, so it has a record and is this thread's.
        let span = unsafe { OwnedSpan::at(pages.layout(), page) };
        let os_page_bytes = pages.os().os_page_bytes();
        let taken = if few {
            blocks::take_few(&span, n, os_page_bytes, key, &pages.uncarved)
        } else {
            blocks::take_or_carve(&span, n, self.carved_beside(&span), os_page_bytes, key, &pages.uncarved)
        };
        let less_free = taken.less_free;
        // SAFETY: the blocks just left their span for us, linked.
        let Some(batch) = (unsafe { FreeBatch::new(taken, span.class.get() as usize) }) else {
            self.retire_current(&span);
            return None;
        };
        self.count_out(i64::from(batch.len()));
        Some((batch, less_free))
    }

    /// How many OS pages are carved beside the one that is needed: one for each [`BYTES_PER_CARVED_PAGE`] that the thread has out, so that at most a
    /// 64th is memory that is not needed yet. None of blocks larger than [`CARVED_BESIDE_BLOCK_MOST`].
    #[inline]
    fn carved_beside(&self, span: &Span) -> usize {
        let block = block_bytes(span.class.get() as usize);
        let bytes_out = usize::try_from(self.n_out()).unwrap_or(0) * block;
        if block > CARVED_BESIDE_BLOCK_MOST { 0 } else { (bytes_out / BYTES_PER_CARVED_PAGE).min(CARVED_BESIDE_MOST) }
    }

    /// Takes up to `n` blocks out of the current span, which of its free ones a random number says, and calls `put` with each; carves the next OS page
    /// first if it has none: `prepare` is called with each block that is carved. Returns how many were taken, and how many carved. `None` if there is no
    /// current span, or it has no block left: then it is in `full` afterwards.
    pub(crate) fn take_some<O: Os>(
        &self,
        pages: &PageHeap<O>,
        choice: single_block::Choice<'_>,
        mut prepare: impl FnMut(*mut u8),
        put: impl FnMut(*mut u8),
    ) -> Option<(u32, u32)> {
        let page = self.current.get().some()?;
        // SAFETY: the current span is this heap's, so it has a record and is this thread's.
        let span = unsafe { OwnedSpan::at(pages.layout(), page) };
        let (mut n_carved, os_page_bytes) = (0, pages.os().os_page_bytes());
        let block = block_bytes(span.class.get() as usize);
        while !single_block::has_free(&span) {
            let carved = blocks::carve_free(&span, os_page_bytes, &pages.uncarved);
            if carved.is_empty() {
                break;
            }
            n_carved += carved.len() as u32;
            carved.for_each(|index| prepare(span.start().wrapping_add(index * block)));
        }
        let n_taken = single_block::take(&span, os_page_bytes, choice, put);
        if n_taken == 0 {
            self.retire_current(&span);
            return None;
        }
        self.count_out(i64::from(n_taken));
        Some((n_taken, n_carved))
    }

    /// Lists the current span, which has no block left, as full.
    fn retire_current(&self, span: &OwnedSpan<'_>) {
        span.listed.set(Listed::Full);
        self.full.push(span);
        self.current.set(PageIndex::NONE);
    }

    /// Makes the fullest of the first few partial spans the current one, so that emptier ones may become empty. `false` if there is none.
    /// The class has no current span before the call.
    pub(crate) fn use_fullest_partial(&self, layout: &Layout) -> bool {
        let spans = self.partial.iter(layout).take(SEARCHED);
        let Some((page, _)) = spans.max_by_key(|(_, span)| span.n_out.get()) else { return false };
        // SAFETY: the span was just found in this heap's list.
        let span = unsafe { OwnedSpan::at(layout, page) };
        self.partial.remove(&span);
        self.use_span(&span);
        true
    }

    /// Makes a span that is in no list the current one.
    fn use_span(&self, span: &OwnedSpan<'_>) {
        span.listed.set(Listed::No);
        self.current.set(span.page());
    }

    /// Counts blocks taken out of these spans (or, negative, given back).
    pub(crate) fn count_out(&self, blocks: i64) {
        self.n_out.store(self.n_out.load(Ordering::Relaxed) + blocks, Ordering::Relaxed);
    }

    /// Blocks that are out of these spans: with the program, or in bins and inboxes. Any thread may read it.
    pub(crate) fn n_out(&self) -> i64 {
        self.n_out.load(Ordering::Relaxed)
    }

    /// Takes any span out of the heap's, the current one first.
    pub(crate) fn pop<'a>(&self, layout: &'a Layout) -> Option<OwnedSpan<'a>> {
        let span = match self.current.replace(PageIndex::NONE).some() {
            // SAFETY: the span was the current one, so it is this heap's, and in no list.
            Some(current) => unsafe { OwnedSpan::at(layout, current) },
            None => [&self.partial, &self.full].into_iter().find_map(|list| list.pop(layout))?,
        };
        self.count_out(-i64::from(span.n_out.get()));
        Some(span)
    }

    /// The spans that may have free blocks: the partial ones, and the current one.
    fn with_free_blocks<'a>(&self, layout: &'a Layout) -> impl Iterator<Item = (PageIndex, &'a Span)> {
        // SAFETY: the current span, if there is one, is this heap's.
        let current = self.current.get().some().map(|page| (page, unsafe { OwnedSpan::at(layout, page) }.record()));
        // Giving OS pages back does not change the list.
        self.partial.iter(layout).chain(current)
    }

    /// Calls `visit` with every span, and where its record says that it is. For checks.
    pub(crate) fn for_each(&self, layout: &Layout, mut visit: impl FnMut(PageIndex, Listed)) {
        if let Some(page) = self.current.get().some() {
            visit(page, Listed::No);
        }
        for (list, listed) in [(&self.partial, Listed::Partial), (&self.full, Listed::Full)] {
            list.iter(layout).for_each(|(page, _)| visit(page, listed));
        }
    }
}

/// All small spans that a heap owns.
#[derive(Debug)]
pub(crate) struct OwnedSpans {
    classes: PerClass<ClassSpans>,
    /// Pages in them.
    n_pages: AtomicU64,
}

impl OwnedSpans {
    /// Those of one class.
    #[inline]
    pub(crate) fn of(&self, class: usize) -> &ClassSpans {
        &self.classes[class]
    }

    /// Pages in all of them. Any thread may read it.
    pub(crate) fn n_pages(&self) -> u64 {
        self.n_pages.load(Ordering::Relaxed)
    }

    /// Pages that a new span of a class has.
    pub(crate) fn new_span_pages<O: Os>(shared: &Shared<O>, class: usize) -> Pages {
        span_pages(class).max(shared.settings().span_pages())
    }

    /// Makes a run that the page heap has handed out for a span the current span of a class. `is_watched`: its blocks will have trailers.
    pub(crate) fn begin<O: Os>(
        &self,
        shared: &Shared<O>,
        class: usize,
        run: SpanRun,
        (owner, generation): (&Mailbox, Generation),
        is_watched: bool,
    ) {
        // SAFETY: the run was handed out to this heap, and no other thread can find it before the page map says so.
        let span = unsafe { OwnedSpan::at(shared.pages.layout(), run.page()) };
        blocks::format(&span, class, shared.os().os_page_bytes(), !run.is_zero());
        if run.is_zero() {
            shared.pages.uncarved.add(blocks::fresh_bytes(&span, shared.os().os_page_bytes()));
        }
        self.of(class).gone.take_again(&span, &shared.pages.uncarved);
        span.records().iter().for_each(|record| record.first.store(run.page().0, Ordering::Relaxed));
        span.is_watched.set(is_watched);
        span.owner.store(owner.as_owner().cast_mut(), Ordering::Release);
        span.set_entries(Entry::small(generation, class as u8));
        self.count_pages(span.n_pages());
        self.of(class).use_span(&span);
    }

    /// Makes an abandoned span the current one of a class; `false` if there is none.
    pub(crate) fn adopt<O: Os>(
        &self,
        shared: &Shared<O>,
        class: usize,
        owner: &Mailbox,
        generation: Generation,
    ) -> bool {
        let owner = owner.as_owner().cast_mut();
        let adopted = shared.central.adopt(&shared.pages, &shared.usage, class, owner, generation);
        let Some(span) = adopted else { return false };
        self.count_pages(span.n_pages());
        self.of(class).count_out(i64::from(span.n_out.get()));
        self.of(class).use_span(&span);
        true
    }

    /// Puts a block of `class` back into a span of this heap that has free blocks, and others that are out. `false` in other cases: nothing is done.
    #[inline]
    pub(crate) fn put_back(&self, span: &OwnedSpan<'_>, class: usize, start: *mut u8) -> bool {
        let is_back = single_block::put_back(span, class, start);
        self.of(class).count_out(-i64::from(is_back));
        is_back
    }

    /// Gives the first block of a chain back to its span. The chain goes on behind it, whether or not it is refused.
    ///
    /// # Errors
    /// The block, and why the span refused it.
    pub(crate) fn give_back_first(&self, home: &Home<'_>, chain: &mut FreeChain) -> Result<(), (*mut Node, Refused)> {
        let first = chain.first();
        let second = if chain.n_left() > 1 { chain.second() } else { ptr::null_mut() };
        // SAFETY: the span is this heap's, for `home_of` and `home_at` find no other. The chain's blocks are ours to give.
        let given = unsafe { home.give_back(first, chain.key()) };
        chain.advance(1, second, first);
        given.map_err(|why| (first, why))?;
        self.of(home.class).count_out(-1);
        if home.span.listed.get() == Listed::Full {
            self.list_as_partial(home.class, home.span.layout(), home.span.page());
        }
        Ok(())
    }

    /// Gives a stretch back to its span. Nothing of its blocks is read or written.
    ///
    /// # Errors
    /// Why the span refused it: nothing is done.
    pub(crate) fn give_back_stretch(&self, home: &Home<'_>, stretch: &Stretch) -> Result<(), Refused> {
        home.give_back_stretch(stretch.address(), stretch.len())?;
        self.of(home.class).count_out(-i64::from(stretch.len()));
        if home.span.listed.get() == Listed::Full {
            self.list_as_partial(home.class, home.span.layout(), home.span.page());
        }
        Ok(())
    }

    /// Gives the blocks of a chain, which came out of a bin, back to their spans, from the first on as long as they lie in spans of this heap and of the
    /// chain's class. Without a key, also only as long as they are marked.
    ///
    /// A function of its own, so that its loops have all registers.
    #[inline(never)]
    pub(crate) fn give_back<'a>(&self, layout: &'a Layout, lookup: &Lookup, chain: &mut FreeChain) -> Returned<'a> {
        let (class, key, division) = (chain.class(), chain.key(), BlockDivision::of(chain.class()));
        let (mut next, mut before, mut left) = (chain.first(), chain.before(), chain.n_left());
        let mut n_refused = 0;
        let stop = loop {
            let Some(span) = span_of(layout, lookup, class, next.addr()) else { break Stop::Elsewhere };
            // SAFETY: the span is this heap's, and of the class. The chain's blocks are linked and ours to give.
            let intake = unsafe { blocks::take_in(&span, division, next, left, key) };
            (next, left) = (intake.next, left - intake.n);
            if span.listed.get() == Listed::Full && intake.n > 0 {
                self.list_as_partial(class, layout, span.page());
            }
            match intake.end {
                End::Behind(last) => before = last,
                End::Refused(Refused::Written) if key.is_plain() => break Stop::Elsewhere,
                End::Refused(why) => {
                    (before, n_refused) = (next, 1);
                    // SAFETY: a refused block was in the chain, so its first word was a link when the chain was made.
                    next = unsafe { free_node::next(before, key) };
                    break Stop::Refused(span.page(), before, why);
                }
            }
            if span.n_out.get() == 0 {
                break Stop::Emptied(Home::of(span));
            }
            if left == 0 {
                break Stop::Elsewhere;
            }
        };
        let n = chain.n_left() - left;
        chain.advance(n + n_refused, next, before);
        self.of(class).count_out(-i64::from(n));
        Returned { n, stop }
    }

    /// Moves a full span of `class` that has a free block now to the partial ones.
    #[cold]
    fn list_as_partial(&self, class: usize, layout: &Layout, page: PageIndex) {
        // SAFETY: the span is this heap's.
        let (spans, span) = (self.of(class), unsafe { OwnedSpan::at(layout, page) });
        spans.full.remove(&span);
        spans.partial.push(&span);
        span.listed.set(Listed::Partial);
    }

    /// Gives a span of which no block is out to the page heap.
    pub(crate) fn free_empty<O: Os>(&self, pages: &PageHeap<O>, home: &Home<'_>) {
        let spans = self.of(home.class);
        if spans.current.get() == home.span.page() {
            spans.current.set(PageIndex::NONE);
        } else {
            // A span that has just got a block back is the current one or a partial one.
            spans.partial.remove(&home.span);
            home.span.listed.set(Listed::No);
        }
        spans.gone.count(&home.span, pages.os().os_page_bytes());
        // SAFETY: the span is this heap's, and no code uses `home` any more once no block of its span is out.
        self.free_span(pages, unsafe { OwnedSpan::at(pages.layout(), home.span.page()) });
    }

    /// Frees a span that was taken off the lists, with the blocks that are out of it. Returns how many those are, and how many were free.
    ///
    /// # Safety
    /// - No code uses the blocks of the span.
    pub(crate) unsafe fn free_with_blocks<O: Os>(&self, pages: &PageHeap<O>, span: OwnedSpan<'_>) -> (u32, u32) {
        let (n_out, n_free) = (span.n_out.replace(0), span.n_free.get());
        self.free_span(pages, span);
        (n_out, n_free)
    }

    /// Calls `visit` with each span that has free blocks, or some that are not carved. It may give OS pages back.
    pub(crate) fn for_each_with_free_blocks<'a>(&self, layout: &'a Layout, mut visit: impl FnMut(OwnedSpan<'a>)) {
        let spans = self.classes.iter().flat_map(|class| class.with_free_blocks(layout));
        // SAFETY: the spans are this heap's.
        spans.for_each(|(page, _)| visit(unsafe { OwnedSpan::at(layout, page) }));
    }

    /// Calls `visit` with the first page of each span that is mostly free.
    pub(crate) fn for_each_mostly_free(&self, layout: &Layout, mut visit: impl FnMut(PageIndex)) {
        for class in self.classes.iter() {
            for (page, span) in class.with_free_blocks(layout) {
                if is_mostly_free(span) {
                    visit(page);
                }
            }
        }
    }

    /// Gives a span to the page heap: no block of it is out, and it is in no list.
    fn free_span<O: Os>(&self, pages: &PageHeap<O>, span: OwnedSpan<'_>) {
        self.uncount_pages(span.n_pages());
        blocks::clear(&span);
        pages.free_span(span);
    }

    fn uncount_pages(&self, n: Pages) {
        self.n_pages.store(self.n_pages() - u64::from(n.0), Ordering::Relaxed);
    }

    fn count_pages(&self, n: Pages) {
        self.n_pages.store(self.n_pages() + u64::from(n.0), Ordering::Relaxed);
    }

    /// Leaves a span of a class without an owner, the current one first; one of which no block is out goes to the page heap. `false` if the heap has none.
    #[inline(never)]
    pub(crate) fn leave_one<O: Os>(&self, shared: &Shared<O>, class: usize) -> bool {
        let Some(span) = self.of(class).pop(shared.pages.layout()) else { return false };
        self.uncount_pages(span.n_pages());
        shared.central.abandon(&shared.pages, &shared.usage, span);
        true
    }
}

/// The span of `class` that holds the block at `address`, if it is this heap's: `lookup` is up to date.
#[inline(always)]
fn span_of<'a>(layout: &'a Layout, lookup: &Lookup, class: usize, address: usize) -> Option<OwnedSpan<'a>> {
    let (page, _) = lookup.own_page_and_class(address).filter(|(_, of)| *of == class)?;
    // SAFETY: a page with an entry has a record, and in a small span every record has the first page right.
    let first = unsafe { &*layout.record(page) }.first_page();
    // SAFETY: the page has this heap's tag, so the small span that starts at `first` is this heap's.
    Some(unsafe { OwnedSpan::at(layout, first) })
}

/// The span that holds the block at `address`, if it is this heap's: `lookup` is up to date.
#[inline]
pub(crate) fn home_of<'a>(layout: &'a Layout, lookup: &Lookup, address: usize) -> Option<Home<'a>> {
    let (page, _) = lookup.own_page_and_class(address)?;
    // SAFETY: a page with an entry has a record, and in a small span every record has the first page right.
    let first = unsafe { &*layout.record(page) }.first_page();
    // SAFETY: the page has this heap's tag, so the small span that starts at `first` is this heap's.
    Some(Home::of(unsafe { OwnedSpan::at(layout, first) }))
}

/// The small span that starts at `page`, a block of which the caller has, if `owner` owns it: the mailbox of this heap.
pub(crate) fn home_at<'a, O: Os>(shared: &'a Shared<O>, owner: &Mailbox, page: PageIndex) -> Option<Home<'a>> {
    let is_own = owner_of_span(shared, page).is_some_and(|it| it.is(owner));
    // SAFETY: the span is small and names this heap as its owner.
    is_own.then(|| Home::of(unsafe { OwnedSpan::at(shared.pages.layout(), page) }))
}

/// Whether the block at `address`, which was just returned, was the last one out of an OS page, in a span that is mostly free.
pub(crate) fn has_emptied_os_page<O: Os>(shared: &Shared<O>, home: &Home<'_>, address: usize) -> bool {
    os_pages::has_emptied_a_page(&home.span, home.index_of(address), shared.os().os_page_bytes())
}

/// Collects the OS pages in which no block is out of the span of this heap that `page` is in, if it is mostly free. Returns the span's class and the number
/// of blocks that are no longer free; `None` if the page is in no small span of this heap.
pub(crate) fn release_os_pages<'a, O: Os>(
    shared: &'a Shared<O>,
    lookup: &Lookup,
    page: PageIndex,
    stretches: &mut EmptyStretches<'a>,
) -> Option<(usize, u32)> {
    let layout = shared.pages.layout();
    let home = home_of(layout, lookup, layout.page_start(page).addr()).filter(|home| is_mostly_free(&home.span))?;
    Some((home.class, central::release_os_pages(&shared.pages, &home.span, stretches)))
}

#[cfg(test)]
mod tests;
