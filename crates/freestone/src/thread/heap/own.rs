//! The two proofs that let a thread use a heap.
//!
//! Long because: what a heap is composed of is reached through the proofs, each part by a method.
#![allow(unsafe_code)]
//!
//! ```text
//!  Current   the front of this thread's heap, or a placeholder: what the hot paths need
//!  Own       a heap that is alive and this thread's: everything
//! ```
//!
//! Both are copies of a pointer and cost nothing else. They are not `Send`: a proof stays with its thread.
//!
//! # Safety
//! The code that makes a proof ensures that it holds as long as a copy of it is used: `current` for the thread's own pointer, `life` for a new heap,
//! `gated` for a gate. The functions that take a proof need no other condition. A heap is `Sync` because without a proof only atomics can be reached.

use super::{HeapFront, ThreadHeap};
use crate::misuse::{Misuse, misuse};
use crate::page::LargeRunCache;
use crate::shared::Shared;
use crate::size_class::N_CLASSES;
use crate::span::{Entry, Generation, Layout, Untagged, View};
use crate::thread::accounts::Accounts;
use crate::thread::bins::Bins;
use crate::thread::burst::BurstPolicy;
use crate::thread::free_block::FreeBlock;
use crate::thread::growth::GrownBlocks;
use crate::thread::holdings::Holdings;
use crate::thread::keys::Keys;
use crate::thread::lookup::Lookup;
use crate::thread::remote_frees::RemoteFrees;
use crate::thread::span_purge::SpanPurge;
use crate::thread::spans::OwnedSpans;
use crate::thread::spans_ahead::SpansAhead;
use crate::thread::ticks::Ticks;
use crate::thread::watched::seat::WatchedHeap;
use core::marker::PhantomData;
use core::ptr;
use freestone_base::sync::Ordering;
use freestone_base::units::Pages;
use freestone_os::Os;

// SAFETY: what a shared reference offers are atomics, and fields that are written under the registry's lock.
unsafe impl<O: Os> Sync for ThreadHeap<O> {}
// SAFETY: as above; a placeholder is never written to, but for the number of one that one thread alone has.
unsafe impl<O: Os> Sync for HeapFront<O> {}
// SAFETY: a heap changes threads with its gate, and between two lives of its record; both order what the threads do.
unsafe impl<O: Os> Send for ThreadHeap<O> {}

impl<O: Os + 'static> ThreadHeap<O> {
    /// Begins a heap of `generation` in a record that is zero, or was used before. It is watched if it gets a random number for that.
    ///
    /// # Safety
    /// - The registry's lock is held, and the record is in no heap's use.
    /// - `shared` outlives every heap that begins with it; its secret was drawn if the heap is watched.
    pub(crate) unsafe fn begin(
        &self,
        shared: *const Shared<O>,
        view: View,
        generation: Generation,
        keys: Keys,
        watched: Option<u64>,
    ) {
        match watched {
            Some(random) => {
                self.front.bins.begin(View::EMPTY, Generation::NONE, keys.of_bins);
                // SAFETY: it outlives this heap (this function's contract).
                self.front.watched.begin(view, generation, unsafe { &*shared }, random);
            }
            None => {
                self.front.bins.begin(view, generation, keys.of_bins);
                self.front.watched.leave();
            }
        }
        self.front.shared.set(shared);
        self.generation.store(generation.number(), Ordering::Relaxed);
        self.change_thread();
        self.profile.begin();
        self.remote.begin(&keys);
    }

    /// The parts that all heaps share; `None` for a placeholder.
    #[inline]
    pub(crate) fn shared(&self) -> Option<&Shared<O>> {
        // SAFETY: null, or set at a creation to a `Shared` that outlives all heaps created with it (the contract of `begin`).
        unsafe { self.front.shared.get().as_ref() }
    }

    /// This thread's heap, for the hot paths.
    ///
    /// # Safety
    /// - The heap is alive and the calling thread's, as long as the returned value is used.
    #[inline(always)]
    pub(crate) unsafe fn as_current(&self) -> Current<'_, O> {
        // SAFETY: this function's contract.
        unsafe { Current::at(ptr::from_ref(self).cast()) }
    }

    /// The proof that this heap is the calling thread's.
    ///
    /// # Safety
    /// - The heap is alive and the calling thread's, as long as the returned value or a copy of it is used.
    /// - `holdings` are those of the explicit heap that this thread heap is part of; `None` if it is part of none.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn as_own<'a>(&'a self, holdings: Option<&'a Holdings>) -> Own<'a, O> {
        debug_assert!(!self.front.is_placeholder());
        Own { heap: self, holdings, not_send: PhantomData }
    }
}

/// This thread's heap, or a placeholder.
#[derive(Debug)]
pub(crate) struct Current<'a, O: Os + 'static> {
    front: *const HeapFront<O>,
    heap: PhantomData<&'a ThreadHeap<O>>,
}

impl<O: Os + 'static> Clone for Current<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O: Os + 'static> Copy for Current<'_, O> {}

impl<'a, O: Os + 'static> Current<'a, O> {
    /// This thread's heap, or a placeholder.
    ///
    /// # Safety
    /// - `front` is a placeholder; or it was made from a pointer to a heap, which is alive and the calling thread's. Both as long as the returned value or a
    ///   copy of it is used.
    #[inline(always)]
    pub(crate) unsafe fn at(front: *const HeapFront<O>) -> Self {
        Self { front, heap: PhantomData }
    }

    #[inline(always)]
    fn front(self) -> &'a HeapFront<O> {
        // SAFETY: a placeholder or a heap's first part, which stays (the contract of `at`).
        unsafe { &*self.front }
    }

    /// Takes a block out of a bin; null if the bin is empty. `class` is below `N_CLASSES`.
    #[inline(always)]
    #[must_use]
    pub(crate) fn pop(self, class: usize) -> *mut u8 {
        self.front().bins.pop(class)
    }

    /// Puts a freed block into its bin, whoever owns it, if there is room.
    ///
    /// # Errors
    /// The block, if there is none.
    #[inline(always)]
    pub(crate) fn try_push(self, block: FreeBlock) -> Result<(), FreeBlock> {
        self.front().bins.try_push(block)
    }

    /// The class of the block at `address`, and the heap, if the block's span is this heap's.
    #[inline(always)]
    pub(crate) fn own_class(self, address: usize) -> Option<(Own<'a, O>, usize)> {
        let (own, untagged) = self.untagged_entry(address)?;
        Some((own, untagged.class_below(N_CLASSES)?))
    }

    /// The entry of the page that a block at `address` would be in, without the heap's tag, as far as the heap's view reaches, and the heap.
    #[inline(always)]
    pub(crate) fn untagged_entry(self, address: usize) -> Option<(Own<'a, O>, Untagged)> {
        let (own, entry) = self.entry_of_block(address)?;
        Some((own, entry.untagged(self.front().bins.lookup().tag())))
    }

    /// The entry of the page that a block at `address` would be in, as far as the heap's view reaches, and the heap.
    #[inline(always)]
    pub(crate) fn entry_of_block(self, address: usize) -> Option<(Own<'a, O>, Entry)> {
        let entry = self.front().bins.lookup().view().entry_of_block(address)?;
        // SAFETY: no address is in a placeholder's view, so this heap is none.
        Some((unsafe { self.assume_own() }, entry))
    }

    /// Whether the heap is a placeholder.
    #[inline(always)]
    pub(crate) fn is_placeholder(self) -> bool {
        self.front().is_placeholder()
    }

    /// Whether the heap is neither a placeholder nor watched.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.front().bins.lookup().view().reach() != 0
    }

    /// The class of the small block at `address`, whoever owns its span, as far as the heap's view reaches. Of an explicit heap's block, which may
    /// have a trailer, nothing is said.
    #[inline(always)]
    pub(crate) fn small_class(self, address: usize) -> Option<usize> {
        let entry = self.front().bins.lookup().view().entry(address)?;
        if entry.generation().is_explicit() { None } else { entry.class() }
    }

    /// The heap's number, which findings name; 0 of a placeholder.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.front().number()
    }

    /// The heap, unless it is a placeholder.
    #[inline]
    pub(crate) fn own(self) -> Option<Own<'a, O>> {
        // SAFETY: this was just checked.
        (!self.front().is_placeholder()).then(|| unsafe { self.assume_own() })
    }

    /// The heap, if the heap profile has chosen the first block of a bin, or the link to that is damaged.
    #[inline(always)]
    pub(crate) fn with_chosen(self, class: usize) -> Option<Own<'a, O>> {
        // The bins of a placeholder are empty.
        if self.front().bins.seems_first_chosen(class) { self.own() } else { None }
    }

    /// The heap, what it has because it is watched, and which blocks are its own; `None` of a heap that is not watched.
    #[inline(always)]
    pub(crate) fn watched(self) -> Option<(Own<'a, O>, &'a WatchedHeap, &'a Lookup)> {
        let (watch, lookup) = self.front().watched.get_with_lookup()?;
        // SAFETY: only a heap that was created is watched, so this one is no placeholder.
        Some((unsafe { self.assume_own() }, watch, lookup))
    }

    /// As [`Current::watched`]; `None` also of a heap that clears freed blocks.
    #[inline(always)]
    pub(crate) fn watched_and_filling(self) -> Option<(Own<'a, O>, &'a WatchedHeap, &'a Lookup)> {
        let (watch, lookup) = self.front().watched.filling()?;
        // SAFETY: only a heap that was created is watched, so this one is no placeholder.
        Some((unsafe { self.assume_own() }, watch, lookup))
    }

    /// Its view of the address range, and its large-run cache.
    #[inline(always)]
    pub(crate) fn view_and_cache(self) -> (View, &'a LargeRunCache) {
        (self.front().bins.lookup().view(), &self.front().cache)
    }

    /// The heap.
    ///
    /// # Safety
    /// - It is no placeholder.
    #[inline(always)]
    pub(crate) unsafe fn assume_own(self) -> Own<'a, O> {
        // SAFETY: it is no placeholder (this function's contract), so the pointer was made from one to a heap, whose first field the front is.
        Own { heap: unsafe { &*self.front.cast() }, holdings: None, not_send: PhantomData }
    }
}

/// The proof that a heap is alive and that the thread which has the proof is the heap's thread. Costs nothing but the pointer.
#[derive(Debug)]
pub(crate) struct Own<'a, O: Os + 'static> {
    heap: &'a ThreadHeap<O>,
    /// Of an explicit heap.
    holdings: Option<&'a Holdings>,
    not_send: PhantomData<*const u8>,
}

impl<O: Os + 'static> Clone for Own<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O: Os + 'static> Copy for Own<'_, O> {}

impl<'a, O: Os + 'static> Own<'a, O> {
    /// The heap, as any thread may use it.
    #[must_use]
    pub(crate) fn heap(self) -> &'a ThreadHeap<O> {
        self.heap
    }

    /// The parts that all heaps share.
    #[inline]
    pub(crate) fn shared(self) -> &'a Shared<O> {
        // SAFETY: set at the heap's creation to a `Shared` that outlives all heaps created with it (the contract of `begin`).
        unsafe { &*self.heap.front.shared.get() }
    }

    /// Where things are in the address range.
    #[inline]
    pub(crate) fn layout(self) -> &'a Layout {
        // SAFETY: a heap begins once the page heap is open, in this thread or before it got the heap.
        unsafe { self.shared().pages.opened_layout() }
    }

    /// What an explicit heap has beside the thread heap; `None` for other heaps.
    pub(crate) fn holdings(self) -> Option<&'a Holdings> {
        self.holdings
    }

    /// Whether the heap's limit, if it has one, lets it have `more`.
    pub(crate) fn has_room(self, more: Pages) -> bool {
        self.holdings.is_none_or(|holdings| holdings.has_room(&self.shared().pages, self.spans().n_pages(), more))
    }

    /// How many heaps share what its bins, or its quarantine, may have: threads' for a thread's heap, for idle explicit heaps take nothing; all for an explicit one.
    pub(crate) fn n_sharing(self) -> u32 {
        let usage = &self.shared().usage;
        if self.holdings.is_some() { usage.n_heaps() } else { usage.n_thread_heaps() }
    }

    /// Whether its links are encoded and its blocks' marks count.
    #[inline]
    pub(crate) fn is_hardened(self) -> bool {
        !self.bins().key().is_plain()
    }

    /// Its bins.
    #[inline(always)]
    pub(crate) fn bins(self) -> &'a Bins {
        &self.heap.front.bins
    }

    /// What tells which blocks are its own.
    #[inline(always)]
    pub(crate) fn lookup(self) -> &'a Lookup {
        self.heap.front.watched.lookup().unwrap_or(self.heap.front.bins.lookup())
    }

    /// What it has if it is watched.
    #[inline]
    pub(crate) fn watch(self) -> Option<&'a WatchedHeap> {
        self.heap.front.watched.get()
    }

    /// The spans that it owns.
    #[inline]
    pub(crate) fn spans(self) -> &'a OwnedSpans {
        &self.heap.spans
    }

    /// Blocks of other owners that it has buffered, and its mailbox.
    #[inline]
    pub(crate) fn remote(self) -> &'a RemoteFrees {
        &self.heap.remote
    }

    /// Its large-run cache.
    #[inline]
    pub(crate) fn cache(self) -> &'a LargeRunCache {
        &self.heap.front.cache
    }

    /// When a burst ends.
    #[inline]
    pub(crate) fn burst(self) -> &'a BurstPolicy {
        &self.heap.burst
    }

    /// When OS pages inside its spans go back.
    #[inline]
    pub(crate) fn purge(self) -> &'a SpanPurge {
        &self.heap.purge
    }

    /// Its counts that are not yet published.
    #[inline]
    pub(crate) fn accounts(self) -> &'a Accounts {
        &self.heap.accounts
    }

    /// The runs that it has taken ahead for spans.
    pub(crate) fn ahead(self) -> &'a SpansAhead {
        &self.heap.ahead
    }

    /// Small blocks that it has moved because they grew.
    #[inline]
    pub(crate) fn grown(self) -> &'a GrownBlocks {
        &self.heap.grown
    }

    /// When its periodic work was last done.
    #[inline]
    pub(crate) fn ticks(self) -> &'a Ticks {
        &self.heap.ticks
    }

    /// Brings its view up to date, so that it covers every block that this thread can have the address of. Returns it.
    #[inline]
    pub(crate) fn renew_view(self) -> View {
        if self.lookup().view().reach() != self.shared().pages.reach() {
            self.take_newest_view();
        }
        self.lookup().view()
    }

    #[cold]
    #[inline(never)]
    fn take_newest_view(self) {
        self.lookup().set_view(self.shared().pages.view());
    }

    /// The generation that owns its spans.
    #[must_use]
    pub(crate) fn generation(self) -> Generation {
        self.heap.generation()
    }

    /// The time, for periodic work.
    pub(crate) fn now_ms(self) -> u32 {
        self.shared().os().now_ms() as u32
    }

    /// Publishes what the program holds of a class.
    pub(crate) fn publish_live(self, class: usize) {
        self.accounts().publish_live(class, self.bins().live(class), &self.shared().usage);
    }

    /// Publishes that the program holds `live` blocks of a class from this heap, if that has changed much since it was last published.
    #[inline]
    pub(crate) fn publish_if_much(self, class: usize, live: i64) {
        if self.accounts().has_changed_much(class, live) {
            self.publish_live(class);
        }
    }

    /// Publishes what has changed much since it was last published, when blocks of a class are taken out of spans: that the program holds `live` of them from this
    /// heap, and that what was free inside spans no longer is.
    #[inline]
    pub(crate) fn publish_taken(self, class: usize, live: i64) {
        self.publish_if_much(class, live);
        self.accounts().publish_taken(&self.shared().usage);
    }

    /// Publishes what the program holds of each class.
    #[cold]
    pub(crate) fn publish_all_live(self) {
        (0..N_CLASSES).for_each(|class| self.publish_live(class));
    }

    /// Counts a call of the thread's exit hook. Returns how many there were before.
    pub(crate) fn count_exit_round(self) -> u32 {
        let round = self.heap.thread.exit_rounds.get();
        self.heap.thread.exit_rounds.set(round + 1);
        round
    }

    /// Reports a pointer that the program should not have passed.
    #[cold]
    #[inline(never)]
    pub(crate) fn report(self, what: Misuse, address: usize) {
        misuse(self.shared().settings(), what, address, self.heap.front.number.get());
    }
}
