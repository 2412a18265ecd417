//! What other threads know of a heap: its mailbox, where they hand over its blocks, and where it is in its life.
#![allow(unsafe_code)]
//!
//! Threads: any thread pushes to a mailbox and reads its life; taking and closing are for the heap's thread.
//!
//! # Safety
//! What is in an inbox was handed over: free small blocks, marked and linked with the key of blocks in transit.

use crate::thread::free_block::{FreeBlock, InTransit};
use core::ffi::c_void;
use core::ptr;
use freestone_base::inbox::{Inbox, LinkKey};
use freestone_base::sync::{AtomicU32, Ordering};

/// Where a heap is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Life {
    /// Its record is free for the next birth, or was never used.
    Unborn = 0,
    /// A thread's, or an explicit heap's.
    Alive,
    /// Of a thread that does not exist in this forked child: its spans stay as they are for good.
    Orphaned,
}

/// What other threads know of a heap: where to hand over its blocks. A span's record names it as the span's owner.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(super) inbox: Inbox,
    life: AtomicU32,
    /// Suspects that were handed over, ever.
    pub(super) n_suspects: AtomicU32,
}

impl Mailbox {
    /// Of no heap yet.
    pub(crate) const fn new() -> Self {
        Self { inbox: Inbox::new(), life: AtomicU32::new(Life::Unborn as u32), n_suspects: AtomicU32::new(0) }
    }

    /// What a span's record names as its owner.
    pub(crate) fn as_owner(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }

    /// Where the heap is in its life.
    pub(crate) fn life(&self) -> Life {
        match self.life.load(Ordering::Relaxed) {
            0 => Life::Unborn,
            1 => Life::Alive,
            _ => Life::Orphaned,
        }
    }

    /// Moves the heap on in its life.
    pub(crate) fn set_life(&self, life: Life) {
        self.life.store(life as u32, Ordering::Relaxed);
    }

    /// Opens the inbox for the heap that begins to live here.
    pub(crate) fn open(&self) {
        self.set_life(Life::Alive);
        self.inbox.open();
    }

    /// Takes what others have handed over.
    pub(crate) fn take(&self, key: LinkKey) -> InTransit {
        // SAFETY: what is in the inbox was pushed by `hand_over`: free small blocks, each marked.
        unsafe { InTransit::new(self.inbox.take(), key) }
    }

    /// Closes the inbox and takes what was in it. Pushes are refused from here on, and find that no span is this heap's.
    pub(crate) fn close(&self, key: LinkKey) -> InTransit {
        // SAFETY: as in `take`.
        unsafe { InTransit::new(self.inbox.close(), key) }
    }

    /// Hands one block over, marked already.
    ///
    /// # Errors
    /// The block, if the inbox is closed.
    pub(crate) fn hand_over(&self, block: FreeBlock, key: LinkKey) -> Result<(), FreeBlock> {
        let class = block.class();
        let node = block.into_node();
        // SAFETY: the block is free and was the caller's to give.
        if unsafe { self.inbox.push(node, node, key) } {
            return Ok(());
        }
        // SAFETY: a refused block is still ours.
        Err(unsafe { FreeBlock::new(node.cast(), class) })
    }
}

#[cfg(test)]
mod tests;
