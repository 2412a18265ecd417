//! A thread heap behind a gate: the thread that holds the gate is the heap's thread.
#![allow(unsafe_code)]
//!
//! The fallback heap, shared by the threads that cannot have a heap of their own, is one; an explicit heap contains one.
//!
//! # Safety
//! A heap is entered only between its creation and its end. Then the gate makes the thread that holds it the heap's thread.

use crate::thread::heap::ThreadHeap;
use crate::thread::heap::own::Own;
use crate::thread::holdings::Holdings;
use crate::thread::mailbox::Life;
use crate::thread::records::{Record, RecordLinks};
use freestone_base::lock::{Forker, Guard, Lock};
use freestone_os::{Futex, Os};

/// Rank of the gates.
pub(crate) const GATE_RANK: u8 = 15;

/// A thread heap and its gate. See the module header.
pub(crate) struct GatedHeap<O: Os + 'static> {
    heap: ThreadHeap<O>,
    gate: Lock<(), Futex, GATE_RANK>,
    links: RecordLinks<Self>,
}

impl<O: Os + 'static> Record for GatedHeap<O> {
    fn links(&self) -> &RecordLinks<Self> {
        &self.links
    }
}

impl<O: Os + 'static> GatedHeap<O> {
    /// The heap, as any thread may use it.
    pub(crate) fn heap(&self) -> &ThreadHeap<O> {
        &self.heap
    }

    /// Waits until no other thread is in the heap, and makes the caller its thread until the returned value is dropped.
    #[must_use]
    pub(crate) fn enter(&self) -> Entered<'_, O> {
        self.enter_with(None)
    }

    /// [`GatedHeap::enter`], for the explicit heap that this is part of.
    pub(crate) fn enter_with<'a>(&'a self, holdings: Option<&'a Holdings>) -> Entered<'a, O> {
        let guard = self.gate.lock();
        // SAFETY: the heap is alive, and this thread holds its gate as long as the returned value exists.
        Entered { own: unsafe { self.heap.as_own(holdings) }, _guard: guard }
    }

    /// [`GatedHeap::enter_with`] if no thread is in the heap, this one included, and it is alive; else `None`.
    pub(crate) fn try_enter_with<'a>(&'a self, holdings: Option<&'a Holdings>) -> Option<Entered<'a, O>> {
        let guard = self.gate.try_lock().filter(|_| self.heap.life() == Life::Alive)?;
        // SAFETY: the heap is alive, and this thread holds its gate as long as the returned value exists.
        Some(Entered { own: unsafe { self.heap.as_own(holdings) }, _guard: guard })
    }

    /// Keeps every thread out until the returned value is dropped: for who begins the heap.
    pub(crate) fn keep_closed(&self) -> impl Drop {
        self.gate.lock()
    }

    /// Takes the gate and keeps it, before a fork.
    pub(crate) fn lock_for_fork(&self) {
        self.gate.acquire_raw();
    }

    /// Releases the gate in parent or child. A gate that was not taken stays as it is.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        self.gate.release_raw(forker);
    }
}

/// A heap whose gate this thread holds.
pub(crate) struct Entered<'a, O: Os + 'static> {
    own: Own<'a, O>,
    _guard: Guard<'a, (), Futex, GATE_RANK>,
}

impl<O: Os + 'static> Entered<'_, O> {
    /// The heap.
    #[must_use]
    pub(crate) fn own(&self) -> Own<'_, O> {
        self.own
    }
}
