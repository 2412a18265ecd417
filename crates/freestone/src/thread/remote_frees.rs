//! Remote frees: blocks of other owners, buffered and handed over in batches.
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
//! Links of blocks in transit are encoded with one key that all heaps share.
//!
//! Invariants: only this thread has a chain in a slot; its blocks are counted as freed. The owner recorded in a slot may have ended since: a
//! closed inbox shows that, and the thread that drains an inbox sends on blocks that are not its own.
//!
//! Threads: only the heap's thread.
//!
//! # Safety
//! `Span::owner` of a small span is null or the mailbox of a thread heap, whose record is never unmapped.

use crate::central::FreeOutcome;
use crate::shared::Shared;
use crate::size_class::{SMALL_MAX, block_bytes};
use crate::span::PageIndex;
use crate::span::blocks::Refused;
use crate::span::free_node::{self, Chain, END_OF_BIN};
use crate::thread::free_block::{FreeBatch, FreeBlock, InTransit, mark_in_transit, mark_suspect};
use crate::thread::mailbox::Mailbox;
use core::cell::Cell;
use core::ptr;
use freestone_base::count;
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::sync::{AtomicU64, Ordering};
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

/// The blocks that are buffered for one owner.
#[derive(Debug)]
struct Slot {
    owner: Cell<*const Mailbox>,
    chain: Cell<Chain>,
    /// The owner's number of suspects when the chain was begun.
    n_suspects: Cell<u32>,
    bytes: Cell<usize>,
    /// The last blocks that were added, by their number in the chain.
    recent: [Cell<*mut Node>; AHEAD],
}

impl Slot {
    const fn empty() -> Self {
        Self {
            owner: Cell::new(ptr::null()),
            chain: Cell::new(Chain::EMPTY),
            n_suspects: Cell::new(0),
            bytes: Cell::new(0),
            recent: [const { Cell::new(ptr::null_mut()) }; AHEAD],
        }
    }

    /// Adds a block in front. Returns whether the slot is full.
    fn push(&self, block: FreeBlock, key: LinkKey) -> bool {
        let mut chain = self.chain.get();
        let (number, bytes) = (chain.len as usize, block_bytes(block.class()));
        let recent = &self.recent[number % AHEAD];
        mark_in_transit(&block, if number < AHEAD { ptr::null_mut() } else { recent.get() });
        let node = block.into_node();
        recent.set(node);
        // SAFETY: the block is free, and was the caller's to give.
        unsafe { chain.push(node, key) };
        self.chain.set(chain);
        self.bytes.set(self.bytes.get() + bytes);
        chain.len >= BATCH || self.bytes.get() >= BATCH_BYTES
    }

    /// Makes an empty slot that of an owner.
    fn begin(&self, owner: &Mailbox) {
        self.owner.set(owner);
        self.n_suspects.set(owner.n_suspects.load(Ordering::Relaxed));
    }

    /// Hands what is buffered over to its owner with one atomic operation. Returns what a closed inbox refused.
    ///
    /// If the owner was sent a suspect meanwhile, that may be a block of this chain, which another thread has freed again and linked elsewhere.
    /// Then the chain counts as refused, too: its blocks are sent one by one, and the owner gets that block twice and notices.
    fn hand_over(&self, n_handovers: &AtomicU64, key: LinkKey) -> InTransit {
        self.bytes.set(0);
        let chain = self.chain.replace(Chain::EMPTY);
        if chain.len == 0 {
            return InTransit::NONE;
        }
        count::increment(n_handovers);
        // SAFETY: a slot with blocks has an owner, a mailbox in a record that is never unmapped.
        let owner = unsafe { &*self.owner.get() };
        let n_suspects = owner.n_suspects.load(Ordering::Relaxed);
        if self.n_suspects.replace(n_suspects) != n_suspects {
            // SAFETY: the chain is this slot's, ends in null, and `push` marked every block.
            return unsafe { InTransit::new(chain.first, key) };
        }
        // SAFETY: the chain is linked from first to last, and was the slot's to give.
        if unsafe { owner.inbox.push(chain.first, chain.last, key) } {
            return InTransit::NONE;
        }
        // SAFETY: a refused chain is still ours, ends in null, and `push` marked every block.
        unsafe { InTransit::new(chain.first, key) }
    }

    /// Whether a block is buffered here.
    fn holds(&self, block: *mut Node, key: LinkKey) -> bool {
        let chain = self.chain.get();
        let next = |&at: &*mut Node| {
            // SAFETY: the chain's blocks are this slot's, linked with the key; `len` of them, so that none is read behind the last.
            Some(unsafe { free_node::next(at, key) })
        };
        core::iter::successors(Some(chain.first), next).take(chain.len as usize).any(|at| at == block)
    }
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct RemoteFrees {
    mailbox: Mailbox,
    /// What all heaps encode the links of blocks in transit with.
    key: Cell<LinkKey>,
    n_handovers: AtomicU64,
    slots: [Slot; SLOTS],
}

impl RemoteFrees {
    /// Nothing buffered, and the mailbox of no heap yet.
    pub(crate) const fn new() -> Self {
        Self {
            mailbox: Mailbox::new(),
            key: Cell::new(LinkKey::PLAIN),
            n_handovers: AtomicU64::new(0),
            slots: [const { Slot::empty() }; SLOTS],
        }
    }

    /// Opens the mailbox for the heap that begins to live here. `key` is that of blocks in transit.
    pub(crate) fn begin(&self, key: LinkKey) {
        self.key.set(key);
        self.mailbox.open();
    }

    /// What the links of blocks in transit are encoded with.
    pub(crate) fn key(&self) -> LinkKey {
        self.key.get()
    }

    /// Takes what others have handed over.
    pub(crate) fn take(&self) -> InTransit {
        self.mailbox.take(self.key())
    }

    /// Whether a block is buffered for its owner. One that was freed twice may have overwritten what links to it, so it need not be found.
    pub(crate) fn holds(&self, block: *mut Node) -> bool {
        self.slots.iter().any(|slot| slot.holds(block, self.key()))
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
            refused = slot.hand_over(&self.n_handovers, self.key());
            slot.begin(owner);
        }
        // At most one of the two handovers has blocks.
        if slot.push(block, self.key()) { slot.hand_over(&self.n_handovers, self.key()) } else { refused }
    }

    /// Hands over what is buffered, slot by slot; calls `refused` with the blocks that closed inboxes refuse.
    pub(crate) fn hand_all_over(&self, mut refused: impl FnMut(InTransit)) {
        for slot in &self.slots {
            let chain = slot.hand_over(&self.n_handovers, self.key());
            if !chain.is_empty() {
                refused(chain);
            }
        }
    }

    /// Hands one block over to its owner at once. The owner finds out whether a suspect was free before.
    ///
    /// # Errors
    /// The block, if the owner's inbox is closed.
    pub(crate) fn hand_one_over(&self, owner: &Mailbox, block: FreeBlock, is_suspect: bool) -> Result<(), FreeBlock> {
        if is_suspect {
            owner.n_suspects.fetch_add(1, Ordering::Relaxed);
            mark_suspect(&block);
        } else {
            mark_in_transit(&block, ptr::null_mut());
        }
        owner.hand_over(block, self.key())?;
        count::increment(&self.n_handovers);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
