//! The central lists: spans between owners.
#![allow(unsafe_code)]
//!
//! ```text
//!            abandon                        adopt
//!  thread ───────────▶ available / full ───────────▶ thread
//!                          ▲     │
//!                  free ───┘     └─ last block home ─▶ page heap
//! ```
//!
//! When a thread ends, its spans that still have blocks out come here; a thread that needs a span of the class adopts one. Blocks
//! freed meanwhile go back to their span here, under the lock of the class. After a fork the child has blocks of threads that no
//! longer exist and whose spans nobody can trust any more: such blocks are kept loose and handed out again.
//!
//! Invariants: a span is in a list exactly while its owner is null, and then its page map entries say `ABANDONED`; `available`
//! spans have a block to give; `n_available` counts them and is a hint when read without the lock.
//! Layer: above `page`, below `thread`. Locks: one a class, rank [`RANK`], taken before the page heap's.
//!
//! # Safety
//! Spans in the lists are this module's, under the lock of their class.

use crate::page::PageHeap;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::span::blocks::{self, Chain, Home, Refused};
use crate::span::{Entry, Owner, Span, SpanList, os_pages};
use core::ffi::c_void;
use core::ptr;
use freestone_base::inbox::Node;
use freestone_base::lock::Lock;
use freestone_base::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use freestone_os::{Futex, Os};

/// Rank of the locks of the classes.
pub const RANK: u8 = 20;

/// One class's spans without an owner.
#[derive(Debug)]
struct List {
    available: SpanList,
    full: SpanList,
    loose: Chain,
}

// SAFETY: chains of free blocks and lists of page numbers may move between threads.
unsafe impl Send for List {}

/// What all thread heaps share.
pub struct Central<O: Os> {
    /// The page heap.
    pub pages: PageHeap<O>,
    lists: [Lock<List, Futex, RANK>; N_CLASSES],
    n_available: [AtomicU32; N_CLASSES],
    /// Blocks that went home through the central lists, to count what is out; never positive on its own.
    returned_blocks: [AtomicI64; N_CLASSES],
    n_heaps: AtomicU32,
    /// Bytes of free blocks inside spans, as far as their owners have counted.
    free_in_spans: AtomicI64,
    /// The most bytes seen live at once, and what is live by the last count.
    peak: Peak,
}

/// The live bytes as threads publish them, and their peak.
#[derive(Debug, Default)]
struct Peak {
    live_bytes: AtomicI64,
    peak_bytes: AtomicU64,
}

/// What became of a block offered to [`Central::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is back in its span.
    Taken,
    /// Its span has an owner again.
    Owned,
    /// It is not a block that is out.
    Refused(Refused),
}

impl<O: Os> Central<O> {
    /// No spans, default settings.
    #[must_use]
    pub const fn new(os: O) -> Self {
        Self {
            pages: PageHeap::new(os),
            lists: [const { Lock::new(List { available: SpanList::new(), full: SpanList::new(), loose: Chain::EMPTY }) };
                N_CLASSES],
            n_available: [const { AtomicU32::new(0) }; N_CLASSES],
            returned_blocks: [const { AtomicI64::new(0) }; N_CLASSES],
            n_heaps: AtomicU32::new(0),
            free_in_spans: AtomicI64::new(0),
            peak: Peak { live_bytes: AtomicI64::new(0), peak_bytes: AtomicU64::new(0) },
        }
    }

    /// The record of the span at `page`.
    ///
    /// # Safety
    /// - The page is below the frontier: it has a record.
    #[must_use]
    pub unsafe fn span(&self, page: u32) -> &Span {
        // SAFETY: the caller's promise; records are never unmapped.
        unsafe { &*self.pages.layout().record(page) }
    }

    /// Takes a span over from a thread that ends. An empty one goes to the page heap.
    ///
    /// # Safety
    /// - The small span that starts at `page` is the caller's, in no list, and none of its blocks are in the caller's bins.
    pub unsafe fn abandon(&self, page: u32) {
        // SAFETY: the caller's promise; from `owner = null` on, the span is this list's, and the lock is held.
        unsafe {
            let span = self.span(page);
            if span.n_out.get() == 0 {
                self.count_free_in_spans(-i64::from(span.n_free.get()) * block_bytes(span.class.get() as usize) as i64);
                blocks::clear(self.pages.layout(), page);
                self.pages.free(page);
                return;
            }
            let class = span.class.get();
            let list = self.lists[class as usize].lock();
            let layout = self.pages.layout();
            span.owner.store(ptr::null_mut(), Ordering::Relaxed);
            layout.map.set(page, span.pages.get(), Entry::small(Owner::ABANDONED, class));
            if span.n_free.get() == 0 && span.fresh.get() == 0 {
                list.full.push(layout, page);
            } else {
                list.available.push(layout, page);
                self.n_available[class as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Gives a span of `class` that has a block to give to `owner`; its page, or `None`.
    pub(crate) fn adopt(&self, class: usize, owner: *mut c_void, generation: Owner) -> Option<u32> {
        if self.n_available[class].load(Ordering::Relaxed) == 0 {
            return None;
        }
        let list = self.lists[class].lock();
        let layout = self.pages.layout();
        // SAFETY: the list is ours under its lock; a popped span is the new owner's from the stores on.
        unsafe {
            let page = list.available.pop(layout);
            if page == 0 {
                return None;
            }
            self.n_available[class].fetch_sub(1, Ordering::Relaxed);
            let span = self.span(page);
            layout.map.set(page, span.pages.get(), Entry::small(generation, class as u8));
            span.owner.store(owner, Ordering::Release);
            Some(page)
        }
    }

    /// Puts a block back into its span, if that has no owner.
    ///
    /// # Safety
    /// - `block` lies in the small span of `class` that starts at `page`, and is the caller's if it is a block.
    pub unsafe fn free(&self, page: u32, class: usize, block: *mut Node) -> Offered {
        let list = self.lists[class].lock();
        let layout = self.pages.layout();
        // SAFETY: the caller's promise; under the lock an ownerless span is ours.
        unsafe {
            let span = self.span(page);
            if !span.owner.load(Ordering::Relaxed).is_null() {
                return Offered::Owned;
            }
            let was_full = span.n_free.get() == 0 && span.fresh.get() == 0;
            let came = Home::at(layout, page).give_back(block, 1);
            if let Some(refused) = came.refused {
                return Offered::Refused(refused);
            }
            self.returned_blocks[class].fetch_add(1, Ordering::Relaxed);
            let block_bytes = block_bytes(class) as i64;
            self.count_free_in_spans(block_bytes);
            let empty = span.n_out.get() == 0;
            match (was_full, empty) {
                (true, false) => {
                    list.full.remove(layout, page);
                    list.available.push(layout, page);
                    self.n_available[class].fetch_add(1, Ordering::Relaxed);
                }
                (true, true) => list.full.remove(layout, page),
                (false, true) => {
                    list.available.remove(layout, page);
                    self.n_available[class].fetch_sub(1, Ordering::Relaxed);
                }
                (false, false) => {}
            }
            let os_page_bytes = self.pages.os().os_page_bytes();
            if !empty
                && self.is_too_much_in_spans()
                && os_pages::has_emptied_a_page(layout, page, came.last, os_page_bytes)
            {
                self.count_free_in_spans(-i64::from(self.release_pages(page)) * block_bytes);
            }
            drop(list);
            if empty {
                self.count_free_in_spans(-i64::from(span.n_free.get()) * block_bytes);
                blocks::clear(layout, page);
                self.pages.free(page);
            }
        }
        Offered::Taken
    }

    /// Keeps a block whose span nobody can trust any more, to be handed out again as it is.
    ///
    /// # Safety
    /// - `block` is a block of `class` that is the caller's.
    pub unsafe fn keep_loose(&self, class: usize, block: *mut Node) {
        // SAFETY: the caller's promise.
        unsafe { self.lists[class].lock().loose.push(block) };
    }

    /// All loose blocks of `class`.
    pub fn take_loose(&self, class: usize) -> Chain {
        match self.lists[class].try_lock() {
            Some(mut list) => core::mem::replace(&mut list.loose, Chain::EMPTY),
            None => Chain::EMPTY,
        }
    }

    /// Blocks of `class` that went home through here, ever.
    #[must_use]
    pub fn returned_blocks(&self, class: usize) -> i64 {
        self.returned_blocks[class].load(Ordering::Relaxed)
    }

    /// Adds to what is live, as far as its thread has counted, and remembers the peak.
    pub fn publish_live(&self, change_bytes: i64) {
        let live = self.peak.live_bytes.fetch_add(change_bytes, Ordering::Relaxed) + change_bytes;
        self.raise_peak(u64::try_from(live).unwrap_or(0));
    }

    /// Remembers that this much was live at once.
    pub fn raise_peak(&self, live_bytes: u64) {
        if live_bytes > self.peak.peak_bytes.load(Ordering::Relaxed) {
            self.peak.peak_bytes.fetch_max(live_bytes, Ordering::Relaxed);
        }
    }

    /// The most bytes seen live at once.
    #[must_use]
    pub fn peak_live_bytes(&self) -> u64 {
        self.peak.peak_bytes.load(Ordering::Relaxed)
    }

    /// Whether more is free inside spans than the dirty bound allows.
    #[must_use]
    pub fn is_too_much_in_spans(&self) -> bool {
        let positive = |bytes: &AtomicI64| u64::try_from(bytes.load(Ordering::Relaxed)).unwrap_or(0);
        positive(&self.free_in_spans) > self.pages.settings.dirty_bound_bytes(positive(&self.peak.live_bytes))
    }

    /// Gives the OS pages of a span in which no block is out back. Returns the blocks that are no longer free.
    ///
    /// # Safety
    /// - The small span at `page` is the caller's.
    pub unsafe fn release_pages(&self, page: u32) -> u32 {
        // SAFETY: the caller's promise; what is purged holds no block that is out.
        unsafe {
            os_pages::release_pages(self.pages.layout(), page, self.pages.os().os_page_bytes(), |start, bytes| {
                self.pages.purge_inside(start, bytes)
            })
        }
    }

    /// Heaps alive, for policies: threads may come and go while it is read.
    #[must_use]
    pub fn n_heaps(&self) -> u32 {
        self.n_heaps.load(Ordering::Relaxed)
    }

    /// Notes how many heaps are alive now.
    pub fn set_n_heaps(&self, n: u32) {
        self.n_heaps.store(n, Ordering::Relaxed);
    }

    /// Counts bytes of free blocks inside spans.
    pub fn count_free_in_spans(&self, change_bytes: i64) {
        self.free_in_spans.fetch_add(change_bytes, Ordering::Relaxed);
    }

    /// Calls `visit` with each span of `class` that has no owner, under the lock, and whether it is listed as full.
    pub fn inspect(&self, class: usize, mut visit: impl FnMut(u32, bool)) {
        let list = self.lists[class].lock();
        let layout = self.pages.layout();
        // SAFETY: the lists are ours under the lock.
        unsafe {
            list.available.iter(layout).for_each(|(page, _)| visit(page, false));
            list.full.iter(layout).for_each(|(page, _)| visit(page, true));
        }
    }

    /// Takes every lock of this layer and below, in order of rank, before a fork.
    pub fn lock_for_fork(&self) {
        self.lists.iter().for_each(Lock::acquire_raw);
        self.pages.lock_for_fork();
    }

    /// Lets them go, in parent or child.
    ///
    /// # Safety
    /// - This thread took them with [`Central::lock_for_fork`], or is the copy of the one that did.
    pub unsafe fn unlock_after_fork(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.pages.unlock_after_fork();
            self.lists.iter().for_each(|list| list.release_raw());
        }
    }
}
