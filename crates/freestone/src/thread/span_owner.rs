//! Who owns the span of a block, and what becomes of blocks whose spans no thread owns.
#![allow(unsafe_code)]
//!
//! Threads: any.
//!
//! # Safety
//! `Span::owner` of a small span is null or the mailbox of a thread heap, whose record is never unmapped.

use crate::central::{FreeOutcome, Orphan};
use crate::shared::Shared;
use crate::span::PageIndex;
use crate::span::blocks::Refused;
use crate::span::free_node::Chain;
use crate::thread::free_block::{FreeBatch, FreeBlock, FreeChain};
use crate::thread::mailbox::Mailbox;
use core::ptr::{self, NonNull};
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::sync::Ordering;
use freestone_os::Os;

/// The mailbox of the heap that owns a span. The heap may have ended since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner(NonNull<Mailbox>);

impl Owner {
    /// The owner with this mailbox, which is that of a heap's record; `None` of null.
    #[inline]
    fn new(mailbox: *mut Mailbox) -> Option<Self> {
        NonNull::new(mailbox).map(Self)
    }

    /// An orphaned heap.
    pub(crate) fn of_orphan(orphan: &Orphan) -> Option<Self> {
        Self::new(orphan.0.cast())
    }

    /// The orphaned heap behind this one.
    pub(crate) fn next_orphan(self) -> Self {
        Self::new(self.mailbox().next_orphan().load(Ordering::Relaxed)).unwrap_or(self)
    }

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
    Owner::new(unsafe { shared.pages.span(page) }.owner.load(Ordering::Acquire).cast())
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

/// Takes up to `n` blocks of a class, linked with `key`, out of a span without an owner.
pub(crate) fn take_unowned<O: Os>(shared: &Shared<O>, class: usize, n: u32, key: LinkKey) -> Option<FreeBatch> {
    let taken = shared.central.take(&shared.pages, &shared.usage, (class, n), key)?;
    // SAFETY: the blocks just left their span for us, linked.
    unsafe { FreeBatch::new(taken, class) }
}

/// Keeps a block of an orphaned heap, to be handed out again. All are kept with the same `key`.
pub(crate) fn keep_orphaned<O: Os>(shared: &Shared<O>, block: FreeBlock, key: LinkKey) {
    let class = block.class();
    let node = block.link(ptr::null_mut(), key);
    // SAFETY: the block was the value's, which is a chain of one now.
    unsafe { shared.central.keep_orphaned(class, Chain { first: node, last: node, len: 1 }, key) };
}

/// Takes the blocks of a class that are kept, with their `key`, and which one is last.
pub(crate) fn take_orphaned<O: Os>(shared: &Shared<O>, class: usize, key: LinkKey) -> (FreeChain, *mut Node) {
    let kept = shared.central.take_orphaned(class);
    // SAFETY: the chain has as many blocks of the class, which were linked with this key, and gives them away.
    (unsafe { FreeChain::new(kept.first, kept.len, class, key) }, kept.last)
}

/// Puts back what is left of the blocks that [`take_orphaned`] took, of which `last` is the last.
pub(crate) fn put_back_orphaned<O: Os>(shared: &Shared<O>, left: FreeChain, last: *mut Node) {
    let chain = Chain { first: left.first(), last, len: left.n_left() };
    // SAFETY: the blocks were the value's, linked up to the last with the key of all that are kept.
    unsafe { shared.central.keep_orphaned(left.class(), chain, left.key()) };
}
