//! The inbox of a heap: where other threads hand over its blocks.
#![allow(unsafe_code)]
//!
//! # Safety
//! As for all of [`super`].

use super::{Handover, InTransit};
use crate::span::free_node;
use crate::thread::free_block::{FreeBlock, Stretch};
use core::ptr;
use freestone_base::inbox::{Inbox, LinkKey};

/// The inbox of a heap: free small blocks only, each marked. Any thread pushes; taking, closing and opening are for the heap's thread.
#[derive(Debug)]
pub(crate) struct BlockInbox(Inbox);

impl BlockInbox {
    /// An empty, open inbox.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self(Inbox::new())
    }

    /// Opens a closed inbox for its next owner.
    pub(crate) fn open(&self) {
        self.0.open();
    }

    /// Adds blocks with one atomic operation.
    ///
    /// # Errors
    /// The blocks, if the inbox is closed.
    pub(crate) fn push(&self, handover: Handover) -> Result<(), InTransit> {
        let Handover { chain, key } = &handover;
        // SAFETY: the chain is linked from first to last, and was the value's to give.
        if unsafe { self.0.push(chain.first, chain.last, *key) } { Ok(()) } else { Err(handover.into_blocks()) }
    }

    /// Adds one block. `is_suspect`: it was marked when the program freed it, and the owner finds out whether it was free.
    ///
    /// # Errors
    /// The block, if the inbox is closed.
    pub(crate) fn push_one(&self, block: FreeBlock, key: LinkKey, is_suspect: bool) -> Result<(), FreeBlock> {
        let (class, node) = (block.class(), block.into_node());
        if is_suspect {
            // SAFETY: the block is free, and was the value's.
            unsafe { free_node::mark_suspect(node) };
        } else {
            // SAFETY: as above.
            unsafe { free_node::write_in_transit(node, ptr::null_mut(), node, key) };
        }
        // SAFETY: as above: a chain of one.
        if unsafe { self.0.push(node, node, key) } {
            return Ok(());
        }
        // SAFETY: an inbox that refuses a block leaves it to the pusher.
        Err(unsafe { FreeBlock::new(node.cast(), class) })
    }

    /// Adds a stretch again that came out of an inbox: it is still marked. It is lost if the inbox is closed.
    pub(crate) fn push_stretch(&self, stretch: Stretch, key: LinkKey) {
        let node = stretch.into_node();
        // SAFETY: the first block of the stretch is free, and was the value's: a chain of one.
        let _ = unsafe { self.0.push(node, node, key) };
    }

    /// Takes all of it, as any thread may. `key` says what it is linked with: it is asked afterwards, for the heap may have begun to live just before.
    pub(crate) fn take_for_owner(&self, key: impl Fn() -> LinkKey) -> InTransit {
        let blocks = self.0.take_for_owner();
        InTransit::new(blocks, key())
    }

    /// Puts back what was taken, or the rest of it, if the inbox is empty and open.
    ///
    /// # Errors
    /// The blocks, if it is not.
    pub(crate) fn put_back(&self, blocks: InTransit) -> Result<(), InTransit> {
        if self.0.put_back(blocks.first) { Ok(()) } else { Err(blocks) }
    }

    /// Whether handovers are refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// The address of the block that came last, as of some moment; 0 if there is none, or the inbox is closed.
    pub(crate) fn newest(&self) -> usize {
        self.0.newest()
    }

    /// Takes what others have handed over, linked with `key`.
    pub(crate) fn take(&self, key: LinkKey) -> InTransit {
        InTransit::new(self.0.take(), key)
    }

    /// Closes the inbox and takes what was in it.
    pub(crate) fn close(&self, key: LinkKey) -> InTransit {
        InTransit::new(self.0.close(), key)
    }
}
