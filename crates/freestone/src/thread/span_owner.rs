//! Who owns the span of a block, and what becomes of blocks whose spans no thread owns.
#![allow(unsafe_code)]
//!
//! Threads: any.
//!
//! # Safety
//! `Span::owner` of a small span is null or the mailbox of a thread heap, whose record is never unmapped.

use crate::central::FreeOutcome;
use crate::shared::Shared;
use crate::span::PageIndex;
use crate::span::blocks::Refused;
use crate::span::free_node::{self, END_OF_BIN};
use crate::thread::free_block::{FreeBatch, FreeBlock};
use crate::thread::mailbox::Mailbox;
use core::ptr::{self, NonNull};
use freestone_base::inbox::LinkKey;
use freestone_base::sync::Ordering;
use freestone_os::Os;

/// The mailbox of the heap that owns a span. The heap may have ended since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner(NonNull<Mailbox>);

impl Owner {
    /// The mailbox.
    #[inline]
    pub(crate) fn mailbox(&self) -> &Mailbox {
        // SAFETY: it is in a heap's record, which is never unmapped.
        unsafe { self.0.as_ref() }
    }

    /// Whether this is the heap with that mailbox.
    pub(crate) fn is(&self, mailbox: &Mailbox) -> bool {
        ptr::eq(self.0.as_ptr(), mailbox)
    }

    /// The owner with this mailbox.
    #[cfg(test)]
    pub(crate) fn of(mailbox: &'static Mailbox) -> Self {
        Self(NonNull::from(mailbox))
    }
}

/// The owner of the small span that a block is in, and the span's first page. `None`: the span is abandoned.
pub(crate) fn owner_of<O: Os>(shared: &Shared<O>, block: &FreeBlock) -> (PageIndex, Option<Owner>) {
    let page = shared.pages.view().page_of(block.address()).unwrap_or_default();
    // SAFETY: the block is out of its span, so its page is in use and has a record; `first` is right in all pages of a small span.
    let first = unsafe { shared.pages.span(page) }.first_page();
    (first, owner_of_span(shared, first))
}

/// The owner of the small span that starts at `page`, whose block the caller has.
pub(crate) fn owner_of_span<O: Os>(shared: &Shared<O>, page: PageIndex) -> Option<Owner> {
    // SAFETY: a block of the span is out, so the span is there and has a record.
    let owner = unsafe { shared.pages.span(page) }.owner.load(Ordering::Acquire);
    NonNull::new(owner.cast()).map(Owner)
}

/// Gives a block back to its span, which starts at `page`, if that has no owner.
///
/// # Errors
/// The block, if another heap has adopted the span meanwhile.
pub(crate) fn free_abandoned<O: Os>(
    shared: &Shared<O>,
    page: PageIndex,
    block: FreeBlock,
) -> Result<Option<Refused>, FreeBlock> {
    // SAFETY: the page map says that the block lies in a small span of its class, which starts at `page`; and the block is ours to give.
    match unsafe { shared.central.free(&shared.pages, &shared.usage, page, block.class(), block.node()) } {
        FreeOutcome::Freed => Ok(None),
        FreeOutcome::Refused(why) => Ok(Some(why)),
        FreeOutcome::Adopted => Err(block),
    }
}

/// Keeps a block of an orphaned heap, to be handed out again. `key` is that of blocks in transit.
pub(crate) fn keep_orphaned<O: Os>(shared: &Shared<O>, block: FreeBlock, key: LinkKey) {
    // SAFETY: the block is ours to give.
    unsafe { shared.central.keep_orphaned(block.class(), block.node(), key) };
}

/// Takes all blocks of a class whose spans belong to threads that do not exist in this forked child, linked for a bin with the key `bins`.
pub(crate) fn take_orphaned<O: Os>(shared: &Shared<O>, class: usize, key: LinkKey, bins: LinkKey) -> Option<FreeBatch> {
    let blocks = shared.central.take_orphaned(class);
    let mut block = blocks.first;
    while !block.is_null() {
        // SAFETY: the central lists have the blocks linked with that key, and give them away.
        let next = unsafe { free_node::next(block, key) };
        // SAFETY: as above.
        unsafe { free_node::write_in_bin(block, if next.is_null() { END_OF_BIN } else { next }, bins) };
        block = next;
    }
    // SAFETY: as above.
    unsafe { FreeBatch::new(blocks, class) }
}

/// Takes one block of a class whose span belongs to a thread that does not exist in this forked child. `key` is that of blocks in transit.
pub(crate) fn take_one_orphaned<O: Os>(shared: &Shared<O>, class: usize, key: LinkKey) -> Option<FreeBlock> {
    let block = shared.central.take_one_orphaned(class, key);
    // SAFETY: the central lists have the block, free and of `class`, and give it away.
    (!block.is_null()).then(|| unsafe { FreeBlock::new(block.cast(), class) })
}
