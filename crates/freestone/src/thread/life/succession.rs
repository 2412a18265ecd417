//! Heaps that pass from a thread to the next (`thread::spare` keeps them in between).
#![allow(unsafe_code)]
//!
//! # Safety
//! A heap is spare only in the list, and what takes it out, under the registry's lock, is its only user from then on. The lock orders what its last
//! thread did with it before what its next thread does.

use super::{Life, Registry, Threads};
use crate::page::ahead::RunsAhead;
use crate::shared::Shared;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::thread::heap::ThreadHeap;
use crate::thread::heap::own::Own;
use crate::thread::spare::SpareHeaps;
use crate::thread::{large, returns, route, upkeep};
use freestone_base::sync::Ordering;
use freestone_os::Os;

/// Which spare heaps are to end, and which inboxes are to be looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Heaps that have been spare, and inboxes from which nothing was taken, for the decay time.
    Expired,
    /// All heaps, and inboxes that have been left alone long enough since they were last looked through.
    Rested,
    /// All.
    All,
}

impl Which {
    /// Empties a heap's caches; if all is to go, also gives back the OS pages inside its spans in which no block is out.
    pub(crate) fn empty<O: Os>(self, own: Own<'_, O>) {
        upkeep::flush_all(own);
        if self == Self::All {
            returns::release_all(own);
        }
    }
}

impl<O: Os + 'static> Threads<O> {
    /// Leaves a thread's heap to the next thread, or ends it if it is not worth keeping: if it is watched, or much waits in its bins or will come back.
    ///
    /// # Safety
    /// - No copy of `own` is used afterwards, and its heap was created here.
    pub(crate) unsafe fn leave(&self, own: Own<'_, O>) {
        if own.watch().is_some() || own.shared().settings().decay_ms() == Some(0) {
            // SAFETY: this function's contract.
            return unsafe { self.end(own) };
        }
        let bytes = settle(own);
        let is_kept = {
            let mut registry = self.registry.lock();
            let is_kept = registry.spare.put(own.heap(), bytes, own.shared().os().now_ms());
            if is_kept {
                registry.leave(own.heap(), Life::Spare);
                self.n_spare.store(registry.spare.n(), Ordering::Relaxed);
            }
            is_kept
        };
        if !is_kept {
            // SAFETY: this function's contract; the heap is not in the list.
            unsafe { self.end(own) };
        }
    }

    /// A spare heap for the calling thread, if there is one.
    ///
    /// # Safety
    /// - As for [`Threads::create`].
    pub(crate) unsafe fn take_spare(&self) -> Option<Own<'_, O>> {
        if self.n_spare() == 0 {
            return None;
        }
        let heap = self.take_out(&mut self.registry.lock(), |spare| spare.take())?;
        // SAFETY: the heap is alive, and it was taken out of the list for the calling thread.
        Some(unsafe { heap.as_own(None) })
    }

    /// Spare heaps. Another thread may change the number meanwhile.
    #[inline]
    pub(crate) fn n_spare(&self) -> u32 {
        self.n_spare.load(Ordering::Relaxed)
    }

    /// Whether there is a spare heap, as of a moment at which no thread leaves or takes one.
    pub(crate) fn has_spare(&self) -> bool {
        self.registry.lock().spare.n() > 0
    }

    /// Ends spare heaps; those that expired another time, if a thread is in the registry: a signal handler may have interrupted this one there.
    #[cold]
    pub(crate) fn end_spare(&self, shared: &Shared<O>, which: Which) {
        let decay_ms = match which {
            Which::Expired => shared.settings().decay_ms(),
            Which::Rested | Which::All => Some(0),
        };
        let (Some(decay_ms), now_ms) = (decay_ms, shared.os().now_ms()) else { return };
        loop {
            let registry = if which == Which::Expired { self.registry.try_lock() } else { Some(self.registry.lock()) };
            let Some(mut registry) = registry else { return };
            let heap = self.take_out(&mut registry, |spare| spare.take_expired(now_ms, decay_ms));
            drop(registry);
            let Some(heap) = heap else { return };
            // SAFETY: the heap is alive, and it was taken out of the list for this thread.
            let own = unsafe { heap.as_own(None) };
            // SAFETY: the heap was created here, and this thread does not use it again.
            unsafe { self.end(own) };
        }
    }

    /// Takes a heap out of the list: it is alive, and the calling thread's.
    fn take_out(
        &self,
        registry: &mut Registry<O>,
        take: impl FnOnce(&mut SpareHeaps<ThreadHeap<O>>) -> Option<&ThreadHeap<O>>,
    ) -> Option<&ThreadHeap<O>> {
        let heap: *const ThreadHeap<O> = take(&mut registry.spare)?;
        // SAFETY: records of heaps are never unmapped.
        let heap = unsafe { &*heap };
        heap.mailbox().set_life(Life::Alive);
        heap.change_thread();
        registry.n_alive += 1;
        if let Some(shared) = heap.shared() {
            registry.publish(shared);
        }
        self.n_spare.store(registry.spare.n(), Ordering::Relaxed);
        Some(heap)
    }
}

/// Hands over what the heap has of others, and publishes what it counted. Returns the bytes of the blocks in its bins, and of its own that are with the
/// program: these come back into its inbox, where they wait.
fn settle<O: Os>(own: Own<'_, O>) -> usize {
    let shared = own.shared();
    if own.cache().cached_pages() > 0 {
        shared.pages.take_back(own.cache(), RunsAhead::NONE);
    }
    large::publish(own, 0);
    route::send_all(own);
    own.accounts().publish_free(&shared.usage);
    let mut bytes = 0;
    for class in 0..N_CLASSES {
        own.publish_live(class);
        let n_blocks = own.bins().len(class).max(own.spans().of(class).n_out());
        bytes += usize::try_from(n_blocks).unwrap_or(0) * block_bytes(class);
    }
    bytes
}

#[cfg(test)]
mod tests;
