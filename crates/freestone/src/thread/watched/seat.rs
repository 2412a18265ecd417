//! What a heap has if it is watched: a lookup that only the slow ways see, a source of random numbers, a quarantine, and magazines.
#![allow(unsafe_code)]
//!
//! The [`WatchedHeap`] is made at the first creation of a watched heap in a record, and stays with the record: metadata is never freed.
//!
//! # Safety
//! The pointer is null or that of a [`WatchedHeap`] in metadata, which is never unmapped.

use crate::size_class::N_CLASSES;
use crate::span::{Generation, View};
use crate::thread::lookup::Lookup;
use crate::thread::watched::magazine::Magazine;
use crate::thread::watched::quarantine::Quarantine;
use core::cell::Cell;
use core::ptr;
use freestone_base::sync::{AtomicBool, AtomicPtr, Ordering};

/// What a watched heap has. Zero is valid.
#[derive(Debug)]
pub(crate) struct WatchedHeap {
    random: Cell<u64>,
    /// Blocks that the heap handed out, less those that its thread freed.
    live: Cell<i64>,
    /// Blocks that came from spans since nothing was live.
    burst: Cell<u32>,
    magazines: [Magazine; N_CLASSES],
    quarantine: Quarantine,
}

/// So many blocks that came from spans are a burst.
const BURST_LEAST: u32 = 1024;

impl WatchedHeap {
    /// Freed blocks that wait.
    #[inline]
    pub(crate) fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }

    /// Free blocks of a class that are handed out next.
    #[inline]
    pub(crate) fn magazine(&self, class: usize) -> &Magazine {
        &self.magazines[class]
    }

    /// Every block that is out of its span and not the program's, for checks.
    pub(crate) fn held(&self) -> impl Iterator<Item = *mut u8> {
        self.quarantine.iter().chain(self.magazines.iter().flat_map(Magazine::iter))
    }

    /// Counts a block that is handed out.
    #[inline(always)]
    pub(crate) fn count_alloc(&self) {
        self.live.set(self.live.get() + 1);
    }

    /// Counts blocks that came from spans.
    pub(crate) fn count_brought(&self, n: u32) {
        self.burst.set(self.burst.get().saturating_add(n));
    }

    /// Counts a block that is freed. Returns whether it was the last one of a burst.
    #[inline(always)]
    pub(crate) fn count_free(&self) -> bool {
        self.live.set(self.live.get() - 1);
        self.live.get() <= 0 && self.burst.get() >= BURST_LEAST && self.burst.replace(0) > 0
    }

    /// The next random number.
    #[inline]
    pub(crate) fn random(&self) -> u32 {
        // Marsaglia's xorshift: never zero, and good enough to choose among free blocks.
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        (state >> 32) as u32
    }
}

/// See the module header. Zero is valid: the heap is not watched.
#[derive(Debug)]
pub(crate) struct WatchSeat {
    watch: AtomicPtr<WatchedHeap>,
    is_on: AtomicBool,
    lookup: Lookup,
}

impl WatchSeat {
    /// Of a heap that is not watched.
    pub(crate) const fn empty() -> Self {
        Self { watch: AtomicPtr::new(ptr::null_mut()), is_on: AtomicBool::new(false), lookup: Lookup::empty() }
    }

    /// Has a [`WatchedHeap`] from now on; `false` when memory runs out. `storage` gives zeroed bytes that are never unmapped, aligned to 64.
    pub(crate) fn prepare(&self, storage: impl FnOnce(usize) -> Option<*mut WatchedHeap>) -> bool {
        if self.watch.load(Ordering::Relaxed).is_null() {
            let Some(storage) = storage(size_of::<WatchedHeap>()) else { return false };
            self.watch.store(storage, Ordering::Release);
        }
        true
    }

    /// Begins a life in which the heap is watched; [`WatchSeat::prepare`] has returned `true`.
    pub(crate) fn begin(&self, view: View, generation: Generation, random: u64) {
        self.is_on.store(true, Ordering::Relaxed);
        self.lookup.begin(view, generation);
        if let Some(watch) = self.get() {
            watch.random.set(random | 1);
            watch.live.set(0);
            watch.burst.set(0);
        }
    }

    /// Begins a life in which it is not.
    pub(crate) fn leave(&self) {
        self.is_on.store(false, Ordering::Relaxed);
    }

    /// What the heap has if it is watched. Any thread may read the counters of it.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&WatchedHeap> {
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: null, or in metadata, which is zeroed, aligned, and never unmapped; zero is a valid `WatchedHeap`.
        unsafe { self.watch.load(Ordering::Acquire).as_ref() }
    }

    /// What the heap has if it is watched, and which blocks are its own.
    #[inline(always)]
    pub(crate) fn get_with_lookup(&self) -> Option<(&WatchedHeap, &Lookup)> {
        Some((self.get()?, &self.lookup))
    }

    /// Which blocks are the heap's own, if it is watched.
    #[inline(always)]
    pub(crate) fn lookup(&self) -> Option<&Lookup> {
        self.is_on.load(Ordering::Relaxed).then_some(&self.lookup)
    }
}

const _: () = assert!(size_of::<WatchedHeap>() <= freestone_base::units::PAGE_BYTES);
