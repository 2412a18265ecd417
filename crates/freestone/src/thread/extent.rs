//! Which block holds an address, and which of its bytes are the program's: for the checks of memory functions.
//!
//! ```text
//!  address ─▶ page map entry ─┬─ size class ─▶ span's first page ─▶ block by division ─▶ its trailer: size, freed or not
//!                             ├─ large ──────▶ record of the first page: size
//!                             └─ none ───────▶ inside a large block? the hint, else a search backwards for its first page
//! ```
//!
//! Takes no lock and writes nothing but hints, so that a signal handler may ask, and code that holds a lock of the heap.
//!
//! Threads: any thread asks about any address. If the address is in a block that the caller may use, no other thread writes what is read here; if it is
//! not, what is read may belong to a block that another thread is allocating, and the answer is about that block.

use crate::shared::Shared;
use crate::size_class::block_bytes;
use crate::span::trailer::{State, TRAILER_BYTES, Trailer};
use crate::span::{Entry, PageIndex, View};
use crate::thread::watched::examine::{Seen, trailer_at};
use crate::thread::watched::large_marks;
use freestone_base::sync::{AtomicU32, Ordering};
use freestone_os::Os;

/// A block, or what was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Its first byte.
    pub(crate) start: usize,
    /// Bytes of it that the program may use. Of a freed block, those that it might use; 0 if it was never allocated.
    pub(crate) size: usize,
    /// What it is.
    pub(crate) state: BlockState,
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    /// Allocated.
    Live,
    /// Freed, or never allocated.
    Free,
    /// Its trailer was written over, so the rest of it is not known.
    Damaged,
}

/// Where large blocks were found lately, by the page that was asked for: hints, each of which is verified before it is believed.
#[derive(Debug)]
pub(crate) struct LargeHints([AtomicU32; N_HINTS]);

/// A power of two.
const N_HINTS: usize = 256;

/// A search goes back this many pages: 1 GiB. The rest of longer blocks is found by no search.
const SEARCH_PAGES: u32 = 1 << 14;

impl LargeHints {
    /// None.
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; N_HINTS])
    }

    /// The hint for a page.
    fn at(&self, page: PageIndex) -> &AtomicU32 {
        &self.0[page.0 as usize % N_HINTS]
    }
}

/// The block that holds `address`; `None` if no block does.
pub(crate) fn find<O: Os>(shared: &Shared<O>, hints: &LargeHints, address: usize) -> Option<Extent> {
    let view = shared.pages.view();
    let (page, entry) = (view.page_of(address)?, view.entry(address)?);
    match entry.class() {
        Some(class) => find_small(shared, address, page, class),
        None => find_large(shared, &view, (hints, address), (page, entry)),
    }
}

/// The block of `class` that holds `address`, in a span that `page` belongs to.
fn find_small<O: Os>(shared: &Shared<O>, address: usize, page: PageIndex, class: usize) -> Option<Extent> {
    let (start, trailer) = trailer_at(shared, page, class, address)?;
    let (size, state) = match trailer {
        Seen::None => (block_bytes(class), BlockState::Live),
        Seen::Whole(Trailer { state: State::Live(_), size, .. }) => (size, BlockState::Live),
        Seen::Whole(Trailer { size, .. }) => (size, BlockState::Free),
        Seen::Blank => (0, BlockState::Free),
        Seen::Damaged => (block_bytes(class) - TRAILER_BYTES, BlockState::Damaged),
    };
    Some(Extent { start, size, state })
}

/// The large block that holds `address`, which is in `page`, a page with an entry that has no class.
fn find_large<O: Os>(
    shared: &Shared<O>,
    view: &View,
    (hints, address): (&LargeHints, usize),
    (page, entry): (PageIndex, Entry),
) -> Option<Extent> {
    let first = if entry == Entry::NONE { first_of_large(shared, view, hints, page)? } else { page };
    let start = view.page_start(first).addr();
    let (run_bytes, size) = large_marks::extent(shared, first);
    let state = if view.entry(start) == Some(Entry::CACHED) { BlockState::Free } else { BlockState::Live };
    (address - start < run_bytes).then_some(Extent { start, size, state })
}

/// The first page of the large block that `page` is inside of.
fn first_of_large<O: Os>(shared: &Shared<O>, view: &View, hints: &LargeHints, page: PageIndex) -> Option<PageIndex> {
    let hint = PageIndex(hints.at(page).load(Ordering::Relaxed));
    if hint < page && is_inside(shared, view, hint, page) {
        return Some(hint);
    }
    let last = page.0.saturating_sub(SEARCH_PAGES).max(1);
    let entry = |at: u32| view.entry(view.page_start(PageIndex(at)).addr()).unwrap_or(Entry::NONE);
    let first = (last..page.0).rev().find(|&at| entry(at) != Entry::NONE).map(PageIndex)?;
    if !is_inside(shared, view, first, page) {
        return None;
    }
    hints.at(page).store(first.0, Ordering::Relaxed);
    Some(first)
}

/// Whether a large block starts at `first` and reaches `page`, which is behind it.
fn is_inside<O: Os>(shared: &Shared<O>, view: &View, first: PageIndex, page: PageIndex) -> bool {
    if !matches!(view.entry(view.page_start(first).addr()), Some(Entry::LARGE | Entry::CACHED)) {
        return false;
    }
    (page - first).to_bytes().0 < large_marks::extent(shared, first).0
}

#[cfg(test)]
mod tests;
