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
//! Threads: any; one at a time sorts, and the others go on without.

use crate::central::CentralLists;
use crate::misuse::Misuse;
use crate::size_class::block_bytes;
use crate::span::Generation;
use crate::thread::free_block::{Found, FreeBatch, FreeBlock};
use crate::thread::heap::own::Own;
use crate::thread::in_transit::InTransit;
use crate::thread::mailbox::Mailbox;
use crate::thread::span_owner::{Owner, keep_orphaned, put_back_orphaned, take_orphaned};
use core::ptr;
use freestone_base::sync::Ordering;
use freestone_os::Os;

/// The inboxes that are looked at in one go.
const INBOXES: usize = 8;

/// The blocks that are sorted in one go, of each inbox.
const BLOCKS: usize = 32;

/// Makes a heap with this mailbox one of the orphaned ones. Its thread may have been about to close its inbox.
///
/// The process has one thread.
pub(crate) fn add(central: &CentralLists, mailbox: &Mailbox) {
    mailbox.reopen();
    let this = ptr::from_ref(mailbox).cast_mut();
    let next = match Owner::take_orphan(central) {
        Some(other) => other.mailbox().next_orphan().swap(this, Ordering::Relaxed),
        None => this,
    };
    mailbox.next_orphan().store(next, Ordering::Relaxed);
    central.put_back_orphan(this.cast());
}

/// Takes up to `n` orphaned blocks of a class, linked for a bin.
pub(crate) fn take<O: Os>(own: Own<'_, O>, class: usize, n: u32) -> Option<FreeBatch> {
    let mut batch = FreeBatch::empty(class);
    take_each(own, class, n, &mut |block| batch.push(block, own.bins().key()));
    (batch.len() > 0).then_some(batch)
}

/// Takes one orphaned block of a class.
pub(crate) fn take_one<O: Os>(own: Own<'_, O>, class: usize) -> Option<FreeBlock> {
    let mut first = None;
    take_each(own, class, 1, &mut |block| first = Some(block));
    first
}

/// Takes up to `n` orphaned blocks of a class, but not for an explicit heap.
fn take_each<O: Os>(own: Own<'_, O>, class: usize, n: u32, put: &mut dyn FnMut(FreeBlock)) {
    if own.holdings().is_none() && own.shared().central.has_orphaned() {
        take_kept(own, class, n, put);
    }
}

#[cold]
#[inline(never)]
fn take_kept<O: Os>(own: Own<'_, O>, class: usize, n: u32, put: &mut dyn FnMut(FreeBlock)) {
    let (shared, key) = (own.shared(), own.remote().key());
    let (mut left, mut last) = take_orphaned(shared, class, key);
    if left.n_left() == 0 {
        sort(own);
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
                own.report(Misuse::DoubleFree { block_bytes: block_bytes(class) }, left.before().addr());
                left.abandon();
            }
        }
    }
    put_back_orphaned(shared, left, last);
}

/// Moves some of what waits for orphaned heaps to the chains of their classes.
fn sort<O: Os>(own: Own<'_, O>) {
    let central = &own.shared().central;
    let Some(mut owner) = Owner::take_orphan(central) else { return };
    for _ in 0..INBOXES {
        sort_some(own, owner.mailbox());
        owner = owner.next_orphan();
    }
    central.put_back_orphan(owner.mailbox().as_owner().cast_mut());
}

/// Sorts some of what waits for one of them.
fn sort_some<O: Os>(own: Own<'_, O>, mailbox: &Mailbox) {
    // Each block was allocated before it was freed, so the newest view covers it.
    let (view, key, inboxes) = (own.renew_view(), mailbox.key(), [mailbox.inbox(), mailbox.looked_through()]);
    let (mut blocks, mut n) = (InTransit::NONE, 0);
    for inbox in inboxes {
        if blocks.is_empty() {
            blocks = inbox.take_for_owner(key);
        }
    }
    while !blocks.is_empty() {
        if n >= BLOCKS {
            // There may be others in both meanwhile.
            for inbox in inboxes {
                match inbox.put_back(blocks) {
                    Ok(()) => return,
                    Err(refused) => blocks = refused,
                }
            }
        }
        n += 1;
        match blocks.pop(&view, Generation::NONE.tag()) {
            Some(Found::Own(block) | Found::Other(block, _)) => keep(own, block),
            Some(Found::Stretch(stretch)) => {
                // Their memory went back: one stretch at a time is enough.
                n = BLOCKS;
                stretch.into_blocks().for_each(|block| keep(own, block));
            }
            Some(Found::Wrong(what, address)) => own.report(what, address),
            Some(Found::Lost(_)) | None => {}
        }
    }
}

/// Keeps a block in the chain of its class. One that may have been free before is marked as in one, and lost: if it is in one, that ends with it, and who takes
/// it reports it.
fn keep<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    if block.is_suspect() {
        block.link(ptr::null_mut(), own.remote().key());
    } else {
        keep_orphaned(own.shared(), block, own.remote().key());
    }
}

#[cfg(test)]
mod tests;
