//! Remote frees: blocks of other owners, buffered and handed over in batches.
//!
//! ```text
//!  free of another's block ─▶ slot of its owner ── 32 blocks, or 64 KiB ──▶ owner's inbox      one atomic operation
//!                                                  of blocks above 2 KiB
//!                                                                       └▶ closed: route each block (`route`)
//! ```
//!
//! A block finds its slot by the generation in its page's entry, which the free has read: it does not look its owner up. The owner is looked up
//! when a batch is begun.
//!
//! Blocks that arrive are in the sender's cache: reading each block's link is a cross-core cache miss. So a block also names one that comes
//! sixteen blocks behind it, and the owner prefetches that one when it drains its inbox (`drain`). The last sixteen of a batch name blocks of the batch that was sent
//! to the owner before.
//!
//! Blocks stay in the buffer until their slot is full, or is needed for another owner, until the thread needs a new span, until its decay tick,
//! or until it exits. Blocks of an explicit heap are not buffered: each goes into the heap's inbox at once, with an atomic operation of its own,
//! so that a heap that is deleted has every block that was freed before.
//!
//! Links of blocks in transit are encoded with one key that all heaps share. A hardened explicit heap in a process that is not hardened has a key for its inbox.
//!
//! Invariants: a slot with blocks has a generation; its blocks are counted as freed. A slot that is handed over because it is full stays its owner's, so that
//! the next batch looks no owner up. The owner recorded in a slot may have ended since: a closed inbox shows that, and the thread that drains an inbox sends
//! on blocks that are not its own. When all slots are handed over, they are nobody's again, so none has an old generation for long.
//!
//! Threads: only the heap's thread.

use crate::size_class::{SMALL_MAX, block_bytes, class_of};
use crate::span::free_node::Marked;
use crate::span::{Entry, Generation};
use crate::thread::free_block::FreeBlock;
use crate::thread::in_transit::{BATCH, Batch, InTransit};
use crate::thread::keys::Keys;
use crate::thread::mailbox::Mailbox;
use crate::thread::span_owner::Owner;
use core::cell::Cell;
use freestone_base::count;
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::sync::{AtomicU64, Ordering};

/// Owners that blocks are buffered for at once.
const SLOTS: usize = 8;

/// A slot is handed over when its blocks above [`UNCOUNTED_MAX`] have this many bytes, however few they are.
const BATCH_BYTES: usize = 64 * 1024;

/// The largest block of which a full batch has no more than [`BATCH_BYTES`]: its bytes are not counted.
const UNCOUNTED_MAX: usize = BATCH_BYTES / BATCH;

/// What the classes of blocks whose bytes are not counted are below.
const UNCOUNTED_BOUND: usize = class_of(UNCOUNTED_MAX) + 1;

// One block does not fill a slot.
const _: () = assert!(SMALL_MAX < BATCH_BYTES);
const _: () = assert!(block_bytes(UNCOUNTED_BOUND - 1) == UNCOUNTED_MAX);

/// The blocks that are buffered for one owner.
#[derive(Debug)]
pub(crate) struct Slot {
    /// That of the owner's generation, or of one that no span has.
    tag: Cell<u32>,
    /// Bytes of those blocks whose bytes are counted.
    bytes: Cell<u32>,
    /// The owner of the blocks, or if there are none, of those that were here last.
    owner: Cell<Option<Owner>>,
    batch: Batch,
}

impl Slot {
    #[cfg(test)]
    const fn empty() -> Self {
        Self {
            tag: Cell::new(Generation::NONE.tag()),
            bytes: Cell::new(0),
            owner: Cell::new(None),
            batch: Batch::new(),
        }
    }

    /// Adds a block of the slot's owner. Returns whether the slot is full: then it must be handed over before the next.
    fn push(&self, block: FreeBlock, key: LinkKey) -> bool {
        if block.class() >= UNCOUNTED_BOUND {
            self.bytes.set(self.bytes.get() + block_bytes(block.class()) as u32);
        }
        self.batch.push(block, key) || self.bytes.get() as usize >= BATCH_BYTES
    }

    /// Makes an empty slot that of an owner, `block` being the first that comes into it.
    fn begin(&self, generation: Generation, owner: Owner, block: &FreeBlock) {
        self.tag.set(generation.tag());
        if !self.owner.replace(Some(owner)).is_some_and(|last| last.is(owner.mailbox())) {
            self.batch.turn_to(block);
        }
    }

    /// Makes it no owner's.
    fn leave(&self) {
        self.tag.set(Generation::NONE.tag());
    }

    /// Hands what is buffered over to its owner with one atomic operation. Returns what a closed inbox refused; calls `wrong` with each block that is
    /// not as it was buffered.
    fn hand_over(&self, n_handovers: &AtomicU64, key: LinkKey, wrong: impl Fn(Marked, usize) + Copy) -> InTransit {
        self.bytes.set(0);
        let (Some(handover), Some(owner)) = (self.batch.link(key, wrong), self.owner.get()) else {
            return InTransit::NONE;
        };
        count::increment(n_handovers);
        owner.mailbox().inbox().push(handover).err().unwrap_or(InTransit::NONE)
    }
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct RemoteFrees {
    mailbox: Mailbox,
    /// What all heaps encode the links of blocks in transit with.
    key: Cell<LinkKey>,
    n_handovers: AtomicU64,
    /// Whether a slot is some owner's.
    has_slots: Cell<bool>,
    slots: [Slot; SLOTS],
}

impl RemoteFrees {
    /// Nothing buffered, and the mailbox of no heap yet.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            mailbox: Mailbox::new(),
            key: Cell::new(LinkKey::PLAIN),
            n_handovers: AtomicU64::new(0),
            has_slots: Cell::new(false),
            slots: [const { Slot::empty() }; SLOTS],
        }
    }

    /// Opens the mailbox for the heap that begins to live here.
    pub(crate) fn begin(&self, keys: &Keys) {
        self.key.set(keys.in_transit);
        self.slots.iter().for_each(Slot::leave);
        self.mailbox.open(keys.of_inbox);
    }

    /// What the links of batches are encoded with.
    #[inline(always)]
    pub(crate) fn key(&self) -> LinkKey {
        self.key.get()
    }

    /// Whether a block is buffered for its owner.
    pub(crate) fn holds(&self, block: *mut Node) -> bool {
        self.slots.iter().any(|slot| slot.batch.holds(block))
    }

    /// This heap's mailbox.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// How often blocks were handed over, ever: the atomic operations that remote frees cost. Any thread may read it.
    pub(crate) fn n_handovers(&self) -> u64 {
        self.n_handovers.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn slot(&self, generation: Generation) -> &Slot {
        &self.slots[generation.number() as usize % SLOTS]
    }

    /// The slot that blocks of an owner are buffered in, if there is one.
    #[inline]
    pub(crate) fn slot_of(&self, generation: Generation) -> Option<&Slot> {
        let slot = self.slot(generation);
        (slot.tag.get() == generation.tag()).then_some(slot)
    }

    /// The slot that blocks of pages with this entry are buffered in, if there is one and their bytes are not counted, and their class.
    #[inline(always)]
    pub(crate) fn slot_and_class(&self, entry: Entry) -> Option<(&Slot, usize)> {
        let slot = self.slot(entry.generation());
        Some((slot, entry.untagged(slot.tag.get()).class_below(UNCOUNTED_BOUND)?))
    }

    /// Buffers a block in the slot of its owner. Returns whether the slot is full: then it must be handed over before the next block.
    #[must_use]
    pub(crate) fn buffer(&self, slot: &Slot, block: FreeBlock) -> bool {
        slot.push(block, self.key())
    }

    /// As [`RemoteFrees::buffer`], of a block whose bytes are not counted.
    #[inline(always)]
    #[must_use]
    pub(crate) fn buffer_uncounted(&self, slot: &Slot, block: FreeBlock) -> bool {
        debug_assert!(block.class() < UNCOUNTED_BOUND);
        slot.batch.push(block, self.key())
    }

    /// Hands over what a slot has, which stays its owner's. Returns what a closed inbox refuses; calls `wrong` with the address of each block that is not
    /// as it was buffered, and what its mark says.
    pub(crate) fn hand_over(&self, slot: &Slot, wrong: impl Fn(Marked, usize) + Copy) -> InTransit {
        slot.hand_over(&self.n_handovers, self.key(), wrong)
    }

    /// Makes a slot that of an owner, `block` being the first that comes into it. Returns it, and what handing over the blocks of another owner in it left, as
    /// [`RemoteFrees::hand_over`] does.
    pub(crate) fn begin_slot(
        &self,
        (generation, owner): (Generation, Owner),
        block: &FreeBlock,
        wrong: impl Fn(Marked, usize) + Copy,
    ) -> (&Slot, InTransit) {
        let slot = self.slot(generation);
        let refused = self.hand_over(slot, wrong);
        slot.begin(generation, owner, block);
        self.has_slots.set(true);
        (slot, refused)
    }

    /// Hands over what is buffered, slot by slot, after which no slot is any owner's; calls `refused` with the blocks that closed inboxes refuse, and `wrong` as
    /// [`RemoteFrees::hand_over`] does.
    pub(crate) fn hand_all_over(&self, wrong: impl Fn(Marked, usize) + Copy, mut refused: impl FnMut(InTransit)) {
        if !self.has_slots.replace(false) {
            return;
        }
        for slot in &self.slots {
            let chain = self.hand_over(slot, wrong);
            slot.leave();
            if !chain.is_empty() {
                refused(chain);
            }
        }
    }

    /// Counts a block that was handed over by itself.
    pub(crate) fn count_handover(&self) {
        count::increment(&self.n_handovers);
    }

    /// Hands one block over to its owner at once.
    ///
    /// # Errors
    /// The block, if the owner's inbox is closed.
    pub(crate) fn hand_one_over(&self, owner: &Mailbox, block: FreeBlock) -> Result<(), FreeBlock> {
        owner.inbox().push_one(block, owner.key(), false)?;
        self.count_handover();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
