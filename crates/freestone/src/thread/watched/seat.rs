//! What a heap has if it is watched: a lookup that only the slow ways see, a source of random numbers, a quarantine, and magazines.
#![allow(unsafe_code)]
//!
//! The [`WatchedHeap`] is made at the first creation of a watched heap in a record, and stays with the record: metadata is never freed.
//!
//! # Safety
//! The pointer is null or that of a [`WatchedHeap`] in metadata, which is never unmapped.

use crate::shared::Shared;
use crate::size_class::N_CLASSES;
use crate::span::secret::Secret;
use crate::span::{Generation, Layout, View};
use crate::thread::lookup::Lookup;
use crate::thread::watched::live_count::LiveCount;
use crate::thread::watched::magazine::{Magazine, least};
use crate::thread::watched::quarantine::Quarantine;
use core::cell::Cell;
use core::ptr;
use freestone_base::sync::{AtomicPtr, Ordering};
use freestone_os::Os;

/// What a watched heap has; first what every operation reads. Zero is valid.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct WatchedHeap {
    /// That of all heaps.
    secret: Secret,
    /// Where things are in the address range.
    layout: Cell<Layout>,
    os_page_bytes: Cell<usize>,
    live: LiveCount,
    random: Cell<u64>,
    quarantine: Quarantine,
    magazines: [Magazine; N_CLASSES],
}

/// Of a congruential sequence of numbers, the upper halves of which choose blocks of a magazine: Knuth's.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

impl WatchedHeap {
    /// What canaries and trailers are made of.
    #[inline(always)]
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Where things are in the address range.
    #[inline(always)]
    pub(crate) fn layout(&self) -> Layout {
        self.layout.get()
    }

    /// Bytes of an OS page.
    #[inline(always)]
    pub(crate) fn os_page_bytes(&self) -> usize {
        self.os_page_bytes.get()
    }

    /// Freed blocks that wait.
    #[inline(always)]
    pub(crate) fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }

    /// Free blocks of a class that are handed out next.
    #[inline(always)]
    pub(crate) fn magazine(&self, class: usize) -> &Magazine {
        &self.magazines[class]
    }

    /// Every block that is out of its span and not the program's, for checks.
    pub(crate) fn held(&self) -> impl Iterator<Item = *mut u8> {
        self.quarantine.iter().chain(self.magazines.iter().flat_map(Magazine::iter))
    }

    /// Blocks that are live.
    #[inline(always)]
    pub(crate) fn live(&self) -> &LiveCount {
        &self.live
    }

    /// The next random number that is only to choose among blocks that are at hand.
    #[inline(always)]
    pub(crate) fn choice(&self) -> u32 {
        let next = self.random.get().wrapping_mul(MULTIPLIER).wrapping_add(1);
        self.random.set(next);
        (next >> 32) as u32
    }

    /// Takes a random block out of the magazine of a class, and puts one in its place that has waited. `None` if none has, and the magazine has few.
    #[inline(always)]
    pub(crate) fn choose(&self, class: usize) -> Option<*mut u8> {
        let (magazine, waiting) = (self.magazine(class), self.quarantine());
        if let Some(waited) = waiting.waited(class) {
            let (place, start) = magazine.any(class, self.choice())?;
            place.set(waited);
            waiting.remove(class);
            Some(start)
        } else if magazine.len() >= least(class) {
            magazine.take(class, self.choice())
        } else {
            None
        }
    }

    /// The next random number.
    #[inline]
    pub(crate) fn random(&self) -> u64 {
        // Marsaglia's xorshift: never zero, and good enough to choose among free blocks. The product mixes its lowest bits.
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        state.wrapping_mul(MULTIPLIER)
    }
}

/// See the module header. Zero is valid: the heap is not watched.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct WatchSeat {
    lookup: Lookup,
    /// Null if the heap is not watched.
    watch: AtomicPtr<WatchedHeap>,
    /// As `watch`, but also null if freed blocks are cleared: for the short ways of heaps that fill them.
    filling: AtomicPtr<WatchedHeap>,
    /// Null if it never was.
    storage: AtomicPtr<WatchedHeap>,
}

impl WatchSeat {
    /// Of a heap that is not watched.
    pub(crate) const fn empty() -> Self {
        Self {
            lookup: Lookup::empty(),
            watch: AtomicPtr::new(ptr::null_mut()),
            filling: AtomicPtr::new(ptr::null_mut()),
            storage: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Has a [`WatchedHeap`] from now on; `false` when memory runs out. `storage` gives zeroed bytes that are never unmapped, aligned to 64.
    pub(crate) fn prepare(&self, storage: impl FnOnce(usize) -> Option<*mut WatchedHeap>) -> bool {
        if self.storage.load(Ordering::Relaxed).is_null() {
            let Some(storage) = storage(size_of::<WatchedHeap>()) else { return false };
            self.storage.store(storage, Ordering::Relaxed);
        }
        true
    }

    /// Begins a life in which the heap is watched; [`WatchSeat::prepare`] has returned `true`, and the secret was drawn.
    pub(crate) fn begin<O: Os>(&self, view: View, generation: Generation, shared: &Shared<O>, random: u64) {
        let storage = self.storage.load(Ordering::Relaxed);
        self.watch.store(storage, Ordering::Release);
        self.filling.store(if shared.secret.erases() { ptr::null_mut() } else { storage }, Ordering::Relaxed);
        self.lookup.begin(view, generation);
        if let Some(watch) = self.get() {
            watch.secret.become_copy(&shared.secret);
            watch.layout.set(*shared.pages.layout());
            watch.os_page_bytes.set(shared.os().os_page_bytes());
            watch.random.set(random | 1);
            watch.live.reset();
            watch.quarantine.begin();
        }
    }

    /// Begins a life in which it is not.
    pub(crate) fn leave(&self) {
        self.watch.store(ptr::null_mut(), Ordering::Relaxed);
        self.filling.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// What the heap has if it is watched. Any thread may read the counters of it.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&WatchedHeap> {
        // SAFETY: null, or in metadata, which is zeroed, aligned, and never unmapped; zero is a valid `WatchedHeap`.
        unsafe { self.watch.load(Ordering::Acquire).as_ref() }
    }

    /// What the heap has if it is watched, and which blocks are its own.
    #[inline(always)]
    pub(crate) fn get_with_lookup(&self) -> Option<(&WatchedHeap, &Lookup)> {
        Some((self.get()?, &self.lookup))
    }

    /// As [`WatchSeat::get_with_lookup`], but `None` if freed blocks are cleared. For the heap's thread.
    #[inline(always)]
    pub(crate) fn filling(&self) -> Option<(&WatchedHeap, &Lookup)> {
        // SAFETY: null, or in metadata, which is zeroed, aligned, and never unmapped; zero is a valid `WatchedHeap`.
        Some((unsafe { self.filling.load(Ordering::Relaxed).as_ref() }?, &self.lookup))
    }

    /// Which blocks are the heap's own, if it is watched.
    #[inline(always)]
    pub(crate) fn lookup(&self) -> Option<&Lookup> {
        self.get().map(|_| &self.lookup)
    }
}

const _: () = assert!(size_of::<WatchedHeap>() <= freestone_base::units::PAGE_BYTES);
