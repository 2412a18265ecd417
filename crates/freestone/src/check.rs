//! Every invariant, walked; the first one broken, named.
#![allow(unsafe_code)]
//!
//! For tests, and for the moment after a wrong program was caught. Costs a pass over all pages, lists and bins; only right while no
//! other thread is inside the allocator.
//!
//! # Safety
//! As above: the walk reads what heaps own.

use crate::page::Shelf;
use crate::page::state::State;
use crate::shared::Shared;
use crate::size_class::{N_CLASSES, block_at, block_bytes, span_pages};
use crate::span::record::Listed;
use crate::span::{Entry, Kind, Layout, Owner, Span, blocks};
use crate::thread::heap::ThreadHeap;
use crate::thread::heap::own::Own;
use crate::thread::life::Threads;
use crate::thread::remote_frees::Life;
use freestone_base::inbox::Node;
use freestone_base::sync::Ordering;
use freestone_os::Os;

const N_KINDS: usize = Kind::Purging as usize + 1;

/// An invariant that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub what: &'static str,
    /// The page it was seen at, or 0.
    pub page: u32,
}

fn hold(condition: bool, what: &'static str, page: u32) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken { what, page }) }
}

/// Checks everything.
///
/// # Errors
/// The first invariant that does not hold.
///
/// # Safety
/// - No other thread is inside the allocator.
pub(crate) unsafe fn check<O: Os>(shared: &Shared<O>, threads: &Threads<O>) -> Result<(), Broken> {
    let os_page_bytes = shared.os().os_page_bytes();
    let orphans = threads.iter().any(|heap| heap.life() == Life::Orphaned);
    // What a thread was doing that did not come along into a forked child stays half done: in its own spans, in new ones, and in those
    // whose last block it had just brought home.
    let is_lost = |span: &Span, entry| {
        let owner = span.owner.load(Ordering::Relaxed);
        let is_owner =
            |heap: &ThreadHeap<O>| heap.life() == Life::Orphaned && heap.mailbox().as_owner() == owner.cast_const();
        orphans && (entry == Entry::NONE || span.n_out.get() == 0 || threads.iter().any(is_owner))
    };
    let n_small = shared.pages.inspect(|state, layout| {
        check_free_sets(state, layout)?;
        check_shelves(state, layout)?;
        check_pages(state, layout, os_page_bytes, is_lost)
    })?;
    let mut n_listed = 0;
    for class in 0..N_CLASSES {
        let mut wrong = Ok(());
        shared.central.inspect(shared.pages.layout(), class, |page, is_full| {
            n_listed += 1;
            // SAFETY: listed spans are committed and nobody changes them.
            let span = unsafe { shared.span(page) };
            let has_some = span.n_free.get() > 0 || span.fresh.get() != 0;
            let ownerless = span.owner.load(Ordering::Relaxed).is_null();
            wrong = wrong.and(hold(ownerless && has_some != is_full, "an abandoned span is in the right list", page));
        });
        wrong?;
    }
    for heap in threads.iter().filter(|heap| heap.life() == Life::Alive) {
        // SAFETY: the caller's promise.
        n_listed += check_heap(shared, unsafe { heap.as_own(None) })?;
    }
    hold(orphans || n_listed == n_small, "every small span is in one list", 0)
}

/// Walks the runs; returns how many small spans there are. Small spans that are `is_lost` have been left in any state.
fn check_pages(
    state: &State,
    layout: &Layout,
    os_page_bytes: usize,
    is_lost: impl Fn(&Span, Entry) -> bool,
) -> Result<u32, Broken> {
    let (mut page, mut n_small, mut before) = (1, 0, Kind::None);
    let mut pages = [0u64; N_KINDS];
    while page < state.frontier {
        // SAFETY: records below the frontier are committed.
        let record = unsafe { &*layout.record(page) };
        let (kind, n) = (record.kind.get(), record.pages.get());
        hold(n > 0 && page + n <= state.frontier, "runs lie before the frontier", page)?;
        // SAFETY: as above.
        let last = unsafe { &*layout.record(page + n - 1) };
        hold(last.first.load(Ordering::Relaxed) == page && last.kind.get() == kind, "a run's ends agree", page)?;
        let is_free = matches!(kind, Kind::Clean | Kind::Dirty | Kind::Stuck | Kind::Reserved);
        hold(!is_free || kind != before, "free neighbours of a kind are one run", page)?;
        // SAFETY: entries of pages below the frontier are committed.
        let entry = unsafe { layout.map.get(page as usize) };
        let lost = kind == Kind::Small && is_lost(record, entry);
        if kind == Kind::Small {
            if !lost {
                check_span(layout, page, os_page_bytes)?;
            }
            n_small += 1;
        }
        pages[kind as usize] += u64::from(n);
        let expected = match kind {
            Kind::Small => entry.class().is_some(),
            Kind::Large => entry == Entry::LARGE || entry == Entry::KEPT,
            _ => entry == Entry::NONE,
        };
        hold(expected || lost, "the page map says what a run is", page)?;
        before = kind;
        page += n;
    }
    let stats = &state.stats;
    for (kind, counted) in [
        (Kind::None, stats.foreign_pages),
        (Kind::Dirty, stats.dirty_pages),
        (Kind::Clean, stats.clean_pages),
        (Kind::Stuck, stats.stuck_pages),
        (Kind::Small, stats.small_pages),
        (Kind::Large, stats.large_pages),
        (Kind::Metadata, stats.metadata_pages),
        (Kind::Reserved, stats.reserved_pages),
        (Kind::Purging, stats.purging_pages),
    ] {
        hold(counted == pages[kind as usize], "the counts of pages are the pages", kind as u32)?;
    }
    Ok(n_small)
}

fn check_span(layout: &Layout, page: u32, os_page_bytes: usize) -> Result<(), Broken> {
    // SAFETY: a small span's record, bitmap and entries are committed.
    unsafe {
        let span = &*layout.record(page);
        let class = span.class.get() as usize;
        hold(
            class < N_CLASSES && span_pages(class).0 <= span.pages.get(),
            "a span is at least as long as its class says",
            page,
        )?;
        hold(blocks::count_free(layout, page) == span.n_free.get(), "the bitmap has as many bits as counted", page)?;
        let fresh = blocks::count_fresh(layout, page, os_page_bytes);
        let all = blocks::n_blocks(span) as u32;
        hold(span.n_free.get() + span.n_out.get() + fresh == all, "free, out and fresh blocks are all blocks", page)?;
        let entry = layout.map.get(page as usize);
        let owned = !span.owner.load(Ordering::Relaxed).is_null();
        hold(owned == (entry.owner() != Owner::ABANDONED), "owner and page map agree", page)?;
        for at in page..page + span.pages.get() {
            hold(layout.map.get(at as usize) == entry, "a span's pages have the same entry", at)?;
            let first = (*layout.record(at)).first.load(Ordering::Relaxed);
            hold(first == page, "a span's pages know where it starts", at)?;
        }
    }
    Ok(())
}

fn check_shelves(state: &State, layout: &Layout) -> Result<(), Broken> {
    let mut open_pages = 0;
    for (n_pages, slot) in state.shelves().flat_map(Shelf::by_length).filter(|(_, slot)| !slot.is_closed()) {
        open_pages += u64::from(n_pages);
        let page = slot.peek();
        if page != 0 {
            // SAFETY: what is kept has a record and an entry.
            let (record, entry) = unsafe { (&*layout.record(page), layout.map.get(page as usize)) };
            hold(record.kind.get() == Kind::Large && entry == Entry::KEPT, "what is on a shelf is kept", page)?;
            hold(record.pages.get() == n_pages, "a run on a shelf is as long as its slot says", page)?;
        }
    }
    hold(open_pages == state.shelf_pages, "the count of pages on shelves is that of open slots", 0)
}

fn check_free_sets(state: &State, layout: &Layout) -> Result<(), Broken> {
    for (set, kinds, pages) in [
        (&state.dirty, [Kind::Dirty, Kind::Stuck], state.stats.dirty_pages + state.stats.stuck_pages),
        (&state.clean, [Kind::Clean, Kind::Clean], state.stats.clean_pages),
        (&state.reserved, [Kind::Reserved, Kind::Reserved], state.stats.reserved_pages),
    ] {
        let (mut sum, mut wrong) = (0, Ok(()));
        set.for_each(layout, |page| {
            // SAFETY: runs in a set have records.
            let record = unsafe { &*layout.record(page) };
            sum += u64::from(record.pages.get());
            wrong = wrong.and(hold(kinds.contains(&record.kind.get()), "a set has runs of its kind", page));
        });
        wrong?;
        hold(sum == pages, "the sets have all free pages", 0)?;
    }
    // SAFETY: the list is the page heap's, and nobody changes it.
    let mut purging = unsafe { state.purging.iter(layout) }.map(|(page, run)| (page, run.kind.get()));
    if let Some((page, _)) = purging.find(|(_, kind)| *kind != Kind::Purging) {
        return hold(false, "the list of runs being purged has no others", page);
    }
    let (mut page, mut before, mut last_ms) = (state.oldest, 0, None);
    while page != 0 {
        // SAFETY: dirty runs have records.
        let record = unsafe { &*layout.record(page) };
        hold(record.kind.get() == Kind::Dirty && record.older.get() == before, "ages link the dirty runs", page)?;
        hold(last_ms.is_none_or(|ms| ms <= record.dirty_since_ms.get()), "ages are in order", page)?;
        last_ms = Some(record.dirty_since_ms.get());
        before = page;
        page = record.younger.get();
    }
    hold(state.youngest == before, "the youngest run is the last", before)
}

/// Checks a heap's lists and bins; returns how many spans it owns.
fn check_heap<O: Os>(shared: &Shared<O>, own: Own<'_, O>) -> Result<u32, Broken> {
    let layout = *shared.pages.layout();
    hold(own.accounts().unpublished_large() <= 0, "the shared count knows of every large block", 0)?;
    let mut n_spans = 0;
    for class in 0..N_CLASSES {
        let mut result = Ok(());
        let mut belongs = |page: u32, listed: Listed| {
            n_spans += 1;
            // SAFETY: the heap's spans are committed.
            let (span, entry) = unsafe { (shared.span(page), layout.map.get(page as usize)) };
            let has_some = span.n_free.get() > 0 || span.fresh.get() != 0;
            hold(entry.class_if_owned(own.bins().lookup().tag()) == Some(class), "a heap's span has its tag", page)?;
            hold(span.listed.get() == listed, "a span knows which list it is in", page)?;
            hold(listed == Listed::No || has_some == (listed == Listed::Partial), "a span is in the right list", page)
        };
        own.spans().of(class).for_each(&layout, |page, listed| {
            let belongs = belongs(page, listed);
            result = result.and(belongs);
        });
        result?;
        check_bin(shared, own, class)?;
    }
    Ok(n_spans)
}

fn check_bin<O: Os>(shared: &Shared<O>, own: Own<'_, O>, class: usize) -> Result<(), Broken> {
    let (layout, view) = (shared.pages.layout(), shared.pages.view());
    let (mut block, mut len) = (own.bins().first(class), 0);
    while !block.is_null() {
        let page = view.page_of(block.addr()).unwrap_or(0);
        // SAFETY: pages with a class have records.
        unsafe {
            let entry = view.entry(block.addr()).unwrap_or(Entry::NONE);
            let Some(of) = entry.class() else { return hold(false, "blocks in bins are in spans", page as u32) };
            hold(block_bytes(of) >= block_bytes(class), "blocks in bins are large enough", page as u32)?;
            let first = (*layout.record(page as u32)).first.load(Ordering::Relaxed);
            let (index, is_start) = block_at(of, block.addr() - layout.page_start(first).addr());
            hold(is_start, "blocks in bins start where blocks start", first)?;
            hold(!blocks::is_free(layout, first, index), "blocks in bins are out of their spans", first)?;
            len += 1;
            hold(len <= i64::from(u32::MAX), "bins end", first)?;
            let node: *mut Node = block;
            block = (*node).next;
        }
    }
    hold(len == own.bins().len(class), "a bin has as many blocks as counted", 0)
}
