//! What an address is: a small block, a large one, or wrong.
//!
//! ```text
//!  address ─▶ outside the address range ─▶ in the slots: guarded; among those of no bytes: empty; else wrong
//!         ├─▶ entry 0 ─▶ wrong
//!         ├─▶ entry with a size class, aligned to the granule ─▶ small
//!         └─▶ entry LARGE, at its page's start ─▶ large
//! ```

use crate::misuse::Misuse;
use crate::shared::Shared;
use crate::size_class::{GRANULE_BYTES, block_at, block_bytes};
use crate::span::{Entry, Kind, PageIndex};
use core::ptr;
use freestone_os::Os;

/// What an address is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// In a small span, and a multiple of the granule. Its span checks whether a block starts there, when the block goes back.
    Small {
        /// Its page map entry.
        entry: Entry,
        /// Its class.
        class: usize,
    },
    /// The start of a large block.
    Large {
        /// Its first page.
        page: PageIndex,
    },
    /// In the slots of guarded blocks, which check it.
    Guarded,
    /// Among the addresses of blocks of no bytes, which check it.
    Empty,
    /// None of these.
    Wrong(Misuse),
}

/// Finds out what an address is.
#[must_use]
pub(crate) fn locate<O: Os>(shared: &Shared<O>, block: *mut u8) -> Place {
    let (layout, view) = (shared.pages.layout(), shared.pages.view());
    let (Some(page), Some(entry)) = (view.page_of(block.addr()), view.entry(block.addr())) else {
        return beside_range(shared, block.addr());
    };
    match entry.class() {
        Some(class) if block.addr() % GRANULE_BYTES == 0 => return Place::Small { entry, class },
        Some(class) => return Place::Wrong(misaligned(shared, page, block.addr(), class)),
        None => {}
    }
    if entry == Entry::LARGE && ptr::eq(layout.page_start(page), block) {
        return Place::Large { page };
    }
    Place::Wrong(misuse_inside(shared, page, block).unwrap_or(Misuse::Foreign))
}

/// What an address outside the address range is.
fn beside_range<O: Os>(shared: &Shared<O>, address: usize) -> Place {
    if shared.guarded.contains(address) {
        Place::Guarded
    } else if shared.empty.contains(address) {
        Place::Empty
    } else {
        Place::Wrong(Misuse::Foreign)
    }
}

/// What is wrong with an address that is no multiple of the granule, and so inside a block: it lies in this page of a small span of `class`.
#[cold]
fn misaligned<O: Os>(shared: &Shared<O>, page: PageIndex, address: usize, class: usize) -> Misuse {
    let first = shared.pages.inspect(|state| state.runs.record(page).first_page());
    let offset = address - shared.pages.layout().page_start(first).addr();
    let block_bytes = block_bytes(class);
    Misuse::Interior { block_bytes, offset: offset - block_at(class, offset).0 * block_bytes }
}

/// What is wrong with an address that lies inside a large block, or starts a freed one: searches backwards for the start. Only wrong programs pay for
/// this.
#[cold]
fn misuse_inside<O: Os>(shared: &Shared<O>, page: PageIndex, block: *mut u8) -> Option<Misuse> {
    shared.pages.inspect(|state| {
        let runs = &state.runs;
        if page >= runs.high_water() {
            return None;
        }
        let start = (1..=page.0).rev().map(PageIndex).find(|&at| runs.entry(at) != Entry::NONE)?;
        let record = runs.record(start);
        let is_inside = matches!(record.kind.get(), Kind::Large | Kind::Quarantined)
            && record.first_page() == start
            && page - start < record.n_pages();
        let block_bytes = record.n_pages().to_bytes().0;
        let offset = block.addr() - runs.layout().page_start(start).addr();
        match runs.entry(start) {
            Entry::CACHED if is_inside && offset == 0 => Some(Misuse::DoubleFree { block_bytes }),
            Entry::LARGE if is_inside => Some(Misuse::Interior { block_bytes, offset }),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests;
