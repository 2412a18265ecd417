//! What is wrong with a block of a watched span that a program passes: every crime that its address, its trailer and its canary show.
#![allow(unsafe_code)]
//!
//! A span of this heap is examined exactly: its bitmap says whether the block is out. Of another heap's span only the block's trailer is read,
//! which says the same unless it was written over.
//!
//! # Safety
//! A page with an entry of a small span has a record, which is never unmapped, and its pages are mapped. What is read of a block that turns out to be
//! none is its trailer, which is mapped.

use crate::misuse::Misuse;
use crate::shared::Shared;
use crate::size_class::{block_at, block_bytes};
use crate::span::single_block::{Whereabouts, whereabouts};
use crate::span::trailer::{Family, Marked, State, Trailer};
use crate::span::{Entry, OwnedSpan, PageIndex, blocks};
use crate::thread::heap::own::Own;
use crate::thread::watched::request::{Claim, Request};
use freestone_os::Os;

/// A block of a watched span that is out, and whose trailer is whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Examined {
    /// The block.
    pub(crate) block: Marked,
    /// What its trailer says.
    pub(crate) trailer: Trailer,
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
        let family = match self.trailer.state {
            State::Live(family) => family,
            State::Fresh | State::Freed => Family::C,
        };
        Request::new(size, align, family)
    }
}

/// The first page of the small span that holds `address`, if its blocks have trailers.
#[inline]
pub(crate) fn watched_span<O: Os>(shared: &Shared<O>, address: usize) -> Option<PageIndex> {
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
    let (block, trailer) = match find(own, (start, class), page, is_own) {
        Ok(found) => found,
        Err(what) => {
            own.report(what, start.addr());
            return None;
        }
    };
    let examined = Examined { block, trailer, class, entry, is_own };
    if let Some(what) = claim_damage(&examined, claim) {
        own.report(what, start.addr());
    }
    if let Some(what) = canary_damage(&examined) {
        own.report(what, start.addr());
        // A crime is reported once.
        block.write_canary(trailer.size);
    }
    Some(examined)
}

/// The block that starts at an address, which is out of its span and has a trailer; or why there is none.
fn find<O: Os>(
    own: Own<'_, O>,
    (start, class): (*mut u8, usize),
    page: PageIndex,
    is_own: bool,
) -> Result<(Marked, Trailer), Misuse> {
    let (layout, shared) = (own.layout(), own.shared());
    let bytes = block_bytes(class);
    let span_start = layout.page_start(page);
    let (index, is_start) = block_at(class, start.addr() - span_start.addr());
    // SAFETY: the span is there, and its length does not change.
    if index >= blocks::n_blocks(unsafe { shared.pages.span(page) }) {
        return Err(Misuse::Foreign);
    }
    if !is_start {
        return Err(Misuse::Interior { block_bytes: bytes, offset: start.addr() - span_start.addr() - index * bytes });
    }
    if is_own {
        let os_page_bytes = shared.os().os_page_bytes();
        // SAFETY: the page has this heap's tag, so the small span is this heap's.
        let span = unsafe { OwnedSpan::at(layout, page) };
        match whereabouts(&span, index, os_page_bytes) {
            Whereabouts::Free => return Err(Misuse::DoubleFree { block_bytes: bytes }),
            Whereabouts::Uncarved => return Err(Misuse::Foreign),
            Whereabouts::Out => {}
        }
        if index > 0 {
            let left = span_start.wrapping_add((index - 1) * bytes);
            if whereabouts(&span, index - 1, os_page_bytes) == Whereabouts::Out {
                look_left(own, left, bytes);
            }
        }
    }
    // SAFETY: a block of a watched span starts here.
    let block = unsafe { Marked::at(start, bytes, &shared.secret) };
    match block.trailer() {
        Some(trailer @ Trailer { state: State::Live(_), .. }) => Ok((block, trailer)),
        Some(Trailer { state: State::Freed, .. }) => Err(Misuse::DoubleFree { block_bytes: bytes }),
        Some(Trailer { state: State::Fresh, .. }) => Err(Misuse::Foreign),
        None => Err(Misuse::Overflow { block_bytes: bytes, size: None, offset: block.capacity() }),
    }
}

/// Reports what was written behind the end of the block at `left`, which is out of a span of this heap.
fn look_left<O: Os>(own: Own<'_, O>, left: *mut u8, block_bytes: usize) {
    // SAFETY: a block of a span of this heap is there; only this thread hands it out, and what is read of it nobody else writes.
    let block = unsafe { Marked::at(left, block_bytes, &own.shared().secret) };
    let what = match block.trailer() {
        None => Misuse::Overflow { block_bytes, size: None, offset: block.capacity() },
        Some(Trailer { state: State::Fresh, .. }) => return,
        Some(Trailer { size, .. }) => match block.late_damage(size) {
            Some(offset) => Misuse::Overflow { block_bytes, size: Some(size), offset },
            None => return,
        },
    };
    own.report(what, left.addr());
}

/// What the program says of a block that is not so.
fn claim_damage(examined: &Examined, claim: Claim) -> Option<Misuse> {
    let Trailer { state, size, align_log2 } = examined.trailer;
    claim_mismatch(state, (size, 1 << align_log2), claim)
}

/// What the program says that does not fit a block of a state, a size and an alignment.
#[inline]
pub(crate) fn claim_mismatch(state: State, (size, align): (usize, usize), claim: Claim) -> Option<Misuse> {
    if claim.family().is_some_and(|family| state != State::Live(family)) {
        return Some(Misuse::WrongFamily { size });
    }
    if let Some(claimed) = claim.size().filter(|&claimed| claimed != size) {
        return Some(Misuse::WrongSize { size, claimed });
    }
    let least = crate::size_class::GRANULE_BYTES;
    let claimed = claim.align().filter(|&claimed| claimed.max(least) != align.max(least))?;
    Some(Misuse::WrongAlign { size, align, claimed })
}

/// What was written behind the end of a block.
#[inline]
fn canary_damage(examined: &Examined) -> Option<Misuse> {
    let size = examined.trailer.size;
    let offset = examined.block.canary_damage(size)?;
    Some(Misuse::Overflow { block_bytes: block_bytes(examined.class), size: Some(size), offset })
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
    let block = unsafe { Marked::at(start, bytes, &shared.secret) };
    let seen = match block.trailer() {
        Some(trailer) => Seen::Whole(trailer),
        None if block.is_blank() => Seen::Blank,
        None => Seen::Damaged,
    };
    Some((start.addr(), seen))
}
