//! Blocks that were freed where there was no heap to free them: by a signal handler in a thread that is starting, or by a thread that can have no heap because
//! memory is short. They are kept until a thread has one.
#![allow(unsafe_code)]
//!
//! Lock: [`RANK`]. Whoever frees the kept blocks holds it until all are back: an explicit heap that is deleted waits for its own, and a forked child has none
//! that a thread had taken out.
//!
//! # Safety
//! The inbox has links in freed blocks, which no other code uses.

use crate::shared::Shared;
use crate::thread::heap::own::Own;
use crate::thread::watched::homecoming::mend_canary;
use freestone_base::inbox::{Inbox, LinkKey, Node};
use freestone_base::lock::{Forker, Lock};
use freestone_os::{Futex, System};

/// Rank of the lock: above that of the gates, for the heap that frees the blocks may have one.
const RANK: u8 = 16;

/// The blocks. See the module header.
pub(super) struct FreedEarly {
    kept: Inbox,
    freeing: Lock<(), Futex, RANK>,
}

impl FreedEarly {
    /// None.
    pub(super) const fn new() -> Self {
        Self { kept: Inbox::new(), freeing: Lock::new(()) }
    }

    /// Keeps a block. An address outside the heap is ignored.
    ///
    /// # Safety
    /// - If `block` was returned by the allocator, it is freed by this call: no code uses it any more.
    #[cold]
    pub(super) unsafe fn keep(&self, shared: &Shared<System>, block: *mut u8) {
        if shared.pages.view().page_of(block.addr()).is_some() {
            let node = block.cast::<Node>();
            // SAFETY: the address is in the heap, and no code uses the block any more (this function's contract); every block has room for a link.
            let is_pushed = unsafe { self.kept.push(node, node, LinkKey::PLAIN) };
            debug_assert!(is_pushed, "this inbox is never closed");
        }
    }

    /// Frees what is kept, if there is any.
    pub(super) fn free_some(&self, own: Own<'_, System>) {
        if !self.kept.is_empty() {
            self.free_all(own);
        }
    }

    /// Frees all that was kept before the call, also what another thread has taken to free it.
    #[cold]
    #[inline(never)]
    pub(super) fn free_all(&self, own: Own<'_, System>) {
        let _freeing = self.freeing.lock();
        let mut block = self.kept.take();
        while !block.is_null() {
            // SAFETY: `keep` put the block into the inbox, which linked its first word to the next.
            let next = unsafe { (*block).next };
            mend_canary(own.shared(), block.cast());
            // SAFETY: the program freed the block, and it is in the list once.
            unsafe { own.free(block.cast()) };
            block = next;
        }
    }

    /// Takes the lock, before a fork.
    pub(super) fn lock_for_fork(&self) {
        self.freeing.acquire_raw();
    }

    /// Releases it, in parent or child.
    pub(super) fn unlock_after_fork(&self, forker: Forker) {
        self.freeing.release_raw(forker);
    }
}

#[cfg(test)]
mod tests;
