//! Heaps of threads that do not exist in this forked child, and their blocks that are freed.
//!
//! ```text
//!  free ─▶ the inbox of the orphaned heap, as of any other ── sort ─▶ a chain per class (`central`) ── take ─▶ bins
//! ```
//!
//! What the threads were doing at the moment of the fork cannot be known, so their spans stay as they are; blocks of them are handed out again from the chains.
//! A fork touches none of the blocks that wait: they are sorted a few at a time, when a thread of the child needs a span. The memory of those that nothing needs
//! goes back as that of an idle thread does (`idle`).
//!
//! Sorting writes to blocks, and so takes memory for each of their OS pages: no more than the span has that it may save, unless there is no other memory.
//!
//! Threads: any; one at a time takes and sorts, and the others wait: each would make a new span instead, in every generation of children that fork again.

use crate::central::{CentralLists, Orphan};
use crate::misuse::Misuse;
use crate::size_class::block_bytes;
use crate::span::Generation;
use crate::span::free_node::Marked;
use crate::thread::free_block::{Found, FreeBatch, FreeBlock};
use crate::thread::heap::own::Own;
use crate::thread::idle;
use crate::thread::mailbox::Mailbox;
use crate::thread::span_owner::{Owner, keep_orphaned, put_back_orphaned, take_orphaned};
use core::ptr;
use freestone_base::sync::Ordering;
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;

/// How much is sorted when no block of a class is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The inboxes that are looked at.
    inboxes: usize,
    /// The bytes in OS pages that are written to, about.
    bytes: usize,
}

impl Effort {
    /// Where a new span would do.
    pub(crate) const LITTLE: Self = Self { inboxes: 32, bytes: 4 * PAGE_BYTES };
    /// Where there is no memory for one.
    pub(crate) const ALL: Self = Self { inboxes: usize::MAX, bytes: usize::MAX };
}

/// Makes a heap with this mailbox one of the orphaned ones. Its thread may have been about to close its inbox.
///
/// The process has one thread.
pub(crate) fn add(central: &CentralLists, mailbox: &Mailbox) {
    mailbox.reopen();
    let mut orphan = central.lock_orphan();
    let this = ptr::from_ref(mailbox).cast_mut();
    let next = match Owner::of_orphan(&orphan) {
        Some(other) => other.mailbox().next_orphan().swap(this, Ordering::Relaxed),
        None => this,
    };
    mailbox.next_orphan().store(next, Ordering::Relaxed);
    orphan.0 = this.cast();
}

/// Takes up to `n` orphaned blocks of a class, linked for a bin. In a process without any this calls no function: its code would be resident.
#[inline(always)]
pub(crate) fn take<O: Os>(own: Own<'_, O>, class: usize, n: u32, effort: Effort) -> Option<FreeBatch> {
    if own.shared().central.has_orphaned() { take_batch(own, class, n, effort) } else { None }
}

#[cold]
#[inline(never)]
fn take_batch<O: Os>(own: Own<'_, O>, class: usize, n: u32, effort: Effort) -> Option<FreeBatch> {
    let mut batch = FreeBatch::empty(class);
    take_each(own, (class, n), effort, &mut |block| batch.push(block, own.bins().key()));
    (batch.len() > 0).then_some(batch)
}

/// Takes one orphaned block of a class.
#[inline(never)]
pub(crate) fn take_one<O: Os>(own: Own<'_, O>, class: usize, effort: Effort) -> Option<FreeBlock> {
    let mut first = None;
    if own.shared().central.has_orphaned() {
        take_each(own, (class, 1), effort, &mut |block| first = Some(block));
    }
    first
}

/// Takes up to `n` orphaned blocks of a class, but not for an explicit heap.
fn take_each<O: Os>(own: Own<'_, O>, wanted: (usize, u32), effort: Effort, put: &mut dyn FnMut(FreeBlock)) {
    if own.holdings().is_none() {
        take_kept(own, wanted, (&mut own.shared().central.lock_orphan(), effort), put);
    }
}

#[cold]
#[inline(never)]
fn take_kept<O: Os>(
    own: Own<'_, O>,
    (class, n): (usize, u32),
    (orphan, effort): (&mut Orphan, Effort),
    put: &mut dyn FnMut(FreeBlock),
) {
    let (shared, key) = (own.shared(), own.remote().key());
    let (mut left, mut last) = take_orphaned(shared, class, key);
    if left.n_left() == 0 {
        sort(own, orphan, class, effort);
        (left, last) = take_orphaned(shared, class, key);
    }
    let (view, mut n_left) = (own.renew_view(), n);
    while n_left > 0 && left.n_left() > 0 {
        match left.pop(&view, Generation::NONE.tag()) {
            Some(Found::Own(block) | Found::Other(block, _)) if block.class() == class => {
                n_left -= 1;
                put(block);
            }
            Some(Found::Wrong(what, address)) => own.report(what, address),
            Some(_) => {}
            // The link to the next was overwritten when the block was freed again.
            None => {
                report_second_free(own, class, left.before().addr());
                left.abandon();
            }
        }
    }
    put_back_orphaned(shared, left, last);
}

/// Moves some of what waits for orphaned heaps to the chains of their classes, where a block of `class` is needed.
fn sort<O: Os>(own: Own<'_, O>, orphan: &mut Orphan, class: usize, effort: Effort) {
    let Some(first) = Owner::of_orphan(orphan) else { return };
    let (mut owner, mut n_left, mut bytes) = (first, effort.inboxes, 0);
    while n_left > 0 && bytes < effort.bytes {
        n_left -= 1;
        sort_some(own, owner.mailbox(), class, (&mut bytes, effort.bytes));
        owner = owner.next_orphan();
        if owner.is(first.mailbox()) {
            break;
        }
    }
    orphan.0 = owner.mailbox().as_owner().cast_mut();
}

/// Sorts what waits for one of them, until as many `bytes` are written to as may be. A stretch is only taken apart if it is of `class`.
fn sort_some<O: Os>(own: Own<'_, O>, mailbox: &Mailbox, class: usize, (bytes, most): (&mut usize, usize)) {
    // Each block was allocated before it was freed, so the newest view covers it.
    let (view, os_page_bytes) = (own.renew_view(), own.shared().os().os_page_bytes());
    for inbox in [mailbox.inbox(), mailbox.looked_through()] {
        let mut blocks = inbox.take_for_owner(|| mailbox.key());
        while !blocks.is_empty() {
            if *bytes >= most {
                // The inbox of an orphaned heap is never closed.
                let _ = idle::put_back(own.shared(), mailbox, blocks);
                return;
            }
            match blocks.pop(&view, Generation::NONE.tag()) {
                Some(Found::Own(block) | Found::Other(block, _)) => {
                    *bytes += block_bytes(block.class()).min(os_page_bytes);
                    keep(own, block);
                }
                Some(Found::Stretch(stretch)) if stretch.class() == class => {
                    *bytes += PAGE_BYTES;
                    stretch.into_blocks().for_each(|block| keep(own, block));
                }
                Some(Found::Stretch(stretch)) => {
                    *bytes += os_page_bytes;
                    mailbox.looked_through().push_stretch(stretch, mailbox.key());
                }
                Some(Found::Wrong(what, address)) => own.report(what, address),
                Some(Found::Lost(_)) | None => {}
            }
        }
    }
}

/// Keeps a block in the chain of its class. One that may have been free before is marked as in one, and lost: if it is in one, that ends with it, and who takes
/// it reports it. A block of a stretch may be in one already.
fn keep<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    match block.marked() {
        Marked::Suspect => {
            block.link(ptr::null_mut(), own.remote().key());
        }
        Marked::InBin => report_second_free(own, block.class(), block.address()),
        _ => keep_orphaned(own.shared(), block, own.remote().key()),
    }
}

#[cold]
#[inline(never)]
fn report_second_free<O: Os>(own: Own<'_, O>, class: usize, address: usize) {
    own.report(Misuse::DoubleFree { block_bytes: block_bytes(class) }, address);
}

#[cfg(test)]
mod tests;
