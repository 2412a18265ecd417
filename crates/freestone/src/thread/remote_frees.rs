//! Remote frees: blocks of other owners, buffered and handed over in batches; and the mailbox into which other threads hand over this heap's.
#![allow(unsafe_code)]
//!
//! ```text
//!  free of another's block ─▶ slot of its owner ── 32 blocks or 64 KiB ──▶ owner's inbox       one atomic operation
//!                                                                       └▶ closed: route each block (`route`)
//! ```
//!
//! Blocks that arrive are in the sender's cache: reading each block's link is a cross-core cache miss. So a block also names one that comes
//! `AHEAD` blocks behind it, and the owner prefetches that one when it drains its inbox (`drain`).
//!
//! Blocks stay in the buffer until their slot is full, or is needed for another owner, until the thread needs a new span, until its decay tick,
//! or until it exits. Blocks of an explicit heap are not buffered: each goes into the heap's inbox at once, with an atomic operation of its own,
//! so that a heap that is deleted has every block that was freed before.
//!
//! Invariants: only this thread has a chain in a slot; its blocks are counted as freed. The owner recorded in a slot may have ended since: a
//! closed inbox shows that, and the thread that drains an inbox sends on blocks that are not its own.
//!
//! Threads: any thread may push to a mailbox and read its state; the rest is for the heap's thread.
//!
//! # Safety
//! `Span::owner` of a small span is null or the mailbox of a thread heap, whose record is never unmapped.

use crate::central::FreeOutcome;
use crate::shared::Shared;
use crate::size_class::{SMALL_MAX, block_bytes};
use crate::span::PageIndex;
use crate::span::blocks::{Chain, Refused};
use crate::thread::free_block::{FreeBatch, FreeBlock, InTransit, set_ahead};
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use freestone_base::count;
use freestone_base::inbox::{Inbox, Node};
use freestone_base::sync::{AtomicU32, AtomicU64, Ordering};
use freestone_os::Os;

/// Owners that blocks are buffered for at once.
const SLOTS: usize = 8;

/// Blocks that are handed over together.
const BATCH: u32 = 32;

/// A slot is handed over when its blocks have this many bytes, however few they are.
const BATCH_BYTES: usize = 64 * 1024;

/// How many blocks before its turn a block is prefetched.
const AHEAD: usize = 8;

// One block does not fill a slot.
const _: () = assert!(SMALL_MAX < BATCH_BYTES);

/// The state of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Life {
    /// Its record is free for the next heap, or was never used.
    Unborn = 0,
    /// A thread's, or an explicit heap's.
    Alive,
    /// Of a thread that does not exist in this forked child: its spans stay as they are for good.
    Orphaned,
}

/// The part of a heap that other threads use, to hand over its blocks. A span's record names it as the span's owner.
#[derive(Debug)]
pub(crate) struct Mailbox {
    inbox: Inbox,
    life: AtomicU32,
}

impl Mailbox {
    const fn new() -> Self {
        Self { inbox: Inbox::new(), life: AtomicU32::new(Life::Unborn as u32) }
    }

    /// The pointer that a span's record has as its owner.
    pub(crate) fn as_owner(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }

    /// The state of the heap.
    pub(crate) fn life(&self) -> Life {
        match self.life.load(Ordering::Relaxed) {
            0 => Life::Unborn,
            1 => Life::Alive,
            _ => Life::Orphaned,
        }
    }

    /// Sets the state of the heap.
    pub(crate) fn set_life(&self, life: Life) {
        self.life.store(life as u32, Ordering::Relaxed);
    }

    /// Opens the inbox for the record's next heap.
    pub(crate) fn open(&self) {
        self.set_life(Life::Alive);
        self.inbox.open();
    }

    /// Takes what others have handed over.
    pub(crate) fn take(&self) -> InTransit {
        // SAFETY: what is in the inbox was pushed by `hand_over`: free small blocks, each with its hint written.
        unsafe { InTransit::new(self.inbox.take()) }
    }

    /// Closes the inbox and takes what was in it. Pushes are refused from here on, and their senders see that no span belongs to this heap.
    pub(crate) fn close(&self) -> InTransit {
        // SAFETY: as in `take`.
        unsafe { InTransit::new(self.inbox.close()) }
    }

    /// Hands one block over.
    ///
    /// # Errors
    /// The block, if the inbox is closed.
    pub(crate) fn hand_over(&self, block: FreeBlock) -> Result<(), FreeBlock> {
        set_ahead(&block, ptr::null_mut());
        let class = block.class();
        let node = block.into_node();
        // SAFETY: the block is free and was the caller's to give.
        if unsafe { self.inbox.push(node, node) } {
            return Ok(());
        }
        // SAFETY: a refused block is still ours.
        Err(unsafe { FreeBlock::new(node.cast(), class) })
    }
}

/// The owner of the small span that a block is in, and the span's first page. `None`: the span is abandoned.
pub(crate) fn owner_of<'a, O: Os>(shared: &'a Shared<O>, block: &FreeBlock) -> (PageIndex, Option<&'a Mailbox>) {
    let page = shared.pages.view().page_of(block.address()).unwrap_or_default();
    // SAFETY: the block is out of its span, so its page is in use and has a record; `first` is right in all pages of a small span.
    let first = unsafe { shared.pages.span(page) }.first_page();
    (first, owner_of_span(shared, first))
}

/// The owner of the small span that starts at `page`, whose block the caller has.
pub(crate) fn owner_of_span<O: Os>(shared: &Shared<O>, page: PageIndex) -> Option<&Mailbox> {
    // SAFETY: a block of the span is out, so the span is there and has a record.
    let owner = unsafe { shared.pages.span(page) }.owner.load(Ordering::Acquire).cast::<Mailbox>();
    // SAFETY: the owner of a small span is null or a mailbox in a record that is never unmapped (module header).
    unsafe { owner.as_ref() }
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

/// Keeps a block of an orphaned heap, to be handed out again.
pub(crate) fn keep_orphaned<O: Os>(shared: &Shared<O>, block: FreeBlock) {
    // SAFETY: the block is ours to give.
    unsafe { shared.central.keep_orphaned(block.class(), block.node()) };
}

/// Takes all blocks of a class whose spans belong to threads that do not exist in this forked child.
pub(crate) fn take_orphaned<O: Os>(shared: &Shared<O>, class: usize) -> Option<FreeBatch> {
    // SAFETY: the central lists have these blocks linked, and give them away.
    unsafe { FreeBatch::new(shared.central.take_orphaned(class), class) }
}

/// Takes one block of a class whose span belongs to a thread that does not exist in this forked child.
pub(crate) fn take_one_orphaned<O: Os>(shared: &Shared<O>, class: usize) -> Option<FreeBlock> {
    let block = shared.central.take_one_orphaned(class);
    // SAFETY: the central lists have the block, free and of `class`, and give it away.
    (!block.is_null()).then(|| unsafe { FreeBlock::new(block.cast(), class) })
}

/// The blocks that are buffered for one owner.
#[derive(Debug)]
struct Slot {
    owner: Cell<*const Mailbox>,
    chain: Cell<Chain>,
    bytes: Cell<usize>,
    /// The last blocks that were added, by their number in the chain.
    recent: [Cell<*mut Node>; AHEAD],
}

impl Slot {
    const fn empty() -> Self {
        Self {
            owner: Cell::new(ptr::null()),
            chain: Cell::new(Chain::EMPTY),
            bytes: Cell::new(0),
            recent: [const { Cell::new(ptr::null_mut()) }; AHEAD],
        }
    }

    /// Adds a block in front. Returns whether the slot is full.
    fn push(&self, block: FreeBlock) -> bool {
        let mut chain = self.chain.get();
        let (number, bytes) = (chain.len as usize, block_bytes(block.class()));
        let recent = &self.recent[number % AHEAD];
        set_ahead(&block, if number < AHEAD { ptr::null_mut() } else { recent.get() });
        let node = block.into_node();
        recent.set(node);
        // SAFETY: the block is free, and was the caller's to give.
        unsafe { chain.push(node) };
        self.chain.set(chain);
        self.bytes.set(self.bytes.get() + bytes);
        chain.len >= BATCH || self.bytes.get() >= BATCH_BYTES
    }

    /// Hands what is buffered over to its owner with one atomic operation. Returns what a closed inbox refused.
    fn hand_over(&self, n_handovers: &AtomicU64) -> InTransit {
        self.bytes.set(0);
        let chain = self.chain.replace(Chain::EMPTY);
        if chain.len == 0 {
            return InTransit::NONE;
        }
        count::increment(n_handovers);
        // SAFETY: a slot with blocks has an owner, a mailbox in a record that is never unmapped.
        let owner = unsafe { &*self.owner.get() };
        // SAFETY: the chain is linked from first to last, and was the slot's to give.
        if unsafe { owner.inbox.push(chain.first, chain.last) } {
            return InTransit::NONE;
        }
        // SAFETY: a refused chain is still ours, ends in null, and `push` wrote every hint.
        unsafe { InTransit::new(chain.first) }
    }
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct RemoteFrees {
    mailbox: Mailbox,
    n_handovers: AtomicU64,
    slots: [Slot; SLOTS],
}

impl RemoteFrees {
    /// Nothing buffered, and the mailbox of no heap yet.
    pub(crate) const fn new() -> Self {
        Self { mailbox: Mailbox::new(), n_handovers: AtomicU64::new(0), slots: [const { Slot::empty() }; SLOTS] }
    }

    /// This heap's mailbox.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// How often blocks were handed over, ever: the atomic operations that remote frees cost. Any thread may read it.
    pub(crate) fn n_handovers(&self) -> u64 {
        self.n_handovers.load(Ordering::Relaxed)
    }

    /// Buffers a block of `owner`. Returns the blocks that this handed over and that a closed inbox refused.
    pub(crate) fn buffer(&self, owner: &Mailbox, block: FreeBlock) -> InTransit {
        let slot = &self.slots[(ptr::from_ref(owner).addr() >> 12) % SLOTS];
        let mut refused = InTransit::NONE;
        if !ptr::eq(slot.owner.get(), owner) {
            refused = slot.hand_over(&self.n_handovers);
            slot.owner.set(owner);
        }
        // At most one of the two handovers has blocks.
        if slot.push(block) { slot.hand_over(&self.n_handovers) } else { refused }
    }

    /// Hands over what is buffered, slot by slot; calls `refused` with the blocks that closed inboxes refuse.
    pub(crate) fn hand_all_over(&self, mut refused: impl FnMut(InTransit)) {
        for slot in &self.slots {
            let chain = slot.hand_over(&self.n_handovers);
            if !chain.is_empty() {
                refused(chain);
            }
        }
    }

    /// Hands one block over to its owner at once.
    ///
    /// # Errors
    /// The block, if the owner's inbox is closed.
    pub(crate) fn hand_one_over(&self, owner: &Mailbox, block: FreeBlock) -> Result<(), FreeBlock> {
        owner.hand_over(block)?;
        count::increment(&self.n_handovers);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
