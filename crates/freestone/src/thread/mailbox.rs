//! What other threads know of a heap: its mailbox, where they hand over its blocks, and where it is in its life.
//!
//! Threads: any thread pushes to a mailbox and reads its life; taking and closing are for the heap's thread. What waits while that is idle is looked through by
//! another (`idle`).

use crate::thread::idle_note::IdleNote;
use crate::thread::in_transit::{BlockInbox, InTransit};
use core::ffi::c_void;
use core::ptr;
use freestone_base::inbox::LinkKey;
use freestone_base::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Where a heap is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Life {
    /// Its record is free for the next heap, or was never used.
    NotCreated = 0,
    /// A thread's, or an explicit heap's.
    Alive,
    /// Whole, and without a thread until the next one takes it (`spare`).
    Spare,
    /// Of a thread that does not exist in this forked child: its spans stay as they are for good.
    Orphaned,
}

/// What other threads know of a heap: where to hand over its blocks. A span's record names it as the span's owner.
#[derive(Debug)]
pub(crate) struct Mailbox {
    inbox: BlockInbox,
    /// What came out of the inbox while the heap's thread was idle, without the memory that could go back.
    looked_through: BlockInbox,
    idle: IdleNote,
    life: AtomicU32,
    key: AtomicUsize,
    /// Of an orphaned heap: the mailbox of the next in their ring.
    next_orphan: AtomicPtr<Mailbox>,
}

impl Mailbox {
    /// Of no heap yet.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        let key = AtomicUsize::new(LinkKey::PLAIN.bits());
        Self {
            inbox: BlockInbox::new(),
            looked_through: BlockInbox::new(),
            idle: IdleNote::new(),
            life: AtomicU32::new(Life::NotCreated as u32),
            key,
            next_orphan: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// What a span's record names as its owner.
    pub(crate) fn as_owner(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }

    /// Where the heap is in its life.
    pub(crate) fn life(&self) -> Life {
        match self.life.load(Ordering::Relaxed) {
            0 => Life::NotCreated,
            1 => Life::Alive,
            2 => Life::Spare,
            _ => Life::Orphaned,
        }
    }

    /// Moves the heap on in its life.
    pub(crate) fn set_life(&self, life: Life) {
        self.life.store(life as u32, Ordering::Relaxed);
    }

    /// What the links of blocks in the inbox are encoded with.
    #[inline(always)]
    pub(crate) fn key(&self) -> LinkKey {
        LinkKey::new(self.key.load(Ordering::Relaxed))
    }

    /// Opens the inbox for the heap that begins to live here. `key` is that of the links in it.
    pub(crate) fn open(&self, key: LinkKey) {
        self.key.store(key.bits(), Ordering::Relaxed);
        self.set_life(Life::Alive);
        self.looked_through.open();
        self.inbox.open();
    }

    /// Where others hand over the heap's blocks. Once it is closed, pushes are refused, and find that no span is this heap's.
    #[inline]
    pub(crate) fn inbox(&self) -> &BlockInbox {
        &self.inbox
    }

    /// Where blocks wait that `idle` has looked through: for that, and for the heap's thread.
    pub(crate) fn looked_through(&self) -> &BlockInbox {
        &self.looked_through
    }

    /// What `idle` notes of the heap.
    pub(crate) fn idle(&self) -> &IdleNote {
        &self.idle
    }

    /// Takes what others have handed over, for the heap's thread.
    pub(crate) fn take(&self) -> InTransit {
        let blocks = self.inbox.take(self.key());
        if !blocks.is_empty() {
            self.idle.note_taken();
        }
        blocks
    }

    /// Closes the mailbox, and passes what was in it to `late`.
    pub(crate) fn close(&self, late: impl Fn(InTransit)) {
        late(self.inbox.close(self.key()));
        late(self.looked_through.close(self.key()));
    }

    /// Opens what is closed, of an orphaned heap.
    pub(crate) fn reopen(&self) {
        for inbox in [&self.inbox, &self.looked_through] {
            if inbox.is_closed() {
                inbox.open();
            }
        }
    }

    /// The next one in the ring of orphaned heaps (`orphaned`).
    pub(crate) fn next_orphan(&self) -> &AtomicPtr<Mailbox> {
        &self.next_orphan
    }
}

#[cfg(test)]
mod tests;
