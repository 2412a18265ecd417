//! Checks every invariant of the heap, and returns the first one that does not hold.
#![allow(unsafe_code)]
//!
//! For tests. Costs a pass over all pages, lists and bins, and is right only while no other thread is inside the allocator.
//!
//! Layer: above `thread`, below `api`.
//!
//! # Safety
//! The walk reads what heaps own; no other thread is inside the allocator meanwhile (the contract of [`check`]). Pages below the high-water mark
//! have records and entries, which are never unmapped.

use crate::page::state::State;
use crate::shared::Shared;
use crate::size_class::{N_CLASSES, block_at, block_bytes, span_pages};
use crate::span::free_node::{self, END_OF_BIN};
use crate::span::marked_block::MarkedBlock;
use crate::span::record::Listed;
use crate::span::secret::Secret;
use crate::span::single_block::{Whereabouts, whereabouts};
use crate::span::{Entry, Generation, Kind, Layout, OwnedSpan, PageIndex, Span, blocks};
use crate::thread::heap::ThreadHeap;
use crate::thread::heap::own::Own;
use crate::thread::life::Threads;
use crate::thread::mailbox::Life;
use core::ptr;
use freestone_base::sync::Ordering;
use freestone_base::units::Pages;
use freestone_os::Os;

/// An invariant that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The invariant, as a statement.
    pub what: &'static str,
    /// The page where it does not hold, or none.
    pub(crate) page: PageIndex,
}

fn hold(condition: bool, what: &'static str, page: PageIndex) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken { what, page }) }
}

/// Checks every invariant.
///
/// # Errors
/// The first invariant that does not hold.
///
/// # Safety
/// - No other thread is inside the allocator.
pub(crate) unsafe fn check<O: Os>(shared: &Shared<O>, threads: &Threads<O>) -> Result<(), Broken> {
    let os_page_bytes = shared.os().os_page_bytes();
    let orphans = threads.iter().any(|heap| heap.life() == Life::Orphaned);
    // In a forked child, what the threads that do not exist there were doing stays half done: in their own spans, in new ones, and in spans
    // whose last block they had just given back.
    let is_lost = |span: &Span, entry| {
        let owner = span.owner.load(Ordering::Relaxed);
        let is_owner =
            |heap: &ThreadHeap<O>| heap.life() == Life::Orphaned && heap.mailbox().as_owner() == owner.cast_const();
        orphans && (entry == Entry::NONE || span.n_out.get() == 0 || threads.iter().any(is_owner))
    };
    let mut small = InSpans { n: 0, n_ahead: 0, free_bytes: 0, uncarved_bytes: 0, n_out: [0; N_CLASSES] };
    shared.pages.inspect(|state| {
        let checked = state.check_free().and_then(|()| shared.pages.check_listed(state));
        checked.map_err(|(what, page)| Broken { what, page })?;
        check_pages(state, (os_page_bytes, &shared.secret), is_lost, &mut small)
    })?;
    let (mut n_listed, mut n_ahead) = (0, 0);
    for class in 0..N_CLASSES {
        let mut wrong = Ok(());
        shared.central.inspect(shared.pages.layout(), class, |page, span, is_full| {
            n_listed += 1;
            let has_some = span.n_free.get() > 0 || span.fresh.get() != 0;
            let ownerless = span.owner.load(Ordering::Relaxed).is_null();
            wrong = wrong.and(hold(ownerless && has_some != is_full, "an abandoned span is in the right list", page));
        });
        wrong?;
    }
    for heap in threads.iter().filter(|heap| matches!(heap.life(), Life::Alive | Life::Spare)) {
        // SAFETY: the heap is alive, or would be with a thread, and no other thread is inside the allocator (this function's contract).
        let own = unsafe { heap.as_own(None) };
        n_listed += check_heap(shared, own)?;
        n_ahead += own.ahead().n();
    }
    hold(orphans || n_ahead == small.n_ahead, "every run taken ahead is a heap's", PageIndex::NONE)?;
    hold(orphans || n_listed == small.n, "every small span is in one list", PageIndex::NONE)?;
    if orphans { Ok(()) } else { check_counts(shared, threads, &small) }
}

/// What the small spans have, taken together.
struct InSpans {
    n: u32,
    /// Runs taken ahead for spans.
    n_ahead: u32,
    /// Bytes of free blocks.
    free_bytes: i64,
    /// Bytes of OS pages that no block was carved from, and that have no memory.
    uncarved_bytes: i64,
    /// Blocks that are out, by class.
    n_out: [i64; N_CLASSES],
}

/// Checks that what heaps count as they go is what the spans have.
fn check_counts<O: Os>(shared: &Shared<O>, threads: &Threads<O>, small: &InSpans) -> Result<(), Broken> {
    let mut free_bytes = shared.usage.free_in_spans();
    for heap in threads.iter().filter(|heap| matches!(heap.life(), Life::Alive | Life::Spare)) {
        // SAFETY: the heap is alive, or would be with a thread, and no other thread is inside the allocator (the contract of `check`).
        free_bytes += unsafe { heap.as_own(None) }.accounts().unpublished_free();
    }
    hold(free_bytes == small.free_bytes, "what counts as free inside spans is free there", PageIndex::NONE)?;
    let uncarved_bytes = shared.pages.uncarved.bytes();
    hold(uncarved_bytes == small.uncarved_bytes, "what counts as never carved is in no block", PageIndex::NONE)?;
    for (class, n_out) in small.n_out.into_iter().enumerate() {
        let taken: i64 = threads.iter().map(|heap| heap.counts(class).out).sum();
        let counted = taken + shared.usage.left_out(class);
        hold(counted == n_out, "as many blocks count as out of their spans as are out", PageIndex::NONE)?;
    }
    Ok(())
}

/// Walks the page runs, and adds up what the small spans have. Those that `is_lost` says were left half changed may be in any state.
fn check_pages(
    state: &State,
    (os_page_bytes, secret): (usize, &Secret),
    is_lost: impl Fn(&Span, Entry) -> bool,
    small: &mut InSpans,
) -> Result<(), Broken> {
    let (runs, mut end, mut before) = (&state.runs, PageIndex(1), Kind::None);
    let mut pages = [0u64; Kind::COUNT];
    for (run, record) in runs.iter() {
        let (kind, page) = (record.kind.get(), run.first);
        hold(run.end() <= runs.high_water(), "runs lie below the high-water mark", page)?;
        let last = runs.record(run.last());
        hold(last.first_page() == run.first && last.kind.get() == kind, "a run's ends agree", page)?;
        let is_free = matches!(kind, Kind::Clean | Kind::Dirty | Kind::Stuck | Kind::Reserved);
        hold(!is_free || kind != before, "free neighbours of a kind are one run", page)?;
        let entry = runs.entry(run.first);
        let lost = kind == Kind::Small && is_lost(record, entry);
        if kind == Kind::Small && entry == Entry::NONE && !lost {
            small.n_ahead += 1;
        } else if kind == Kind::Small {
            if !lost {
                check_span(runs.layout(), page, os_page_bytes)?;
                check_marks(runs.layout(), page, os_page_bytes, secret)?;
                let class = record.class.get() as usize;
                small.free_bytes += i64::from(record.n_free.get()) * block_bytes(class) as i64;
                small.uncarved_bytes += blocks::uncarved_bytes(record, os_page_bytes);
                small.n_out[class] += i64::from(record.n_out.get());
            }
            small.n += 1;
        }
        let n_open = runs.n_open(run);
        pages[kind as usize] += u64::from(n_open.0);
        pages[Kind::Guard as usize] += u64::from((run.pages - n_open).0);
        let expected = match kind {
            Kind::Small => entry.class().is_some() || entry == Entry::NONE,
            Kind::Large => entry == Entry::LARGE || entry == Entry::CACHED,
            Kind::Quarantined => entry == Entry::CACHED,
            _ => entry == Entry::NONE,
        };
        hold(expected || lost, "a run's page map entry agrees with its kind", page)?;
        (before, end) = (kind, run.end());
    }
    hold(runs.high_water() <= end, "the runs reach to the high-water mark", end)?;
    for (kind, counted) in runs.counts().iter() {
        hold(u64::from(counted.0) == pages[kind as usize], "the counts of pages are the pages", PageIndex::NONE)?;
    }
    Ok(())
}

fn check_span(layout: &Layout, page: PageIndex, os_page_bytes: usize) -> Result<(), Broken> {
    // SAFETY: the page starts a small span below the high-water mark, and no other thread is inside the allocator (the contract of `check`).
    let span = unsafe { OwnedSpan::at(layout, page) };
    let class = span.class.get() as usize;
    let is_long = class < N_CLASSES && span_pages(class) <= span.n_pages();
    hold(is_long, "a span is at least as long as its class says", page)?;
    hold(blocks::count_free(&span) == span.n_free.get(), "the bitmap has as many bits as counted", page)?;
    let fresh = blocks::count_fresh(&span, os_page_bytes);
    let all = blocks::n_blocks(&span) as u32;
    hold(span.n_free.get() + span.n_out.get() + fresh == all, "free, out and fresh blocks are all blocks", page)?;
    let entry = span.entry(0);
    let owned = !span.owner.load(Ordering::Relaxed).is_null();
    hold(owned == (entry.generation() != Generation::ABANDONED), "owner and page map agree", page)?;
    for (at, record) in (0..).zip(span.records()) {
        hold(span.entry(at) == entry, "a span's pages have the same entry", page + Pages(at))?;
        hold(record.first_page() == page, "a span's pages record where it starts", page + Pages(at))?;
    }
    Ok(())
}

/// Checks the marks of the blocks of a watched span: each that was carved has a trailer, unless it is free and the trailer's OS page was purged, and what
/// a free one was filled with is there.
fn check_marks(layout: &Layout, page: PageIndex, os_page_bytes: usize, secret: &Secret) -> Result<(), Broken> {
    // SAFETY: the page starts a small span below the high-water mark, and no other thread is inside the allocator (the contract of `check`).
    let span = unsafe { OwnedSpan::at(layout, page) };
    if !span.is_watched.get() {
        return Ok(());
    }
    let bytes = block_bytes(span.class.get() as usize);
    for index in 0..blocks::n_blocks(&span) {
        // SAFETY: a block of a watched span is there, or will be, and no other thread is inside the allocator (the contract of `check`).
        let block = unsafe { MarkedBlock::at(span.start().wrapping_add(index * bytes), bytes, secret) };
        match whereabouts(&span, index, os_page_bytes) {
            Whereabouts::Uncarved => {}
            Whereabouts::Out => hold(block.trailer().is_some(), "a block that is out has a trailer", page)?,
            Whereabouts::Free => hold(block.is_as_left(os_page_bytes), "a free block is as it was left", page)?,
        }
    }
    Ok(())
}

/// Checks a heap's lists and bins; returns how many spans it owns.
fn check_heap<O: Os>(shared: &Shared<O>, own: Own<'_, O>) -> Result<u32, Broken> {
    let layout = *shared.pages.layout();
    hold(own.accounts().unpublished_large() <= 0, "the shared count includes every large block", PageIndex::NONE)?;
    check_watched(shared, own)?;
    let (mut n_spans, mut n_pages) = (0, 0);
    for class in 0..N_CLASSES {
        let (mut result, mut n_out) = (Ok(()), 0);
        let mut belongs = |page: PageIndex, listed: Listed| {
            n_spans += 1;
            // SAFETY: the span is in a list of the heap, so it has a record; no other thread is inside the allocator (the contract of `check`).
            let span = unsafe { OwnedSpan::at(&layout, page) };
            n_pages += u64::from(span.n_pages().0);
            n_out += i64::from(span.n_out.get());
            let has_some = span.n_free.get() > 0 || span.fresh.get() != 0;
            hold(
                span.entry(0).class_if_owned(own.lookup().tag()) == Some(class),
                "the page map names the heap as the owner of its span",
                page,
            )?;
            hold(span.listed.get() == listed, "a span's record names the list that it is in", page)?;
            hold(listed == Listed::No || has_some == (listed == Listed::Partial), "a span is in the right list", page)
        };
        own.spans().of(class).for_each(&layout, |page, listed| {
            let belongs = belongs(page, listed);
            result = result.and(belongs);
        });
        result?;
        check_bin(shared, own, class)?;
        let counted = own.spans().of(class).n_out();
        hold(counted == n_out, "a heap counts the blocks that are out of its spans", PageIndex::NONE)?;
    }
    hold(own.spans().n_pages() == n_pages, "a heap counts the pages of its spans", PageIndex::NONE)?;
    Ok(n_spans)
}

/// Checks that a watched heap's bins are closed, and that what it holds back is out of its spans.
fn check_watched<O: Os>(shared: &Shared<O>, own: Own<'_, O>) -> Result<(), Broken> {
    let Some(watch) = own.watch() else { return Ok(()) };
    for class in 0..N_CLASSES {
        let is_closed = own.bins().is_empty(class) && own.bins().room(class) == 0;
        hold(is_closed, "the bins of a watched heap are empty and have no room", PageIndex::NONE)?;
    }
    let view = shared.pages.view();
    for block in watch.held() {
        let (page, entry) =
            (view.page_of(block.addr()).unwrap_or_default(), view.entry(block.addr()).unwrap_or(Entry::NONE));
        let Some(class) = entry.class() else {
            hold(entry == Entry::CACHED, "a large block in a quarantine is not the program's", page)?;
            continue;
        };
        // SAFETY: the entry has a class, so the page is in a span and has a record, and so has the span's first page.
        let first = unsafe { shared.pages.span(page) }.first_page();
        let (index, is_start) = block_at(class, block.addr() - shared.pages.layout().page_start(first).addr());
        hold(is_start, "blocks that are held back start where blocks start", first)?;
        // SAFETY: the span starts there, and no other thread is inside the allocator (the contract of `check`).
        let span = unsafe { OwnedSpan::at(shared.pages.layout(), first) };
        hold(!blocks::is_free(&span, index), "blocks that are held back are out of their spans", first)?;
    }
    Ok(())
}

fn check_bin<O: Os>(shared: &Shared<O>, own: Own<'_, O>, class: usize) -> Result<(), Broken> {
    let (layout, view) = (shared.pages.layout(), shared.pages.view());
    let (mut block, mut len) = (own.bins().first(class), 0);
    while !block.is_null() {
        let page = view.page_of(block.addr()).unwrap_or_default();
        let Some(of) = view.small_class(block.addr()) else { return hold(false, "blocks in bins are in spans", page) };
        hold(block_bytes(of) >= block_bytes(class), "blocks in bins are large enough", page)?;
        // SAFETY: the page has the entry of a small span, so it has a record.
        let first = unsafe { shared.pages.span(page) }.first_page();
        // SAFETY: each page's record has the span's first page; no other thread is inside the allocator (the contract of `check`).
        let span = unsafe { OwnedSpan::at(layout, first) };
        let (index, is_start) = block_at(of, block.addr() - span.start().addr());
        hold(is_start, "blocks in bins start where blocks start", first)?;
        hold(!blocks::is_free(&span, index), "blocks in bins are out of their spans", first)?;
        len += 1;
        hold(len <= i64::from(u32::MAX), "bins end", first)?;
        // SAFETY: the block is in a bin, so no code uses it, and its first word links to the next.
        let next = unsafe { free_node::next(block, own.bins().key()) };
        block = if next == END_OF_BIN { ptr::null_mut() } else { free_node::not_chosen(next) };
    }
    hold(len == own.bins().len(class), "a bin has as many blocks as counted", PageIndex::NONE)
}

#[cfg(test)]
mod tests;
