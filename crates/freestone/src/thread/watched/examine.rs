//! What is wrong with a block of a watched span that a program passes: every crime that its address, its trailer and its canary show.
#![allow(unsafe_code)]
//!
//! A block's trailer says whether the program has it: only who holds a block writes its trailer, and none can be made up without the secret. A
//! span of this heap also says whether the block was ever carved.
//!
//! # Safety
//! A page with an entry of a small span has a record, which is never unmapped, and its pages are mapped. What is read of a block that turns out to be
//! none is its trailer, which is mapped.

use crate::misuse::Misuse;
use crate::shared::Shared;
use crate::size_class::{GRANULE_BYTES, block_at, block_bytes};
use crate::span::blocks;
use crate::span::family::Family;
use crate::span::marked_block::{Kind, MarkedBlock};
use crate::span::single_block::{Whereabouts, is_uncarved, whereabouts};
use crate::span::trailer::{Fields, State, TRAILER_BYTES, Trailer};
use crate::span::{Entry, Layout, OwnedSpan, PageIndex};
use crate::thread::heap::own::Own;
use crate::thread::watched::request::{Claim, Request};
use crate::thread::watched::seat::WatchedHeap;
use freestone_os::Os;

/// A block of a watched span that is out, and whose trailer is whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Examined {
    /// The block.
    pub(crate) block: MarkedBlock,
    /// What its trailer says, and its family.
    pub(crate) fields: Fields,
    /// Its class.
    pub(crate) class: usize,
    /// The entry of its page.
    pub(crate) entry: Entry,
    /// Its span is this heap's.
    pub(crate) is_own: bool,
}

impl Examined {
    /// What to ask for in place of this block.
    pub(crate) fn request(&self, size: usize, align: usize) -> Request {
        Request::new(size, align, self.fields.family().unwrap_or(Family::C))
    }
}

/// The first page of the small span that holds `address`, if its blocks have trailers.
#[inline(never)]
pub(crate) fn watched_span<O: Os>(shared: &Shared<O>, address: usize) -> Option<PageIndex> {
    if !shared.secret.is_drawn() {
        return None;
    }
    let page = shared.pages.view().page_of(address)?;
    // SAFETY: the page has an entry of a small span, so it has a record.
    let first = unsafe { shared.pages.span(page) }.first_page();
    // SAFETY: so has the span's first page.
    unsafe { shared.pages.span(first) }.is_watched.get().then_some(first)
}

/// The block that the program passes, if it is one that it may pass. What is wrong is reported; `None` if the block has to be left alone.
pub(crate) fn examine<O: Os>(
    own: Own<'_, O>,
    (start, entry, class): (*mut u8, Entry, usize),
    page: PageIndex,
    claim: Claim,
) -> Option<Examined> {
    let is_own = entry.generation() == own.generation();
    let whole = own.watch().filter(|_| is_own).and_then(|watch| if_whole_of_any(watch, (page, (start, class)), claim));
    let (block, fields) = if let Some(whole) = whole {
        whole
    } else if is_own {
        examine_own(own, (start, class), claim)?
    } else {
        // SAFETY: the span is there, and its length does not change.
        let span_bytes = unsafe { own.shared().pages.span(page) }.n_pages().to_bytes().0;
        let offset = start.addr() - own.layout().page_start(page).addr();
        if let Err(what) = check_start(class, offset, span_bytes) {
            return refuse(own, what, start);
        }
        examine_trailer(own, (start, class), claim)?
    };
    Some(Examined { block, fields, class, entry, is_own })
}

/// As [`examine`], of an address in a span of `class` of this heap, which is watched.
pub(crate) fn examine_own<O: Os>(
    own: Own<'_, O>,
    (start, class): (*mut u8, usize),
    claim: Claim,
) -> Option<(MarkedBlock, Fields)> {
    let span = span_of(own.layout(), own.lookup().view().page_of(start.addr())?);
    let offset = start.addr() - span.start().addr();
    let index = match check_start(class, offset, span.n_pages().to_bytes().0) {
        Ok(index) => index,
        Err(what) => return refuse(own, what, start),
    };
    let os_page_bytes = own.shared().os().os_page_bytes();
    match whereabouts(&span, index, os_page_bytes) {
        Whereabouts::Out => {}
        Whereabouts::Free => return refuse(own, Misuse::DoubleFree { block_bytes: block_bytes(class) }, start),
        Whereabouts::Uncarved => return refuse(own, Misuse::Foreign, start),
    }
    if index > 0 {
        let left = start.wrapping_sub(block_bytes(class));
        if let Some(what) = left_damage(own, left, class, whereabouts(&span, index - 1, os_page_bytes)) {
            own.report(what, left.addr());
        }
    }
    examine_trailer(own, (start, class), claim)
}

/// The block that starts at an address in a span of `class` of this heap, which is watched, if nothing is wrong with it. `None`:
/// [`examine_own`] finds out. `kind` is that of the blocks of `class`.
#[inline(always)]
pub(crate) fn if_whole(
    watch: &WatchedHeap,
    (page, (start, class)): (PageIndex, (*mut u8, usize)),
    claim: Claim,
    kind: Kind,
) -> Option<(MarkedBlock, Fields)> {
    let (layout, bytes) = (watch.layout(), block_bytes(class));
    let span = span_of(&layout, page);
    let offset = start.addr() - span.start().addr();
    let (_, is_start) = block_at(class, offset);
    // What a block that is not carved says of itself may be from an earlier life of its memory.
    if !is_start || offset + bytes > span.n_pages().to_bytes().0 || is_uncarved(&span, offset, watch.os_page_bytes()) {
        return None;
    }
    // SAFETY: a span of this heap has a block there; only this thread hands it out.
    let left = || unsafe { MarkedBlock::new(start.wrapping_sub(bytes), bytes, watch.secret(), kind) };
    if offset > 0 && !left().is_tail_whole() {
        return None;
    }
    // SAFETY: a block of a watched span starts here.
    let block = unsafe { MarkedBlock::new(start, bytes, watch.secret(), kind) };
    let fields = block.if_whole(claim.family())?;
    fits(fields, claim).then_some((block, fields))
}

/// As [`if_whole`], of which the program does not say the family.
fn if_whole_of_any(
    watch: &WatchedHeap,
    (page, (start, class)): (PageIndex, (*mut u8, usize)),
    claim: Claim,
) -> Option<(MarkedBlock, Fields)> {
    let layout = watch.layout();
    let span = span_of(&layout, page);
    check_start(class, start.addr() - span.start().addr(), span.n_pages().to_bytes().0).ok()?;
    // SAFETY: a block of this heap's span is there, or will be; only its trailer is read, which is mapped.
    let block = unsafe { MarkedBlock::at(start, block_bytes(class), watch.secret()) };
    let State::Live(family) = block.trailer()?.state else { return None };
    let claim = if claim.family() == 0 { claim.with_family(family) } else { claim };
    if_whole(watch, (page, (start, class)), claim, Kind::of(block_bytes(class), watch.secret()))
}

/// Whether the program says nothing of size and alignment that does not fit.
#[inline(always)]
fn fits(fields: Fields, claim: Claim) -> bool {
    claim.size().is_none_or(|claimed| claimed == fields.size())
        && claim.align_log2().is_none_or(|claimed| align_fits(claimed, fields.align_log2()))
}

/// Whether an alignment is the one that was asked for, as far as it is above that of every block.
#[inline(always)]
fn align_fits(claimed_log2: u32, align_log2: u32) -> bool {
    let least = GRANULE_BYTES.ilog2();
    claimed_log2.max(least) == align_log2.max(least)
}

/// The span of this heap that a page of it belongs to.
#[inline(always)]
pub(super) fn span_of(layout: &Layout, page: PageIndex) -> OwnedSpan<'_> {
    // SAFETY: the page has this heap's tag, so it is in a span and has a record.
    let first = unsafe { &*layout.record(page) }.first_page();
    // SAFETY: the span has this heap's tag, so it is this heap's.
    unsafe { OwnedSpan::at(layout, first) }
}

/// Reports what is wrong with an address.
#[cold]
#[inline(never)]
fn refuse<T, O: Os>(own: Own<'_, O>, what: Misuse, start: *mut u8) -> Option<T> {
    own.report(what, start.addr());
    None
}

/// The number of the block that starts at an offset of a span of `class`, or why none does.
#[inline(always)]
fn check_start(class: usize, offset: usize, span_bytes: usize) -> Result<usize, Misuse> {
    let (index, is_start) = block_at(class, offset);
    let block_bytes = block_bytes(class);
    if (index + 1) * block_bytes > span_bytes {
        return Err(Misuse::Foreign);
    }
    if is_start { Ok(index) } else { Err(Misuse::Interior { block_bytes, offset: offset - index * block_bytes }) }
}

/// The block of `class` that starts at an address in a watched span, if its trailer says that it is out. What is wrong is reported.
fn examine_trailer<O: Os>(
    own: Own<'_, O>,
    (start, class): (*mut u8, usize),
    claim: Claim,
) -> Option<(MarkedBlock, Fields)> {
    let block_bytes = block_bytes(class);
    // SAFETY: a block of a watched span starts here.
    let block = unsafe { MarkedBlock::at(start, block_bytes, &own.shared().secret) };
    let (trailer, family) = match block.trailer() {
        Some(trailer @ Trailer { state: State::Live(family), .. }) => (trailer, family),
        other => return refuse(own, not_live(&block, other), start),
    };
    if let Some(what) = claim_mismatch(family, (trailer.size, trailer.align_log2), claim) {
        own.report(what, start.addr());
    }
    if let Some(offset) = block.canary_damage(trailer.size) {
        own.report(Misuse::Overflow { block_bytes, size: Some(trailer.size), offset }, start.addr());
        // A crime is reported once.
        block.write_canary(trailer.size);
    }
    Some((block, block.fields_of(trailer)))
}

/// What is wrong with a block that has this trailer, which does not say that the program has it.
#[cold]
fn not_live(block: &MarkedBlock, trailer: Option<Trailer>) -> Misuse {
    let block_bytes = block.capacity() + TRAILER_BYTES;
    match trailer {
        Some(Trailer { state: State::Freed, .. }) => Misuse::DoubleFree { block_bytes },
        Some(_) => Misuse::Foreign,
        None => Misuse::Overflow { block_bytes, size: None, offset: block.capacity() },
    }
}

/// What was written to the last bytes of the block of `class` at `left`, in a span of this heap.
fn left_damage<O: Os>(own: Own<'_, O>, left: *mut u8, class: usize, place: Whereabouts) -> Option<Misuse> {
    let block_bytes = block_bytes(class);
    // SAFETY: a span of this heap has a block there; only this thread hands it out, and no other thread writes what is read of it.
    let block = unsafe { MarkedBlock::at(left, block_bytes, &own.shared().secret) };
    let offset = block.capacity();
    match (place, block.trailer()) {
        (Whereabouts::Out, None) => Some(Misuse::Overflow { block_bytes, size: None, offset }),
        (Whereabouts::Out, Some(trailer)) => {
            let offset = block.late_damage(&trailer)?;
            Some(Misuse::Overflow { block_bytes, size: Some(trailer.size), offset })
        }
        (Whereabouts::Free, None) if !block.is_tail_purged(own.shared().os().os_page_bytes()) => {
            // A crime is reported once, and the block is this thread's.
            block.renew(own.shared().os().os_page_bytes());
            Some(Misuse::WriteAfterFree { block_bytes, size: None, offset })
        }
        _ => None,
    }
}

/// What the program says that does not fit a block of these functions, of a size, and of an alignment, of which this is the logarithm.
#[inline(never)]
pub(crate) fn claim_mismatch(family: Family, (size, align_log2): (usize, u32), claim: Claim) -> Option<Misuse> {
    if claim.family() != 0 && claim.family() != family as u32 {
        return Some(Misuse::WrongFamily { size });
    }
    if let Some(claimed) = claim.size().filter(|&claimed| claimed != size) {
        return Some(Misuse::WrongSize { size, claimed });
    }
    let claimed = claim.align_log2().filter(|&claimed| !align_fits(claimed, align_log2))?;
    Some(Misuse::WrongAlign { size, align: 1 << align_log2, claimed: 1 << claimed })
}

/// What a block's trailer is to a thread that has only an address.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// The block's span is not watched: it has none.
    None,
    /// It says this.
    Whole(Trailer),
    /// It is zero: no block was carved here, or its OS page was purged.
    Blank,
    /// It was written over.
    Damaged,
}

/// The start and the trailer of the block of `class` that holds `address`, which lies in `page` of a small span; `None` behind the span's last block.
pub(crate) fn trailer_at<O: Os>(
    shared: &Shared<O>,
    page: PageIndex,
    class: usize,
    address: usize,
) -> Option<(usize, Seen)> {
    // SAFETY: the page has an entry of a small span, so it has a record, whose `first` is atomic.
    let first = unsafe { shared.pages.span(page) }.first_page();
    // SAFETY: so has the span's first page; what is read of it does not change while a block of the span is out.
    let span = unsafe { shared.pages.span(first) };
    let (bytes, span_start) = (block_bytes(class), shared.pages.layout().page_start(first));
    let (index, _) = block_at(class, address.wrapping_sub(span_start.addr()));
    if index >= blocks::n_blocks(span) {
        return None;
    }
    let start = span_start.wrapping_add(index * bytes);
    if !span.is_watched.get() {
        return Some((start.addr(), Seen::None));
    }
    // SAFETY: a block of a watched span is there, or will be, and all of the span is mapped; only the trailer is read, which is atomic.
    let block = unsafe { MarkedBlock::at(start, bytes, &shared.secret) };
    let seen = match block.trailer() {
        Some(trailer) => Seen::Whole(trailer),
        None if block.is_blank() => Seen::Blank,
        None => Seen::Damaged,
    };
    Some((start.addr(), seen))
}

#[cfg(test)]
mod tests;
