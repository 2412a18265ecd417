//! A list that many threads push onto and one takes whole.
#![allow(unsafe_code)]
//!
//! ```text
//! head ─▶ newest ─▶ … ─▶ oldest ─▶ null        open
//! head = CLOSED                                closed: pushes are refused
//! ```
//!
//! The link lives in the first word of each node. A push adds a whole chain with one compare-and-swap, so the cost of an
//! atomic is shared by the batch; taking everything is one swap. There is no pop of one node, hence no ABA.
//!
//! Invariants: every chain pushed with success is returned by exactly one take or close; nothing is pushed while closed.
//! Ordering: push releases the nodes' contents, take and close acquire them; a refused push acquires what the closer did before.
//!
//! # Safety
//! Nodes are raw blocks that the pusher gives up; the only memory touched is their first word.

use crate::sync::{AtomicPtr, Ordering};
use core::ptr;

/// A block that is nobody's at the moment: its first word links to the next.
#[derive(Debug)]
#[repr(transparent)]
pub struct Node {
    /// The next block of the chain, or null.
    pub next: *mut Node,
}

/// Address that no node has, for a closed inbox.
const CLOSED: usize = 1;

/// The list. See the module header.
#[derive(Debug)]
pub struct Inbox {
    head: AtomicPtr<Node>,
}

impl Inbox {
    /// An empty, open inbox.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// An empty, open inbox.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Adds the chain `first … last`; `false` if the inbox is closed, and the chain, ending in null, is still the caller's.
    ///
    /// # Safety
    /// - `first` leads to `last` by its links, and all of the chain is the caller's to give away.
    #[must_use]
    pub unsafe fn push(&self, first: *mut Node, last: *mut Node) -> bool {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let closed = head.addr() == CLOSED;
            // SAFETY: `last` is the caller's until the exchange below succeeds. A refused chain ends where it did.
            unsafe { (*last).next = if closed { ptr::null_mut() } else { head } };
            if closed {
                return false;
            }
            match self.head.compare_exchange_weak(head, first, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
    }

    /// Whether there is nothing to take: a plain load, for the owner's slow path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() <= CLOSED
    }

    /// Takes everything; null if there is nothing or the inbox is closed. For the owner alone.
    #[must_use]
    pub fn take(&self) -> *mut Node {
        if self.is_empty() {
            return ptr::null_mut();
        }
        // Only the owner closes, so what is swapped out here is a chain.
        self.head.swap(ptr::null_mut(), Ordering::Acquire)
    }

    /// Closes the inbox and takes what was in it. Everything the owner did before is visible to those it refuses.
    #[must_use]
    pub fn close(&self) -> *mut Node {
        let chain = self.head.swap(ptr::without_provenance_mut(CLOSED), Ordering::AcqRel);
        if chain.addr() == CLOSED { ptr::null_mut() } else { chain }
    }

    /// Opens a closed inbox for its next owner.
    pub fn open(&self) {
        // Whoever learns that the owner is new learns it elsewhere, and in order.
        self.head.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
