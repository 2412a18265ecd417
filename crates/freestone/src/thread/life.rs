//! Creation and end of heaps, and the records of all of them.
//!
//! Long because: creation and end of every kind of heap go through the one registry.
#![allow(unsafe_code)]
//!
//! ```text
//!                   create              end
//!  not yet created ─────────▶ alive ─────────────▶ not yet created      (the record is kept, the generation is not)
//!                              ▲│ fork, in the child
//!            the next thread's ││└──────────────▶ orphaned
//!                              │▼
//!                             spare ── after the decay time ──▶ ended, as above
//! ```
//!
//! Each kind of heap has records of its own: a record is always used for the same kind, a thread's heap, the fallback heap or an explicit heap. So a
//! fork, which takes the registry's lock and then every gate, finds exactly the records that have a gate.
//!
//! Invariants: records are metadata, never unmapped, and in a list from their first use on; a generation belongs to one heap at a
//! time, and no page map entry has one whose heap has ended.
//! Lock: rank [`RANK`]; only the lock of the callback for memory pressure (`api::pressure`) comes before it.
//!
//! # Safety
//! As stated at each function.

use crate::config::Harden;
use crate::page::ahead::RunsAhead;
use crate::shared::Shared;
use crate::size_class::N_CLASSES;
use crate::span::Generation;
use crate::stats::rows::HeapKind;
use crate::thread::explicit::ExplicitHeap;
use crate::thread::gated::GatedHeap;
use crate::thread::generations::Generations;
use crate::thread::heap::ThreadHeap;
use crate::thread::heap::own::Own;
use crate::thread::holdings::Holdings;
use crate::thread::idle::Looking;
use crate::thread::keys::KeySource;
use crate::thread::mailbox::Life;
use crate::thread::records::{Record, Records};
use crate::thread::spare::SpareHeaps;
use crate::thread::watched::exact_free;
use crate::thread::{emptying, large, orphaned, upkeep};
use core::ptr;
use freestone_base::lock::{Forker, Lock};
use freestone_base::sync::AtomicU32;
use freestone_os::{Futex, Os};

/// Rank of the registry's lock.
pub(crate) const RANK: u8 = 10;

struct Registry<O: Os + 'static> {
    of_threads: Generations,
    of_explicit: Generations,
    keys: KeySource,
    n_created: u32,
    n_alive: u32,
    /// Of these, explicit heaps.
    n_explicit: u32,
    spare: SpareHeaps<ThreadHeap<O>>,
}

impl<O: Os + 'static> Registry<O> {
    /// Ends the count of a heap as alive: it is `life` from now on.
    #[inline(never)]
    fn leave(&mut self, heap: &ThreadHeap<O>, life: Life) {
        heap.mailbox().set_life(life);
        self.n_alive -= 1;
        self.n_explicit -= u32::from(heap.generation().is_explicit());
        if let Some(shared) = heap.shared() {
            self.publish(shared);
        }
    }

    /// Publishes how many heaps are alive.
    fn publish(&self, shared: &Shared<O>) {
        shared.usage.set_n_heaps(self.n_alive, self.n_explicit);
    }
}

/// All heaps.
pub(crate) struct Threads<O: Os + 'static> {
    registry: Lock<Registry<O>, Futex, RANK>,
    looking: Looking,
    /// Spare heaps, for threads that do not hold the lock.
    n_spare: AtomicU32,
    threads: Records<ThreadHeap<O>>,
    fallbacks: Records<GatedHeap<O>>,
    explicit: Records<ExplicitHeap<O>>,
}

/// Which generations a heap has, and so whether its blocks may be deleted with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Threads,
    Explicit,
}

impl<O: Os + 'static> Threads<O> {
    /// None.
    #[must_use]
    pub(crate) const fn new() -> Self {
        let registry = Registry {
            of_threads: Generations::from(Generation::FIRST),
            of_explicit: Generations::from(Generation::FIRST_EXPLICIT),
            keys: KeySource::new(),
            n_created: 0,
            n_alive: 0,
            n_explicit: 0,
            spare: SpareHeaps::new(),
        };
        Self {
            registry: Lock::new(registry),
            looking: Looking::new(),
            n_spare: AtomicU32::new(0),
            threads: Records::new(),
            fallbacks: Records::new(),
            explicit: Records::new(),
        }
    }

    /// A heap for the calling thread; `None` when memory runs out.
    ///
    /// # Safety
    /// - `shared` outlives every heap created with it, and all heaps of this registry use the same one.
    /// - The heap is used by one thread at a time, and not after [`Threads::end`].
    pub(crate) unsafe fn create(&self, shared: &Shared<O>) -> Option<Own<'_, O>> {
        let kind = (Half::Threads, shared.settings().harden());
        // SAFETY: `shared` outlives the heap (this function's contract).
        let heap = unsafe { self.begin(shared, &self.threads, |heap| heap, |_| (), kind) }?;
        // SAFETY: the heap is alive, and the calling thread's (this function's contract).
        Some(unsafe { heap.as_own(None) })
    }

    /// A heap for the threads that cannot have one; `None` when memory runs out.
    ///
    /// # Safety
    /// - As for [`Threads::create`]; any number of threads may use the heap.
    pub(crate) unsafe fn create_fallback(&self, shared: &Shared<O>) -> Option<&GatedHeap<O>> {
        let kind = (Half::Threads, shared.settings().harden());
        // SAFETY: `shared` outlives the heap (this function's contract).
        unsafe { self.begin(shared, &self.fallbacks, GatedHeap::heap, GatedHeap::keep_closed, kind) }
    }

    /// An explicit heap without a limit, hardened as `level` says or as the process is, whichever is higher; `None` when memory runs out.
    ///
    /// # Safety
    /// - As for [`Threads::create`]; any number of threads may use the heap, until [`Threads::destroy`].
    pub(crate) unsafe fn create_explicit(&self, shared: &Shared<O>, level: Harden) -> Option<&ExplicitHeap<O>> {
        let level = level.max(shared.settings().harden());
        let (records, kind) = (&self.explicit, (Half::Explicit, level));
        // SAFETY: `shared` outlives the heap (this function's contract).
        let heap = unsafe { self.begin(shared, records, |heap| heap.gated().heap(), ExplicitHeap::keep_closed, kind) }?;
        heap.reset();
        Some(heap)
    }

    /// Begins a heap in a record of a kind, a used one if there is one. From the level `checks` on it is watched. `heap_of` a record is its heap, and `keep_closed` keeps
    /// others out of it meanwhile: they may enter one that they saw alive (`inboxes`).
    ///
    /// # Safety
    /// - `shared` outlives every heap created with it, and all heaps of this registry use the same one.
    unsafe fn begin<'a, T: Record, G>(
        &'a self,
        shared: &Shared<O>,
        records: &'a Records<T>,
        heap_of: impl Fn(&T) -> &ThreadHeap<O>,
        keep_closed: impl Fn(&'a T) -> G,
        (half, level): (Half, Harden),
    ) -> Option<&'a T> {
        shared.pages.open()?;
        let mut registry = self.registry.lock();
        let record = match records.take_unused() {
            Some(record) => record,
            None => {
                let storage = shared.pages.metadata(size_of::<T>())?.cast();
                registry.n_created += 1;
                let number = registry.n_created;
                // SAFETY: metadata is zeroed, aligned to a page, never unmapped, and was handed out just now; zero is a heap that is not yet created, and an open gate.
                unsafe { records.add(storage, |record| heap_of(record).front().set_number(number)) }
            }
        };
        let _closed = keep_closed(record);
        // SAFETY: the lock is held, and the record is in no heap's use; `shared` outlives the heap (this function's contract).
        if unsafe { !self.begin_heap(&mut registry, shared, heap_of(record), (half, level)) } {
            records.put_back(record);
            return None;
        }
        Some(record)
    }

    /// Begins a heap in a record; `false` if there is no memory for its watch. One function for records of every kind.
    ///
    /// # Safety
    /// - As for `begin`, and the record is in no heap's use.
    #[inline(never)]
    unsafe fn begin_heap(
        &self,
        registry: &mut Registry<O>,
        shared: &Shared<O>,
        heap: &ThreadHeap<O>,
        (half, level): (Half, Harden),
    ) -> bool {
        let (random, in_sandbox) = (|| shared.os().random(), shared.settings().sandbox());
        // In a sandbox the kernel is asked when the first heap begins, whatever its level, and not again.
        if in_sandbox {
            registry.keys.seed(random);
        }
        let mut number = || if in_sandbox { registry.keys.number(random) } else { random() };
        let watched = (level >= Harden::Checks).then(|| {
            if shared.settings().harden() == Harden::Full {
                shared.secret.begin_erasing();
            }
            shared.secret.draw(&mut number);
            number() ^ u64::from(registry.n_created)
        });
        if watched.is_some() && !heap.watched().prepare(|bytes| Some(shared.pages.metadata(bytes)?.cast())) {
            return false;
        }
        registry.n_alive += 1;
        registry.n_explicit += u32::from(matches!(half, Half::Explicit));
        registry.publish(shared);
        let is_in_use =
            |generation| self.iter().any(|heap| heap.life() != Life::NotCreated && heap.generation() == generation);
        let generation = match half {
            Half::Threads => registry.of_threads.draw(is_in_use),
            Half::Explicit => registry.of_explicit.draw(is_in_use),
        };
        let keys = registry.keys.draw(shared.settings().harden(), level, random);
        // SAFETY: the record is in no heap's use; `shared` outlives the heap (this function's contract).
        unsafe { heap.begin(shared, shared.pages.view(), generation, keys, watched) };
        true
    }

    /// Ends a thread's heap.
    ///
    /// # Safety
    /// - No copy of `own` is used afterwards, and its heap was created here.
    pub(crate) unsafe fn end(&self, own: Own<'_, O>) {
        emptying::give_all_back(own);
        self.retire(own.heap(), &self.threads, own.heap());
    }

    /// Ends a fallback heap.
    ///
    /// # Safety
    /// - No code uses the heap any more, and it was created here.
    pub(crate) unsafe fn end_fallback(&self, heap: &GatedHeap<O>) {
        emptying::give_all_back(heap.enter().own());
        self.retire(heap.heap(), &self.fallbacks, heap);
    }

    /// Ends an explicit heap and everything in it, blocks that are out included. Blocks that were freed before are in its inbox or its spans,
    /// whichever thread freed them: none is buffered elsewhere (`remote_frees`).
    ///
    /// # Safety
    /// - The heap was created here; no code uses it or a block of it any more, and no free of one is under way.
    pub(crate) unsafe fn destroy(&self, heap: &ExplicitHeap<O>) {
        // A fork waits at the gate until the heap is empty: the child must not have half of it.
        let entered = heap.enter();
        // SAFETY: no code uses a block of the heap any more (this function's contract).
        unsafe { delete_blocks(entered.own()) };
        emptying::give_all_back(entered.own());
        // Before others may enter: nothing of the heap is left for them.
        heap.gated().heap().mailbox().set_life(Life::NotCreated);
        drop(entered);
        self.retire(heap.gated().heap(), &self.explicit, heap);
    }

    /// Makes the record of a heap that has ended free for the next heap.
    fn retire<T: Record>(&self, heap: &ThreadHeap<O>, records: &Records<T>, record: &T) {
        let mut registry = self.registry.lock();
        registry.leave(heap, Life::NotCreated);
        records.put_back(record);
    }

    /// Every heap that there is a record of, alive or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ThreadHeap<O>> {
        self.iter_kinds().map(|(_, heap, _)| heap)
    }

    /// The same, with its kind and an explicit heap's holdings.
    pub(crate) fn iter_kinds(&self) -> impl Iterator<Item = (HeapKind, &ThreadHeap<O>, Option<&Holdings>)> {
        let threads = self.threads.iter().map(|heap| (HeapKind::Thread, heap, None));
        let fallbacks = self.fallbacks.iter().map(|heap| (HeapKind::Shared, heap.heap(), None));
        let explicit = self.explicit.iter();
        let explicit = explicit.map(|heap| (HeapKind::Explicit, heap.gated().heap(), Some(heap.holdings())));
        threads.chain(fallbacks).chain(explicit)
    }

    /// Heaps alive now.
    #[must_use]
    pub(crate) fn n_alive(&self) -> u32 {
        self.registry.lock().n_alive
    }

    /// Every record that has a gate, with an explicit heap's holdings.
    fn gated(&self) -> impl Iterator<Item = (&GatedHeap<O>, Option<&Holdings>)> {
        let explicit = self.explicit.iter().map(|heap| (heap.gated(), Some(heap.holdings())));
        self.fallbacks.iter().map(|heap| (heap, None)).chain(explicit)
    }

    /// Takes the registry's lock, that of `inboxes`, and every gate, before a fork.
    pub(crate) fn lock_for_fork(&self) {
        self.registry.acquire_raw();
        self.looking.lock_for_fork();
        self.gated().for_each(|(heap, _)| heap.lock_for_fork());
    }

    /// Releases them, in parent or child.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        // A fork handler may have made a heap meanwhile. Its gate was not taken, and stays as it is.
        self.gated().for_each(|(heap, _)| heap.unlock_after_fork(forker));
        self.looking.unlock_after_fork(forker);
        self.registry.release_raw(forker);
    }

    /// In a forked child: orphans the heaps of threads that do not exist there (`orphaned`). They no longer count when the bins of the heaps that are
    /// left are sized.
    ///
    /// # Safety
    /// - The process has one thread, whose heap is `own` if it has one, and no lock of this module or below is held.
    pub(crate) unsafe fn orphan_others(&self, own: Option<Own<'_, O>>) {
        for heap in self.threads.iter() {
            let is_own = own.is_some_and(|own| ptr::eq(own.heap(), heap));
            let Some(shared) = heap.shared().filter(|_| heap.life() == Life::Alive && !is_own) else { continue };
            self.registry.lock().leave(heap, Life::Orphaned);
            shared.usage.room().forget_lent();
            shared.pages.take_back(heap.cache(), RunsAhead::NONE);
            orphaned::add(&shared.central, heap.mailbox());
        }
    }
}

/// Frees every large block of an explicit heap, and every span with what is out of it: the blocks count as freed.
///
/// # Safety
/// - No code uses a block of the heap any more.
unsafe fn delete_blocks<O: Os>(own: Own<'_, O>) {
    let pages = &own.shared().pages;
    if let Some(holdings) = own.holdings() {
        while let Some(page) = pages.first_large(holdings.large()) {
            // SAFETY: the page starts a large block of the heap, which no code uses any more (this function's contract).
            if unsafe { !exact_free::hold_back(own, page) } {
                // SAFETY: as above, and it was not freed.
                unsafe { large::free(own, page) };
            }
        }
    }
    // What was freed goes to its spans first; then the spans are freed as they are. The bins hold no block of others: the heap adopts no span.
    upkeep::flush_all(own);
    for class in 0..N_CLASSES {
        while let Some(span) = own.spans().of(class).pop(own.layout()) {
            // SAFETY: no code uses a block of the heap (this function's contract).
            let (n_out, n_free) = unsafe { own.spans().free_with_blocks(pages, span) };
            own.accounts().add_free(class, -i64::from(n_free));
            own.bins().count_remote_frees(class, u64::from(n_out));
        }
    }
}

mod inboxes;
pub(crate) mod succession;

impl<O: Os + 'static> Default for Threads<O> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
