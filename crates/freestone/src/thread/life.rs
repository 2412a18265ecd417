//! Birth and death of thread heaps, and the list of all that ever were.
#![allow(unsafe_code)]
//!
//! ```text
//!            birth              death
//!  unborn ──────────▶ alive ─────────────▶ unborn      (the record is kept, the generation is not)
//!                       │ fork, in the child
//!                       └───────────────▶ orphaned
//! ```
//!
//! Invariants: records are metadata, never unmapped, linked in `all` from their first birth on; a generation belongs to one heap at a
//! time, and no page map entry names one whose heap has died.
//! Lock: rank [`RANK`], the outermost.
//!
//! # Safety
//! As stated at each function.

use crate::page::OwnedRun;
use crate::shared::Shared;
use crate::size_class::N_CLASSES;
use crate::span::{Owner, blocks};
use crate::thread::ThreadHeap;
use crate::thread::heap::{Life, Role};
use core::ptr;
use freestone_base::count;
use freestone_base::lock::Lock;
use freestone_base::sync::{AtomicPtr, Ordering};
use freestone_os::{Futex, Os};

/// Rank of the registry's lock.
pub const RANK: u8 = 10;

struct Registry<O: Os + 'static> {
    unborn: *mut ThreadHeap<O>,
    thread_owners: Generations,
    explicit_owners: Generations,
    n_born: u32,
    n_alive: u32,
}

/// The generations of one half of the numbers.
struct Generations {
    next: Owner,
    first: Owner,
    wrapped: bool,
}

impl Generations {
    const fn from(first: Owner) -> Self {
        Self { next: first, first, wrapped: false }
    }
}

// SAFETY: pointers to records, which any thread may hold.
unsafe impl<O: Os> Send for Registry<O> {}

/// All thread heaps.
pub struct Threads<O: Os + 'static> {
    registry: Lock<Registry<O>, Futex, RANK>,
    all: AtomicPtr<ThreadHeap<O>>,
}

impl<O: Os + 'static> Threads<O> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        let registry = Registry {
            unborn: ptr::null_mut(),
            thread_owners: Generations::from(Owner::FIRST),
            explicit_owners: Generations::from(Owner::FIRST_EXPLICIT),
            n_born: 0,
            n_alive: 0,
        };
        Self { registry: Lock::new(registry), all: AtomicPtr::new(ptr::null_mut()) }
    }

    /// A heap for a thread, for the threads that cannot have one, or for an explicit heap; `None` when memory runs out.
    ///
    /// # Safety
    /// - `shared` outlives every heap born from it, and all births of this list use the same one.
    pub unsafe fn birth(&self, shared: &Shared<O>, role: Role) -> Option<&ThreadHeap<O>> {
        shared.pages.open()?;
        let mut registry = self.registry.lock();
        let mut heap = registry.unborn;
        if heap.is_null() {
            heap = shared.pages.metadata(size_of::<ThreadHeap<O>>())?.cast();
            // SAFETY: zeroed storage of the right size and alignment. Zero is a valid value of every field, and what an unborn heap has but
            // for its tag: writing the rest would touch memory that a thread with few size classes never needs.
            unsafe {
                registry.n_born += 1;
                (*heap).number.set(registry.n_born);
                (*heap).next.store(self.all.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.all.store(heap, Ordering::Release);
        } else {
            // SAFETY: records in this list are nobody's.
            registry.unborn = unsafe { (*heap).next_unborn.load(Ordering::Relaxed) };
        }
        registry.n_alive += 1;
        shared.usage.set_n_heaps(registry.n_alive);
        let generations =
            if role == Role::Explicit { &mut registry.explicit_owners } else { &mut registry.thread_owners };
        let owner = self.next_owner(generations);
        // SAFETY: as above.
        let heap = unsafe { &*heap };
        heap.become_alive(shared, shared.pages.view(), owner, role);
        Some(heap)
    }

    /// A generation that no heap has. Each is new, until 2^23 have been; then those still in use are passed over.
    fn next_owner(&self, generations: &mut Generations) -> Owner {
        loop {
            let owner = generations.next;
            generations.next = owner.next();
            generations.wrapped |= generations.next == generations.first;
            if !generations.wrapped || !self.iter().any(|heap| heap.life() != Life::Unborn && heap.owner() == owner) {
                return owner;
            }
        }
    }

    /// Ends an explicit heap and everything in it, blocks that are out included. Blocks that were freed before are in its inbox or its spans,
    /// whoever freed them: none is collected elsewhere (`outbox`).
    ///
    /// # Safety
    /// - The heap is alive, explicit and the caller's; nobody uses a block of it any more, and no free of one is under way.
    pub unsafe fn destroy(&self, heap: &ThreadHeap<O>) {
        // A fork waits until the heap is empty: the child must not have half of it.
        let gate = heap.enter();
        // SAFETY: the heap is alive and, behind its gate, this thread's; its blocks are used by nobody (this function's contract).
        unsafe {
            let (shared, layout) = (heap.shared(), heap.layout());
            loop {
                let page = shared.pages.first_large(&heap.large);
                if page == 0 {
                    break;
                }
                heap.free_large(page);
            }
            // What was freed goes home first; then its spans are empty by decree. It has no blocks of others: it adopts none.
            heap.flush_all();
            for (class, spans) in heap.spans.iter().enumerate() {
                let mut page = spans.current.replace(0);
                loop {
                    if page == 0 {
                        page = spans.partial.pop(&layout);
                    }
                    if page == 0 {
                        page = spans.full.pop(&layout);
                    }
                    if page == 0 {
                        break;
                    }
                    heap.write_off(class, core::mem::take(&mut page), shared);
                }
            }
            drop(gate);
            self.death(heap);
        }
    }

    /// Ends a heap: everything it cached goes home, spans with blocks still out are abandoned, the record waits for its next life.
    ///
    /// # Safety
    /// - The heap is alive and the caller's, who does not use it afterwards.
    pub unsafe fn death(&self, heap: &ThreadHeap<O>) {
        // SAFETY: the caller's promise, for all of the body.
        unsafe {
            let shared = heap.shared();
            heap.drain();
            for class in 0..N_CLASSES {
                heap.flush(class, 0);
                heap.publish_live(class);
                heap.grant(class, 0);
                heap.bins[class].capacity.set(0);
                heap.bins[class].flushed.set(0);
            }
            shared.pages.empty_cache(&heap.shelf);
            heap.shelf.tick();
            heap.publish_large(0);
            heap.send_all();
            heap.count_free();
            let layout = heap.layout();
            for spans in &heap.spans {
                let current = spans.current.replace(0);
                if current != 0 {
                    shared.central.abandon(&shared.pages, &shared.usage, current);
                }
                for list in [&spans.partial, &spans.full] {
                    while !list.is_empty() {
                        shared.central.abandon(&shared.pages, &shared.usage, list.pop(&layout));
                    }
                }
            }
            // From here on pushers are refused, and find that no span is this heap's.
            let late = heap.inbox.close();
            heap.route_chain(late);
            let mut registry = self.registry.lock();
            heap.set_life(Life::Unborn);
            registry.n_alive -= 1;
            shared.usage.set_n_heaps(registry.n_alive);
            heap.next_unborn.store(registry.unborn, Ordering::Relaxed);
            registry.unborn = ptr::from_ref(heap).cast_mut();
        }
    }

    /// Every record there is, alive or not, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ThreadHeap<O>> {
        let mut next = self.all.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: records in the list are never unmapped.
            let heap = unsafe { next.as_ref()? };
            next = heap.next.load(Ordering::Relaxed);
            Some(heap)
        })
    }

    /// Heaps alive now.
    #[must_use]
    pub fn n_alive(&self) -> u32 {
        self.registry.lock().n_alive
    }

    /// Takes the registry's lock and every gate, before a fork. Which heaps have a gate in use is decided at birth, under the registry's lock.
    pub fn lock_for_fork(&self) {
        self.registry.acquire_raw();
        self.iter().filter(|heap| heap.has_gate()).for_each(|heap| heap.gate.acquire_raw());
    }

    /// Lets them go, in parent or child.
    ///
    /// # Safety
    /// - This thread took them with [`Threads::lock_for_fork`], or is the copy of the one that did.
    pub unsafe fn unlock_after_fork(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            // Of all heaps: a fork handler may have made one explicit, or ended one, meanwhile. A gate that was not taken stays as it is.
            self.iter().for_each(|heap| heap.gate.release_raw());
            self.registry.release_raw();
        }
    }

    /// In a forked child: the heaps of threads that did not come along are nobody's from now on. What they were doing when the fork
    /// happened cannot be known, so their spans stay as they are; blocks that come back to them are kept loose. They no longer count when
    /// the bins of those that are left are sized.
    ///
    /// # Safety
    /// - The process has one thread, whose heap is `own` (or null), and no lock of this module or below is held.
    pub unsafe fn orphan_others(&self, own: *const ThreadHeap<O>) {
        for heap in self.iter() {
            if heap.life() != Life::Alive || heap.has_gate() || ptr::eq(heap, own) {
                continue;
            }
            heap.set_life(Life::Orphaned);
            // SAFETY: the heap was alive.
            let shared = unsafe { heap.shared() };
            let mut registry = self.registry.lock();
            registry.n_alive -= 1;
            shared.usage.set_n_heaps(registry.n_alive);
            drop(registry);
            shared.pages.empty_cache(&heap.shelf);
            let mut block = heap.inbox.close();
            // SAFETY: blocks in an inbox are small, free, and in transit.
            unsafe {
                while !block.is_null() {
                    let next = (*block).next;
                    if let Some(class) = shared.pages.view().small_class(block.addr()) {
                        shared.central.keep_orphaned(class, block);
                    }
                    block = next;
                }
            }
        }
    }
}

impl<O: Os + 'static> ThreadHeap<O> {
    /// Frees a span with the blocks that are out of it: they count as freed.
    ///
    /// # Safety
    /// - The span at `page` is this heap's, in no list, and nobody uses its blocks.
    unsafe fn write_off(&self, class: usize, page: u32, shared: &Shared<O>) {
        // SAFETY: the caller's promise.
        unsafe {
            let span = shared.span(page);
            self.note_free(class, -i64::from(span.n_free.get()));
            let n_out = span.n_out.replace(0);
            count::add(&self.bins[class].remote_frees, u64::from(n_out));
            self.take_out(class, -i64::from(n_out));
            blocks::clear(shared.pages.layout(), page);
            shared.pages.free(OwnedRun::at(page));
        }
    }
}

impl<O: Os + 'static> Default for Threads<O> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
