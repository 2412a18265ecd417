//! A list that many threads push onto and one thread, the owner, takes as a whole; another may take it, too. Whoever has taken it may put it back.
#![allow(unsafe_code)]
//!
//! ```text
//! head ─▶ newest ─▶ … ─▶ oldest ─▶ null        open
//! head = CLOSED                                closed: pushes are refused
//! ```
//!
//! The link is in the first word of each node, encoded if the pusher has a key ([`LinkKey`]). A push adds a whole chain with one compare-and-swap, so a batch pays for one atomic operation;
//! taking everything is one swap. No operation removes a single node, so there is no ABA problem.
//!
//! Invariants: exactly one take or close returns each chain that was pushed or put back; nothing is pushed while the inbox is closed.
//! Ordering: push releases the nodes' contents, take and close acquire them; a refused push acquires what the closing thread wrote before.
//!
//! # Safety
//! Nodes are raw blocks that the pusher gives up. Only their first word is read or written here.

use crate::sync::{AtomicPtr, Ordering};
use core::ptr;

/// A free block: its first word links to the next.
#[derive(Debug)]
#[repr(transparent)]
pub struct Node {
    /// The next block of the chain, or null; encoded if the chain has a key.
    pub next: *mut Node,
}

/// What the links of a chain are encoded with: a link is the next block's address, exclusive-or the key. Without the key, whoever writes to
/// a free block does not know what the link that is read back will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct LinkKey(usize);

impl LinkKey {
    /// Links are addresses.
    pub const PLAIN: Self = Self(0);

    /// The key with these bits.
    #[must_use]
    pub const fn new(bits: usize) -> Self {
        Self(bits)
    }

    /// The bits of the key.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> usize {
        self.0
    }

    /// Whether links are addresses.
    #[inline(always)]
    #[must_use]
    pub const fn is_plain(self) -> bool {
        self.0 == 0
    }

    /// Encodes the address of the next block, or decodes a link.
    #[inline(always)]
    #[must_use]
    pub fn apply(self, link: *mut Node) -> *mut Node {
        link.map_addr(|address| address ^ self.0)
    }
}

/// The head of a closed inbox: an address that no node has.
const CLOSED: usize = 1;

/// The list. See the module header.
///
/// ```
/// use core::ptr;
/// use freestone_base::inbox::{Inbox, LinkKey, Node};
///
/// let inbox = Inbox::new();
/// let mut block = Node { next: ptr::null_mut() };
/// let chain: *mut Node = &mut block;
/// // SAFETY: a chain of one node, which no other code uses.
/// assert!(unsafe { inbox.push(chain, chain, LinkKey::PLAIN) });
/// assert_eq!(inbox.take(), chain);
/// assert!(inbox.is_empty());
///
/// let _ = inbox.close();
/// // SAFETY: as above.
/// assert!(!unsafe { inbox.push(chain, chain, LinkKey::PLAIN) }, "a closed inbox refuses");
/// ```
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

    /// Adds the chain `first … last`, whose links are encoded with `key`. Returns `false` if the inbox is closed; the caller then still has the
    /// chain, which ends in null.
    ///
    /// # Safety
    /// - The links lead from `first` to `last`, and no other thread reads or writes a node of the chain.
    #[must_use]
    pub unsafe fn push(&self, first: *mut Node, last: *mut Node, key: LinkKey) -> bool {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let closed = head.addr() == CLOSED;
            // SAFETY: `last` is not in the list before the exchange below succeeds, so no other thread touches it.
            unsafe { (*last).next = key.apply(if closed { ptr::null_mut() } else { head }) };
            if closed {
                return false;
            }
            match self.head.compare_exchange_weak(head, first, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
    }

    /// Whether there is nothing to take: one relaxed load.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() <= CLOSED
    }

    /// Takes everything; null if the inbox is empty or closed. For the owner alone.
    #[must_use]
    pub fn take(&self) -> *mut Node {
        if self.is_empty() {
            return ptr::null_mut();
        }
        // Only the owner closes, so the head is not the mark of a closed inbox.
        self.head.swap(ptr::null_mut(), Ordering::Acquire)
    }

    /// Takes everything, as any thread may; null if the inbox is empty or closed.
    #[must_use]
    pub fn take_for_owner(&self) -> *mut Node {
        let mut head = self.head.load(Ordering::Relaxed);
        // An exchange for whatever is there would open a closed inbox.
        while head.addr() > CLOSED {
            match self.head.compare_exchange_weak(head, ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        if head.addr() == CLOSED { ptr::null_mut() } else { head }
    }

    /// Puts back what was taken, or the rest of it: `first` and what it links to, if the inbox is empty and open. Returns whether it was.
    #[must_use]
    pub fn put_back(&self, first: *mut Node) -> bool {
        self.head.compare_exchange(ptr::null_mut(), first, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Whether pushes are refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: what the closing thread wrote before is seen, as by a push that is refused.
        self.head.load(Ordering::Acquire).addr() == CLOSED
    }

    /// The address of what was pushed last, as of some moment; 0 if the inbox is empty or closed.
    #[must_use]
    pub fn newest(&self) -> usize {
        self.head.load(Ordering::Relaxed).addr() & !CLOSED
    }

    /// Closes the inbox and takes what was in it. A thread whose push is refused sees everything that the owner wrote before.
    #[must_use]
    pub fn close(&self) -> *mut Node {
        let chain = self.head.swap(ptr::without_provenance_mut(CLOSED), Ordering::AcqRel);
        if chain.addr() == CLOSED { ptr::null_mut() } else { chain }
    }

    /// Opens a closed inbox for its next owner.
    pub fn open(&self) {
        // Relaxed: other threads learn of the next owner elsewhere, through an acquiring load.
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
