//! Refilling an empty bin: where blocks come from.
//!
//! In this order, each cheaper than the next:
//! 1. the inbox: what other threads handed over;
//! 2. the current span: its free blocks, then one OS page carved from its untouched end, or several if they have memory;
//! 3. the fullest other partial span, so that the emptier ones may become empty;
//! 4. an abandoned span of the class, or orphaned blocks; not for an explicit heap, whose deletion frees all its blocks;
//! 5. a new span.
//!
//! Where there are many threads ([`sharing`]), 4 is blocks of a span without an owner, which stays without one, and a span is left to all threads once a batch was
//! taken, if the blocks are long or the thread holds little.
//!
//! A batch is half the bin's capacity: its number is known before the bitmap is walked, and it is linked in one pass. When memory runs out, refilling
//! returns null and leaves the bins as they were.

use crate::misuse::Misuse;
use crate::page::Prefers;
use crate::size_class::{block_bytes, span_pages};
use crate::thread::free_block::FreeBatch;
use crate::thread::heap::own::Own;
use crate::thread::orphaned::Effort;
use crate::thread::span_owner::take_unowned;
use crate::thread::spans::OwnedSpans;
use crate::thread::{capacity, drain, flush, orphaned, profiling, route, sampling, sharing, upkeep};
use core::{mem, ptr};
use freestone_os::Os;

/// Bytes of blocks that a batch out of a span of all threads may always have: several lines of a processor's cache, which threads that write to blocks in turn would
/// take from each other.
const FEW_BYTES: u32 = 256;

/// In a process of at most this many heaps, spans that are probably little used get clean memory.
const FEW_HEAPS: u32 = 4;

/// Fills an empty bin, or one that is found to be damaged, and takes a block from it; null when memory runs out, or when the first block is chosen for a
/// sample. Returns also whether all of the block but its first word reads as zero, which is known of new memory.
#[cold]
#[must_use]
pub(crate) fn refill<O: Os>(own: Own<'_, O>, class: usize) -> (*mut u8, bool) {
    if profiling::finds_chosen(own, class) {
        return (ptr::null_mut(), false);
    }
    if own.bins().abandon_if_damaged(class) {
        own.report(Misuse::link_written(block_bytes(class)), 0);
    }
    drain::drain_some(own);
    if !own.bins().is_empty(class) {
        return (own.bins().pop(class), false);
    }
    let zero = bring_batch(own, class);
    let block = own.bins().pop(class);
    (block, block == zero)
}

/// How many blocks an empty bin may hold. One that was flushed since it was last empty gets room for what was flushed: its capacity rises by that, and what
/// its share lacks it borrows.
fn learn_capacity<O: Os>(own: Own<'_, O>, class: usize) -> u32 {
    let (bins, flushed) = (own.bins(), own.bins().restart_flushed(class));
    let mut capacity = flush::own_capacity(own, class);
    if flushed > 0 {
        let settings = own.shared().settings();
        let grows = flushed.min(capacity::growth(bins.capacities(), settings.bin_max(1)));
        capacity = capacity::learned(capacity, grows, settings.bin_max(block_bytes(class)));
        bins.set_capacity(class, capacity);
    }
    let now = flush::bin_capacity(own, class);
    let lacks = capacity::learned(now, flushed, capacity) - now;
    if lacks == 0 {
        return now;
    }
    let lent = own.shared().usage.room().lend(class, bins.borrowed(class), lacks);
    bins.set_borrowed(class, bins.borrowed(class) + lent);
    now + lent
}

/// Brings a batch of blocks into a bin, if there is memory for one. Returns its first block if that reads as zero but for link and mark; else null.
fn bring_batch<O: Os>(own: Own<'_, O>, class: usize) -> *mut u8 {
    let (capacity, leaves) = (learn_capacity(own, class), sharing::leaves_spans(own, class));
    let borrowed = own.bins().borrowed(class);
    let most = if leaves { few(own, class) } else { u32::MAX };
    let asked = (capacity / 2).min(most).max(1);
    let Some(batch) = take_batch(own, class, asked, leaves) else { return ptr::null_mut() };
    let (zero, n) = (batch.first_if_zero(), batch.len());
    own.burst().begin(i64::from(n) * block_bytes(class) as i64);
    // A new span runs the decay tick, which drains the inbox into the bins: what it put into this one stays behind the batch. It may also take back what was borrowed.
    own.bins().put_batch(batch);
    sampling::count_batch(own, class, n);
    let capacity = capacity.saturating_sub(borrowed - own.bins().borrowed(class));
    let lacks = i64::from(capacity) - own.bins().len(class);
    profiling::grant(own, class, lacks.max(i64::from(capacity / 2)));
    sampling::settle(own, class);
    zero
}

/// How many blocks of a span of all threads to bring into a bin at most: half as many as the thread holds, so that what it does not use stays with the others, or
/// [`FEW_BYTES`] if that is more.
fn few<O: Os>(own: Own<'_, O>, class: usize) -> u32 {
    let half = (own.bins().live_beside(class, 0).max(0) / 2) as u32;
    half.max(FEW_BYTES / block_bytes(class) as u32)
}

/// Up to `n` blocks of a class, from the first source that has any. `leaves`: the span is left to all threads afterwards, if it is the heap's.
fn take_batch<O: Os>(own: Own<'_, O>, class: usize, n: u32, leaves: bool) -> Option<FreeBatch> {
    loop {
        let taken = own.spans().of(class).take(&own.shared().pages, n, leaves, own.bins().key());
        if let Some((batch, less_free)) = taken {
            own.accounts().add_free(class, -less_free);
            if leaves {
                own.spans().leave_one(own.shared(), class);
            }
            return Some(batch);
        }
        if let Err(orphaned) = find_span(own, class, n) {
            return orphaned;
        }
    }
}

/// Makes a span that has a block to give the current one of a class.
///
/// # Errors
/// Up to `n` orphaned blocks, which were found before a new span or for lack of memory for one; `None` when memory runs out.
#[cold]
#[inline(never)]
fn find_span<O: Os>(own: Own<'_, O>, class: usize, n: u32) -> Result<(), Option<FreeBatch>> {
    own.publish_taken(class, own.bins().live_beside(class, 0));
    let shares = sharing::shares_spans(own);
    if !own.spans().of(class).use_fullest_partial(own.layout()) && (shares || !adopt(own, class)) {
        let takes = shares && (!sharing::seems_to_need_own_span(own, class) || upkeep::tick(own, own.now_ms()));
        let shared = if takes { take_unowned(own.shared(), class, n, own.bins().key()) } else { None };
        if let Some(batch) = shared.or_else(|| orphaned::take(own, class, n, Effort::LITTLE)) {
            return Err(Some(batch));
        }
        if !use_new_span(own, class) {
            return Err(orphaned::take(own, class, n, Effort::ALL));
        }
    }
    // The span may be beyond the reach that this heap's view had.
    own.renew_view();
    Ok(())
}

/// Makes an abandoned span the current one of a class; `false` if there is none, or this is an explicit heap.
pub(crate) fn adopt<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    own.holdings().is_none() && own.spans().adopt(own.shared(), class, own.heap().mailbox(), own.generation())
}

/// Makes a new span from the page heap the current one of a class; `false` when memory runs out. On this rare path everything buffered
/// for other owners is handed over, and live bytes are published.
pub(crate) fn use_new_span<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    // What is idle in the bins of a process in which no memory ever became dirty is little. A small program does without the clock, whose code would be resident.
    if own.shared().pages.was_ever_dirty() {
        upkeep::tick(own, own.now_ms());
    }
    route::send_all(own);
    own.publish_live(class);
    let (mut pages, is_watched) = (OwnedSpans::new_span_pages(own.shared(), class), own.watch().is_some());
    // An explicit heap's limit bounds each of its spans, and the level `full` has guards between those of watched heaps.
    let owned = if is_watched || own.holdings().is_some() { 0 } else { own.spans().n_pages() };
    let prefers = preference(own, class);
    let next = |pages| own.ahead().next(&own.shared().pages, pages, owned, prefers);
    let run = loop {
        if let Some(run) = own.has_room(pages).then(|| next(pages)).flatten() {
            break run;
        }
        // Where the option `span_size` asks for more than there is room for, a span of the class's own length will do.
        if mem::replace(&mut pages, span_pages(class)) == span_pages(class) {
            return false;
        }
    };
    own.spans().begin(own.shared(), class, run, (own.heap().mailbox(), own.generation()), is_watched);
    true
}

/// Which memory a new span of a class should have. A class of which the heap has never allocated a block may never need more than a few: most size
/// classes of a small program do not. In dirty memory its span would keep all 64 KiB, in clean memory the OS pages that were carved. Where there are
/// many heaps, each takes what others have left: their first spans together would be much clean memory.
fn preference<O: Os>(own: Own<'_, O>, class: usize) -> Prefers {
    let is_new = own.bins().allocs(class) == 0;
    if is_new && own.shared().usage.n_heaps() <= FEW_HEAPS { Prefers::Clean } else { Prefers::Dirty }
}

#[cfg(test)]
mod tests;
