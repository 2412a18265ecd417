//! Explicit heaps: a thread heap behind a gate, with a list of its large blocks and a limit.
#![allow(unsafe_code)]
//!
//! ```text
//!  ExplicitHeap ─┬─ gated      gate, and the thread heap: bins and spans
//!                └─ holdings   large blocks, limit
//! ```
//!
//! Everything in the heap is deleted with it. So it adopts no abandoned span and takes no orphaned block, its large runs are cached by no thread,
//! and its generation is of the upper half: a thread that frees one of its blocks sees that in the page map and hands the block over at once.
//!
//! One of them is the heap profile's: sampled small blocks come from it. It never ends.
//!
//! # Safety
//! The heap of the profile is null or what [`make_sampled_heap`] was given: a heap of the same parts, whose record is never unmapped.

use crate::shared::Shared;
use crate::thread::gated::{Entered, GatedHeap};
use crate::thread::holdings::{BelowUse, Holdings};
use crate::thread::records::{Record, RecordLinks};
use core::ptr;
use freestone_os::Os;

/// See the module header.
pub(crate) struct ExplicitHeap<O: Os + 'static> {
    gated: GatedHeap<O>,
    holdings: Holdings,
    links: RecordLinks<Self>,
}

impl<O: Os + 'static> Record for ExplicitHeap<O> {
    fn links(&self) -> &RecordLinks<Self> {
        &self.links
    }
}

impl<O: Os + 'static> core::fmt::Debug for ExplicitHeap<O> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ExplicitHeap of {:?}", self.gated.heap())
    }
}

impl<O: Os + 'static> ExplicitHeap<O> {
    /// The thread heap behind its gate.
    pub(crate) fn gated(&self) -> &GatedHeap<O> {
        &self.gated
    }

    /// Its large blocks and its limit.
    pub(crate) fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// Waits until no other thread is in the heap, and makes the caller its thread until the returned value is dropped.
    #[must_use]
    pub(crate) fn enter(&self) -> Entered<'_, O> {
        self.gated.enter_with(Some(&self.holdings))
    }

    /// [`ExplicitHeap::enter`] if no thread is in the heap, this one included; else `None`.
    #[must_use]
    pub(crate) fn try_enter(&self) -> Option<Entered<'_, O>> {
        self.gated.try_enter_with(Some(&self.holdings))
    }

    /// Keeps every thread out until the returned value is dropped: for who begins the heap.
    pub(crate) fn keep_closed(&self) -> impl Drop {
        self.gated.keep_closed()
    }

    /// Limits the heap to `limit_pages`; `None` removes the limit.
    ///
    /// # Errors
    /// The heap has more than that already. The limit is as it was then.
    pub(crate) fn set_limit(&self, limit_pages: Option<u64>) -> Result<(), BelowUse> {
        let entered = self.enter();
        let own = entered.own();
        self.holdings.set_limit(&own.shared().pages, own.spans().n_pages(), limit_pages)
    }

    /// Removes the limit and the handle left in the record from its last use, or from being zero. Called at creation, before other threads can reach
    /// the heap.
    pub(crate) fn reset(&self) {
        self.holdings.reset();
    }
}

/// Makes the heap that sampled small blocks come from with `create`, unless another thread does so meanwhile. `false` without memory.
pub(crate) fn make_sampled_heap<'a, O: Os + 'static>(
    shared: &Shared<O>,
    create: impl FnOnce() -> Option<&'a ExplicitHeap<O>>,
) -> bool {
    let Some(heap) = create() else { return false };
    // Of two heaps that are made at once, one stays without use.
    shared.profile.set_heap(ptr::from_ref(heap).cast_mut().cast(), heap.gated().heap().generation().number());
    true
}

/// The heap that sampled small blocks come from, once there is one.
pub(crate) fn sampled_heap<O: Os + 'static>(shared: &Shared<O>) -> Option<&ExplicitHeap<O>> {
    // SAFETY: null, or an explicit heap of these parts, whose record is never unmapped and which never ends.
    unsafe { shared.profile.heap().cast::<ExplicitHeap<O>>().as_ref() }
}

#[cfg(test)]
mod tests;
