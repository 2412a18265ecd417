//! Large blocks, which are page runs: all sizes above the largest size class, and alignments that no size class has.
#![allow(unsafe_code)]
//!
//! A large block starts on a page (64 KiB) and is whole pages long; only the OS pages that are written get memory. No thread owns it: any
//! thread frees it, into its own large-run cache, into a list of freed runs, or under the page heap's lock. It grows into the free run behind it where there is one.
//!
//! # Safety
//! A page that is passed in starts a large block that the program holds, so it has a record, and the run is the block's.

use crate::page::{Moved, OwnedRun, Run, check_interval};
use crate::shared::Shared;
use crate::span::{Kind, PageIndex};
use crate::thread::heap::own::{Current, Own};
use crate::thread::holdings::Holdings;
use crate::thread::new_block::NewBlock;
use crate::thread::{profiling, upkeep};
use core::ptr;
use freestone_base::units::{Bytes, Millis, PAGE_BYTES, PAGE_BYTES_LOG2, Pages};
use freestone_os::Os;

/// Alignments beyond this are refused: nothing sensible asks for them, and the arithmetic stays far from its limits.
pub(crate) const ALIGN_MAX: usize = 1 << if usize::BITS == 64 { 40 } else { 28 };

/// Bytes of a run.
fn run_bytes(pages: Pages) -> i64 {
    pages.to_bytes().0 as i64
}

/// Allocates a large block of at least `size` bytes, aligned to `align` (a power of two); its start is null when memory runs out.
#[cold]
#[must_use]
pub(crate) fn allocate<O: Os>(own: Own<'_, O>, size: usize, align: usize) -> NewBlock {
    let align_pages = (align >> PAGE_BYTES_LOG2).max(1);
    let (Some(n_pages), Ok(align_pages)) = (Bytes(size.max(1)).to_pages(), u32::try_from(align_pages)) else {
        return NewBlock::NONE;
    };
    if align_pages == 1 {
        // SAFETY: the heap is this thread's.
        let start = unsafe { take_cached(own.heap().as_current(), size) };
        if !start.is_null() {
            return NewBlock { start, zero: false };
        }
        own.cache().note_wanted(n_pages);
    }
    if !own.has_room(n_pages) {
        return NewBlock::NONE;
    }
    let pages = &own.shared().pages;
    if align_pages > 1 || !shares_runs(own) {
        let run = pages.allocate(n_pages, Pages(align_pages), Kind::Large);
        return hand_out_new(own, run.map(|run| within_limit(own, run, n_pages)));
    }
    let freed = pages.take_freed(n_pages);
    if freed.is_none() {
        return hand_out_new(own, pages.allocate_listed(n_pages));
    }
    own.cache().count_take();
    hand_out(own, freed)
}

/// Whether a heap caches runs, and shares freed ones with others: what is in an explicit heap is deleted with it, and a watched heap takes no hot path.
fn shares_runs<O: Os>(own: Own<'_, O>) -> bool {
    own.holdings().is_none() && own.watch().is_none()
}

/// Allocates a large block of at least `size` bytes from the large-run cache; null if it has none, and on a placeholder.
#[inline(always)]
#[must_use]
pub(crate) fn take_cached<O: Os>(current: Current<'_, O>, size: usize) -> *mut u8 {
    let Some(n_pages) = Bytes(size).to_pages() else { return ptr::null_mut() };
    let (view, cache) = current.view_and_cache();
    // SAFETY: the cache is this thread's, and its runs lie in the address range of the heap's view.
    let Some(page) = (unsafe { cache.take(view.map(), n_pages) }) else { return ptr::null_mut() };
    // SAFETY: a placeholder's cache has no open slot.
    let own = unsafe { current.assume_own() };
    if own.accounts().add_large(run_bytes(n_pages)) {
        publish(own, 0);
    }
    // SAFETY: the page starts the run in use that the cache had, so it has a record.
    profiling::count_large(own, page, unsafe { own.shared().pages.span(page) });
    view.page_start(page)
}

/// Allocates a large block of at least `size` bytes in place of a block that holds `held`: with free pages behind it to grow into, if there are any and it grows by little.
#[cold]
#[must_use]
pub(crate) fn allocate_with_growth_room<O: Os>(own: Own<'_, O>, held: Bytes, size: usize) -> NewBlock {
    let Some(n_pages) = Bytes(size).to_pages() else { return NewBlock::NONE };
    if !own.has_room(n_pages) {
        return NewBlock::NONE;
    }
    let run = own.shared().pages.allocate_with_growth_room(held, Bytes(size));
    if run.is_none() { allocate(own, size, 1) } else { hand_out_new(own, run) }
}

/// A run for a new block of `pages`. What it has beyond them, because it ends with a huge page, is cut off if the heap's limit leaves no room for it.
fn within_limit<O: Os>(own: Own<'_, O>, run: Run, pages: Pages) -> Run {
    if run.pages == pages || own.has_room(run.pages) {
        return run;
    }
    // SAFETY: the run was just allocated for this block.
    let owned = unsafe { OwnedRun::at(run.page) };
    own.shared().pages.shrink(&owned, pages);
    Run { pages, ..run }
}

/// Makes a run of the page heap's a block of this heap.
fn hand_out_new<O: Os>(own: Own<'_, O>, run: Option<Run>) -> NewBlock {
    if run.is_some() {
        own.accounts().count_large_alloc();
    }
    hand_out(own, run)
}

/// Makes a run a block of this heap.
fn hand_out<O: Os>(own: Own<'_, O>, run: Option<Run>) -> NewBlock {
    let Some(run) = run else { return NewBlock::NONE };
    let pages = &own.shared().pages;
    if let Some(holdings) = own.holdings() {
        // SAFETY: the run was just allocated for this block.
        let owned = unsafe { OwnedRun::at(run.page) };
        // SAFETY: an explicit heap's record stays where it is.
        pages.list_large(&owned, unsafe { holdings.large().pinned() });
    }
    // SAFETY: the run was just handed out, so its first page has a record.
    let record = unsafe { pages.span(run.page) };
    // It is not sampled: that it was ended when the last block there was freed.
    record.is_watched.set(false);
    profiling::count_large(own, run.page, record);
    publish(own, run_bytes(run.pages));
    if pages.take_guards_ran_out() {
        freestone_os::report(format_args!("large blocks get no more guards: the kernel allows no more mappings"));
    }
    NewBlock { start: pages.layout().page_start(run.page), zero: run.zero }
}

/// Whether the large block that starts at `page`, as the page map says, is of the explicit heap with these holdings.
#[must_use]
pub(crate) fn is_of<O: Os>(shared: &Shared<O>, page: PageIndex, holdings: &Holdings) -> bool {
    // SAFETY: a large block starts at the page (this function's parameter), so the page has a record, and that alone is read.
    let run = unsafe { OwnedRun::at(page) };
    shared.pages.is_listed(&run, Some(holdings.large()))
}

/// Publishes what the program holds now in large blocks: what was counted, and a change.
#[cold]
#[inline(never)]
pub(crate) fn publish<O: Os>(own: Own<'_, O>, change_bytes: i64) {
    own.accounts().publish_large(change_bytes, &own.shared().usage);
}

/// Frees the large block that starts at `page`.
///
/// # Safety
/// - `page` starts a large block that no code uses any more.
#[cold]
pub(crate) unsafe fn free<O: Os>(own: Own<'_, O>, page: PageIndex) {
    // SAFETY: the page starts a run in use, so it has a record.
    profiling::forget_large(own, page, unsafe { own.shared().pages.span(page) });
    // SAFETY: no code uses the block any more (this function's contract).
    if unsafe { put_cached(own, page) } {
        return;
    }
    upkeep::tick(own, own.now_ms());
    // SAFETY: the page starts a run in use, so it has a record.
    let n_pages = unsafe { own.shared().pages.span(page) }.n_pages();
    // SAFETY: the page starts a block that no code uses any more (this function's contract).
    let mut run = unsafe { OwnedRun::at(page) };
    let gets_slot = shares_runs(own) && own.cache().note_freed(n_pages);
    if shares_runs(own) && !gets_slot {
        match own.shared().pages.list_freed(run) {
            Ok(()) => {
                own.cache().count_put();
                return publish(own, -run_bytes(n_pages));
            }
            Err(refused) => run = refused,
        }
    }
    // SAFETY: the cache is in a record that is never unmapped.
    let cache = gets_slot.then(|| unsafe { own.cache().permanent() });
    if own.shared().pages.free_or_cache(run, cache) {
        let _ = own.accounts().add_large(-run_bytes(n_pages));
    } else {
        own.accounts().count_large_free();
        publish(own, -run_bytes(n_pages));
    }
}

/// Frees the large block at `page` into the large-run cache; `false` if there is no room for it. The change is published to the sum of live bytes
/// only with the next one that has to be: if the next block has this length, the two cancel out.
///
/// # Safety
/// - As for [`free`].
#[inline(always)]
unsafe fn put_cached<O: Os>(own: Own<'_, O>, page: PageIndex) -> bool {
    // SAFETY: the cache is this thread's, and no code uses the block any more (this function's contract).
    let Some(n_pages) = (unsafe { own.cache().put(own.layout(), page) }) else { return false };
    let _ = own.accounts().add_large(-run_bytes(n_pages));
    look_if_due(own);
    true
}

/// Does periodic work on behalf of a free that does not need the page heap: now and then, purges what has expired.
#[inline(always)]
pub(crate) fn look_if_due<O: Os>(own: Own<'_, O>) {
    let now_ms = own.now_ms();
    if let Some(decay_ms) = own.shared().settings().decay_ms() {
        if own.ticks().begin_look(now_ms, check_interval(Millis(decay_ms)).0) {
            look(own, now_ms);
        }
    }
}

#[cold]
#[inline(never)]
fn look<O: Os>(own: Own<'_, O>, now_ms: u32) {
    upkeep::tick(own, now_ms);
    own.shared().pages.purge_some_due();
}

/// Bytes of the large block that starts at `page`.
///
/// # Safety
/// - `page` starts a large block that the program holds.
#[must_use]
pub(crate) unsafe fn bytes<O: Os>(own: Own<'_, O>, page: PageIndex) -> usize {
    // SAFETY: the page starts a run in use, so it has a record.
    unsafe { own.shared().pages.span(page) }.n_pages().to_bytes().0
}

/// Moves the contents of one large block to another, unless that is shorter, by moving the memory behind them, and frees the first.
///
/// # Safety
/// - Both pages start large blocks that the program holds; no code uses what [`Moved`] says is freed.
pub(crate) unsafe fn relocate<O: Os>(own: Own<'_, O>, from: PageIndex, to: PageIndex) -> Moved {
    // SAFETY: both start large blocks (this function's contract).
    let [from_bytes, to_bytes] = [from, to].map(|page| unsafe { bytes(own, page) } as i64);
    // SAFETY: both start large blocks that are the caller's (this function's contract).
    let [from_run, to_run] = [from, to].map(|page| unsafe { OwnedRun::at(page) });
    // SAFETY: both pages start runs in use, so they have records.
    let records = [from, to].map(|page| unsafe { own.shared().pages.span(page) });
    let samples = [(from, records[0]), (to, records[1])].map(|(page, record)| profiling::take_large(own, page, record));
    let moved = own.shared().pages.relocate(from_run, to_run);
    if moved != Moved::Yes {
        profiling::put_large_back(own, from, records[0], samples[0]);
    }
    if moved != Moved::TargetLost {
        profiling::put_large_back(own, to, records[1], samples[1]);
    }
    let freed_bytes = match moved {
        Moved::No => return moved,
        Moved::Yes => from_bytes,
        Moved::TargetLost => to_bytes,
    };
    own.accounts().count_large_free();
    publish(own, -freed_bytes);
    moved
}

/// Whether a large block that is to hold `size` bytes is better copied to memory that is in the process than made longer where it is.
///
/// # Safety
/// - `page` starts a large block that the program holds.
pub(crate) unsafe fn prefers_dirty<O: Os>(own: Own<'_, O>, page: PageIndex, size: usize) -> bool {
    // SAFETY: the page starts a large block, and its run is the caller's (this function's contract).
    let run = unsafe { OwnedRun::at(page) };
    own.shared().pages.prefers_dirty(&run, Bytes(size))
}

/// Makes a large block hold `size` bytes where it is; `false` if it cannot grow there, or would no longer be a large block.
///
/// # Safety
/// - `page` starts a large block that the program holds.
pub(crate) unsafe fn resize<O: Os>(own: Own<'_, O>, page: PageIndex, size: usize) -> bool {
    let pages = &own.shared().pages;
    // SAFETY: the page starts a large block, and its run is the caller's (this function's contract).
    let run = unsafe { OwnedRun::at(page) };
    // SAFETY: the page starts a run in use, so it has a record.
    let record = unsafe { own.shared().pages.span(page) };
    let held = record.n_pages();
    let Some(n_pages @ Pages(1..)) = Bytes(size).to_pages() else { return false };
    if n_pages > held {
        // A block of an explicit heap grows only behind that heap's gate, where its limit is checked.
        let may_grow = pages.is_listed(&run, own.holdings().map(Holdings::large));
        if !(may_grow && own.has_room(n_pages - held) && pages.extend(&run, n_pages)) {
            return false;
        }
        // It may end with a huge page now.
        if record.n_pages() > n_pages && !own.has_room(Pages::ZERO) {
            pages.shrink(&run, n_pages);
        }
    }
    if n_pages < held && !pages.is_slack(held, n_pages) {
        pages.shrink(&run, n_pages);
    }
    if record.n_pages() != held {
        profiling::forget_large(own, page, record);
        profiling::count_large(own, page, record);
    }
    publish(own, run_bytes(record.n_pages()) - run_bytes(held));
    true
}

const _: () = assert!(crate::size_class::SMALL_MAX < PAGE_BYTES);

#[cfg(test)]
mod tests;
