//! The outbox: blocks of other owners, collected and handed over in batches.
#![allow(unsafe_code)]
//!
//! ```text
//!  free of another's block ─▶ slot of its owner ── 32 blocks or 64 KiB ──▶ owner's inbox     one atomic operation
//!                                                                       └▶ closed: each to where its span is now
//! ```
//!
//! What arrives lies in the sender's cache: each block costs its owner a way to another processor, and its link is there. So a block
//! also names one that comes `AHEAD` blocks behind it, and the owner asks for that one in time (`drain` in `refill.rs`).
//!
//! Nothing stays here past the thread's exit, its next span, or 64 KiB an owner. Blocks of an explicit heap are not collected: each goes into
//! the heap's inbox at once, with an atomic operation of its own, so that a heap that is deleted has every block that was freed before.
//!
//! Invariants: a chain in a slot is this thread's alone; its blocks are counted as freed. The owner recorded in a slot may have died
//! since: a closed inbox says so, and whoever drains an inbox passes on what is not its own.
//!
//! # Safety
//! Blocks passed in are small blocks that nobody uses. Owners are records of thread heaps, which are never unmapped.

use crate::central::FreeOutcome;
use crate::misuse::{Misuse, misuse};
use crate::shared::Shared;
use crate::size_class::{GRANULE_BYTES, block_at, block_bytes};
use crate::span::Owner;
use crate::span::blocks::{Chain, Refused};
use crate::thread::ThreadHeap;
use crate::thread::heap::Life;
use core::ptr;
use freestone_base::count;
use freestone_base::inbox::Node;
use freestone_base::sync::{Ordering, spin_hint};
use freestone_os::Os;

/// Owners collected for at once.
const SLOTS: usize = 8;

/// Blocks that are handed over together.
const BATCH: u32 = 32;

/// A slot is handed over when it holds this much, however few blocks that is.
const BATCH_BYTES: usize = 64 * 1024;

/// How far ahead of its turn a block is asked for.
const AHEAD: usize = 8;

/// A block in an inbox.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sent {
    node: Node,
    /// A block that comes later in the chain, or null. A hint: nothing is read there.
    pub ahead: *mut Node,
}

const _: () = assert!(size_of::<Sent>() <= GRANULE_BYTES);

#[derive(Debug)]
struct Slot<O: Os + 'static> {
    owner: *mut ThreadHeap<O>,
    chain: Chain,
    bytes: usize,
    /// The last blocks of the chain, by their number in it.
    recent: [*mut Node; AHEAD],
}

impl<O: Os + 'static> Slot<O> {
    const EMPTY: Self =
        Self { owner: ptr::null_mut(), chain: Chain::EMPTY, bytes: 0, recent: [ptr::null_mut(); AHEAD] };

    /// Adds a block in front.
    ///
    /// # Safety
    /// - The block is free and the caller's.
    unsafe fn push(&mut self, block: *mut Node, bytes: usize) {
        let number = self.chain.len as usize;
        let ahead = core::mem::replace(&mut self.recent[number % AHEAD], block);
        // SAFETY: the caller's promise; every block has room for two words.
        unsafe {
            (*block.cast::<Sent>()).ahead = if number < AHEAD { ptr::null_mut() } else { ahead };
            self.chain.push(block);
        }
        self.bytes += bytes;
    }
}

/// See the module header.
#[derive(Debug)]
pub struct Outbox<O: Os + 'static> {
    slots: [Slot<O>; SLOTS],
}

impl<O: Os + 'static> Outbox<O> {
    /// Nothing collected.
    pub const EMPTY: Self = Self { slots: [const { Slot::EMPTY }; SLOTS] };
}

impl<O: Os + 'static> ThreadHeap<O> {
    /// Sends a block of another owner, or of none, on its way home. It counts as freed already, or is in transit. `generation` is what the
    /// entry of its page says of its owner.
    ///
    /// # Safety
    /// - `block` is a block of `class`, in the window, that nobody uses; the heap is alive.
    pub(crate) unsafe fn send(&self, block: *mut Node, class: usize, generation: Owner) {
        // SAFETY: the block's span exists as long as the block is out; the outbox is this thread's.
        unsafe {
            if generation.is_explicit() {
                return self.route(block, class);
            }
            let page = span_page(self.shared(), block);
            let owner: *mut Self = self.shared().span(page).owner.load(Ordering::Acquire).cast();
            if owner.is_null() || ptr::eq(owner, self) {
                self.route(block, class);
                return;
            }
            let outbox = &mut *self.outbox.get();
            let slot = &mut outbox.slots[(owner.addr() >> 12) % SLOTS];
            if slot.owner != owner {
                let (old, chain) = (slot.owner, core::mem::replace(&mut slot.chain, Chain::EMPTY));
                slot.owner = owner;
                slot.bytes = 0;
                self.deliver(old, chain);
            }
            // Delivering does not collect: the slot is as we left it.
            let slot = &mut (*self.outbox.get()).slots[(owner.addr() >> 12) % SLOTS];
            slot.push(block, block_bytes(class));
            if slot.chain.len >= BATCH || slot.bytes >= BATCH_BYTES {
                let chain = core::mem::replace(&mut slot.chain, Chain::EMPTY);
                slot.bytes = 0;
                self.deliver(owner, chain);
            }
        }
    }

    /// Hands everything collected over.
    pub(crate) fn send_all(&self) {
        for index in 0..SLOTS {
            // SAFETY: the outbox is this thread's, and the borrow ends before `deliver`.
            let (owner, chain) = unsafe {
                let slot = &mut (*self.outbox.get()).slots[index];
                slot.bytes = 0;
                (slot.owner, core::mem::replace(&mut slot.chain, Chain::EMPTY))
            };
            // SAFETY: the chain was collected for this owner.
            unsafe { self.deliver(owner, chain) };
        }
    }

    /// One atomic operation for the whole chain, if its owner is still there.
    unsafe fn deliver(&self, owner: *mut Self, chain: Chain) {
        if chain.len == 0 {
            return;
        }
        count::increment(&self.handovers);
        // SAFETY: the chain is ours; records of heaps are never unmapped.
        unsafe {
            if (*owner).inbox.push(chain.first, chain.last) {
                return;
            }
            self.route_chain(chain.first);
        }
    }

    /// Sends each block of a chain to wherever its span is now.
    ///
    /// # Safety
    /// - The chain's blocks are small blocks in transit; the heap is or was alive.
    pub(crate) unsafe fn route_chain(&self, chain: *mut Node) {
        let mut block = chain;
        while !block.is_null() {
            // SAFETY: the caller's promise.
            unsafe {
                let next = (*block).next;
                if let Some(class) = self.renew_view().small_class(block.addr()) {
                    self.route(block, class);
                }
                block = next;
            }
        }
    }

    /// Sends one block to wherever its span is now: to the central list, into this heap's span, or into its owner's inbox.
    ///
    /// # Safety
    /// - `block` is a small block of `class` in transit; the heap is or was alive.
    pub(crate) unsafe fn route(&self, block: *mut Node, class: usize) {
        // SAFETY: the caller's promise, for all of the body.
        unsafe {
            let shared = self.shared();
            let page = span_page(shared, block);
            loop {
                let owner: *mut Self = shared.span(page).owner.load(Ordering::Acquire).cast();
                if owner.is_null() {
                    match shared.central.free(&shared.pages, &shared.usage, page, class, block) {
                        FreeOutcome::Freed => return,
                        FreeOutcome::Refused(refused) => return self.refused(block, class, page, refused),
                        FreeOutcome::Adopted => continue,
                    }
                }
                if ptr::eq(owner, self) {
                    let layout = self.layout();
                    self.give_back(&layout, &self.turn_home(&layout, page), block, 1);
                    // Not in a flush: by the next one the span may be somebody else's.
                    return self.turn_to(0);
                }
                if (*owner).life() == Life::Orphaned {
                    return shared.central.keep_orphaned(class, block);
                }
                (*block.cast::<Sent>()).ahead = ptr::null_mut();
                if (*owner).inbox.push(block, block) {
                    count::increment(&self.handovers);
                    return;
                }
                // Its owner is just ending, or the span is just changing hands: look again.
                spin_hint();
            }
        }
    }

    /// Names a block that its span refused.
    pub(crate) fn refused(&self, block: *mut Node, class: usize, page: u32, refused: Refused) {
        let block_bytes = block_bytes(class);
        let what = match refused {
            Refused::FreeAlready => Misuse::DoubleFree { block_bytes },
            Refused::NotABlock => {
                // SAFETY: only heaps that are or were alive handle blocks.
                let offset = block.addr() - unsafe { self.layout() }.page_start(page).addr();
                let start = block_at(class, offset).0 * block_bytes;
                Misuse::Interior { block_bytes, offset: offset - start }
            }
        };
        // SAFETY: only heaps that are or were alive handle blocks.
        misuse(unsafe { self.shared().settings() }, what, block.addr(), self.number.get());
    }
}

/// First page of the small span that `block` is in.
///
/// # Safety
/// - `block` is a small block that is out.
pub(crate) unsafe fn span_page<O: Os>(shared: &Shared<O>, block: *mut Node) -> u32 {
    let page = shared.pages.view().page_of(block.addr()).unwrap_or(0) as u32;
    // SAFETY: the page is in use, so it has a record.
    unsafe { shared.span(page).first.load(Ordering::Relaxed) }
}
