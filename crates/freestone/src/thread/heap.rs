//! The thread heap: a bin for each size class, and the two steps that every allocation is made of.
#![allow(unsafe_code)]
//!
//! ```text
//!   0  view     base, reach, page map                  read by every free
//!  24  tag      owner << 8
//!  64  heads    [*block; 72]                           first free block of each bin
//!      allocs   [u64; 72]                              blocks handed out, ever
//!      room     [i64; 72]                              frees until the bin has to be looked at
//!      …        what only the slow paths touch
//! ```
//!
//! Arrays of fields rather than an array of bins: an index times 8 is an addressing mode, an index times 32 is an instruction.
//!
//! Invariants
//! - Only the owner's thread touches anything but `allocs`, `room`, the statistics and the inbox; those others may read, or push to.
//! - The blocks in a bin: `len = moved + frees - allocs`, with `frees = granted - room`. Exact, and computed only when needed.
//! - `room` is never more than what the bin lacks to its capacity, whatever was allocated meanwhile: it errs on the early side.
//! - A bin may hold blocks of any owner: a Rust `dealloc` of a known layout does not ask. Flushing sorts them.
//! - The heap of a thread that has none (`nobody`) has empty bins, no room, and a tag that matches nothing: every hot
//!   path leaves it by a branch it has to make anyway, and never writes to it.
//!
//! # Safety
//! Methods marked unsafe say what they need. The hot ones index arrays without a check: classes come from the size class table or
//! from the page map, both below `N_CLASSES` by construction.

use crate::page::{LargeList, LargeRunCache};
use crate::shared::Shared;
use crate::size_class::N_CLASSES;
use crate::span::{Owner, SpanList, View};
use crate::thread::outbox::Outbox;
use core::cell::{Cell, UnsafeCell};
use core::mem::offset_of;
use core::ptr;
use freestone_base::count::{self, CountsDown};
use freestone_base::inbox::{Inbox, Node};
use freestone_base::lock::{Guard, Lock};
use freestone_base::sync::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use freestone_os::{Futex, Os};

/// Rank of the lock of an explicit heap.
pub const GATE_RANK: u8 = 15;

/// What only the slow paths need to know of a bin.
#[derive(Debug)]
pub struct Bin {
    /// Frees granted, ever: `room` counts them down.
    pub granted: AtomicI64,
    /// Blocks brought in from spans and the inbox, less those flushed out.
    pub moved: AtomicI64,
    /// Blocks taken out of spans by this heap, less those it gave back.
    pub out: AtomicI64,
    /// Frees of blocks that went to their owner without passing through the bin.
    pub remote_frees: AtomicU64,
    /// Blocks it should hold at most; 0 before its first use.
    pub capacity: Cell<u32>,
    /// Blocks flushed since it was last empty.
    pub flushed: Cell<u32>,
    /// Whether room was granted just until the last block that the thread has is freed.
    pub awaits_last: Cell<bool>,
    /// `allocs` at the last decay tick: a bin nobody took from since is idle.
    pub allocs_at_tick: Cell<u64>,
}

/// The spans of one class that a heap owns.
#[derive(Debug)]
pub struct ClassSpans {
    /// The one blocks are taken from, or 0.
    pub current: Cell<u32>,
    /// Others that have a block to give.
    pub partial: SpanList,
    /// Others that have none.
    pub full: SpanList,
}

/// Where a heap is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Life {
    /// In the list of free records, or never used.
    Unborn = 0,
    /// Some thread's, or an explicit heap's.
    Alive,
    /// Of a thread that did not come along into a forked child: its spans are nobody's for good.
    Orphaned,
}

/// What a heap is for. Set at birth, under the registry's lock, and not changed before the next birth of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// One thread's. (Zero: what a record is before its first birth.)
    Thread = 0,
    /// Shared, behind its gate, by the threads that cannot have one of their own.
    Fallback,
    /// An explicit heap, behind its gate: every span and large block in it is deleted with it, so it takes none that others have blocks of.
    Explicit,
}

// SAFETY: that is where `room` is, in a layout that is fixed.
unsafe impl<O: Os> CountsDown for ThreadHeap<O> {
    const OFFSET: usize = offset_of!(Self, room);
    const LEN: usize = N_CLASSES;
}

impl<O: Os> core::fmt::Debug for ThreadHeap<O> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ThreadHeap {}", self.number.get())
    }
}

/// See the module header.
#[repr(C, align(64))]
pub struct ThreadHeap<O: Os + 'static> {
    view: Cell<View>,
    tag: Cell<u32>,
    life: AtomicU32,
    heads: [Cell<*mut Node>; N_CLASSES],
    allocs: [AtomicU64; N_CLASSES],
    room: [AtomicI64; N_CLASSES],
    pub(crate) bins: [Bin; N_CLASSES],
    pub(crate) spans: [ClassSpans; N_CLASSES],
    pub(crate) inbox: Inbox,
    pub(crate) outbox: UnsafeCell<Outbox<O>>,
    pub(crate) large: LargeList,
    /// Runs kept for this thread's next large blocks; an explicit heap's stays closed.
    pub(crate) shelf: LargeRunCache,
    /// Bytes of large blocks that the program holds beyond those that the shared count knows of: nothing, or fewer.
    pub(crate) unpublished_large: Cell<i64>,
    /// When what is too old was last looked for on behalf of frees that did not need the page heap.
    pub(crate) last_look_ms: Cell<u32>,
    /// Pages in its small spans, and the most it may have in all; only an explicit heap counts them.
    pub(crate) small_pages: Cell<u64>,
    /// See `small_pages`; the largest number is no limit.
    pub(crate) limit_pages: Cell<u64>,
    pub(crate) role: Cell<Role>,
    /// Blocks of each class that the shared count of what is live knows of.
    pub(crate) published_live: [Cell<i64>; N_CLASSES],
    /// When the decay tick last came, in ms of the kernel's clock, cut to 32 bits.
    pub(crate) last_tick_ms: Cell<u32>,
    /// Free bytes in this heap's spans that the shared count does not know of yet.
    pub(crate) uncounted_free_bytes: Cell<i64>,
    /// The span that the last block went home to in this flush, or 0.
    pub(crate) flush_at: Cell<u32>,
    /// Whether that span's OS pages are to go back as they come free, and whether some did.
    pub(crate) gives_pages_back: Cell<bool>,
    /// See `gives_pages_back`.
    pub(crate) has_emptied: Cell<bool>,
    /// A burst is over, and nothing was asked for since that was not in a bin.
    pub(crate) comes_down: Cell<bool>,
    /// The bound was passed, and spans may have OS pages that came free before.
    pub(crate) needs_sweep: Cell<bool>,
    /// When they were last looked over.
    pub(crate) last_sweep_ms: Cell<u32>,
    pub(crate) handovers: AtomicU64,
    /// Of heaps that threads share: who holds it is the heap's thread for the moment.
    pub(crate) gate: Lock<(), Futex, GATE_RANK>,
    shared: Cell<*const Shared<O>>,
    owner: Cell<Owner>,
    pub(crate) number: Cell<u32>,
    pub(crate) exit_rounds: Cell<u32>,
    pub(crate) next: AtomicPtr<ThreadHeap<O>>,
    pub(crate) next_unborn: AtomicPtr<ThreadHeap<O>>,
}

// SAFETY: see the first invariant; the fields that other threads touch are atomics.
unsafe impl<O: Os> Sync for ThreadHeap<O> {}
// SAFETY: a heap may change threads when it changes owners (explicit heaps under their lock, records between lives).
unsafe impl<O: Os> Send for ThreadHeap<O> {}

impl<O: Os + 'static> ThreadHeap<O> {
    /// The heap of threads that have none: for a static.
    #[must_use]
    pub(crate) const fn nobody() -> Self {
        Self {
            view: Cell::new(View::EMPTY),
            tag: Cell::new(Owner::NOBODY.tag()),
            life: AtomicU32::new(Life::Unborn as u32),
            heads: [const { Cell::new(ptr::null_mut()) }; N_CLASSES],
            allocs: [const { AtomicU64::new(0) }; N_CLASSES],
            room: [const { AtomicI64::new(0) }; N_CLASSES],
            bins: [const {
                Bin {
                    granted: AtomicI64::new(0),
                    moved: AtomicI64::new(0),
                    out: AtomicI64::new(0),
                    remote_frees: AtomicU64::new(0),
                    capacity: Cell::new(0),
                    flushed: Cell::new(0),
                    awaits_last: Cell::new(false),
                    allocs_at_tick: Cell::new(0),
                }
            }; N_CLASSES],
            spans: [const { ClassSpans { current: Cell::new(0), partial: SpanList::new(), full: SpanList::new() } };
                N_CLASSES],
            inbox: Inbox::new(),
            outbox: UnsafeCell::new(Outbox::EMPTY),
            large: LargeList::new(),
            shelf: LargeRunCache::new(),
            unpublished_large: Cell::new(0),
            last_look_ms: Cell::new(0),
            small_pages: Cell::new(0),
            limit_pages: Cell::new(0),
            role: Cell::new(Role::Thread),
            published_live: [const { Cell::new(0) }; N_CLASSES],
            last_tick_ms: Cell::new(0),
            uncounted_free_bytes: Cell::new(0),
            gives_pages_back: Cell::new(false),
            flush_at: Cell::new(0),
            has_emptied: Cell::new(false),
            comes_down: Cell::new(false),
            needs_sweep: Cell::new(false),
            last_sweep_ms: Cell::new(0),
            handovers: AtomicU64::new(0),
            gate: Lock::new(()),
            shared: Cell::new(ptr::null()),
            owner: Cell::new(Owner::NOBODY),
            number: Cell::new(0),
            exit_rounds: Cell::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            next_unborn: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Makes a zeroed or formerly used record a heap of `owner`, without a limit. Under the registry's lock, which a fork takes first: it
    /// finds every heap with its final role.
    pub(crate) fn become_alive(&self, shared: *const Shared<O>, view: View, owner: Owner, role: Role) {
        self.view.set(view);
        self.shared.set(shared);
        self.owner.set(owner);
        self.tag.set(owner.tag());
        self.exit_rounds.set(0);
        self.role.set(role);
        self.small_pages.set(0);
        self.limit_pages.set(u64::MAX);
        self.life.store(Life::Alive as u32, Ordering::Relaxed);
        self.inbox.open();
    }

    /// Where the heap is in its life.
    pub(crate) fn life(&self) -> Life {
        match self.life.load(Ordering::Relaxed) {
            0 => Life::Unborn,
            1 => Life::Alive,
            _ => Life::Orphaned,
        }
    }

    /// Moves the heap on in its life.
    pub(crate) fn set_life(&self, life: Life) {
        self.life.store(life as u32, Ordering::Relaxed);
    }

    /// Whether the heap is used by whichever thread holds its gate.
    pub(crate) fn has_gate(&self) -> bool {
        self.role.get() != Role::Thread
    }

    /// Whether everything in the heap is deleted with it.
    pub(crate) fn is_explicit(&self) -> bool {
        self.role.get() == Role::Explicit
    }

    /// Whether an explicit heap's limit lets it have `n_pages` more.
    pub(crate) fn may_have(&self, n_pages: u32) -> bool {
        if self.limit_pages.get() == u64::MAX {
            return true;
        }
        // SAFETY: only heaps that are alive ask.
        let large = unsafe { self.shared() }.pages.listed_pages(&self.large);
        self.small_pages.get() + large + u64::from(n_pages) <= self.limit_pages.get()
    }

    /// Waits until nobody else uses a heap that threads share, and makes the caller its thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Guard<'_, (), Futex, GATE_RANK> {
        self.gate.lock()
    }

    /// The heap's number, for messages: heaps are numbered as they are made.
    pub(crate) fn number(&self) -> u32 {
        self.number.get()
    }

    /// What it shares with the others.
    ///
    /// # Safety
    /// - The heap is or was alive: `nobody` has none.
    #[inline]
    pub(crate) unsafe fn shared(&self) -> &Shared<O> {
        // SAFETY: set at birth to a `Shared` that outlives all its heaps (the contract of `Threads::birth`).
        unsafe { &*self.shared.get() }
    }

    /// Whether this is the heap of threads that have none.
    #[inline]
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.shared.get().is_null()
    }

    /// The generation that owns its spans.
    pub(crate) fn owner(&self) -> Owner {
        self.owner.get()
    }

    /// See the module header of `page_map`.
    #[inline(always)]
    pub(crate) fn tag(&self) -> u32 {
        self.tag.get()
    }

    /// Sends the contents of every bin, of the shelf and of the outbox home.
    ///
    /// # Safety
    /// - The heap is alive, and the caller is its thread.
    pub unsafe fn flush_all(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.drain();
            for class in 0..N_CLASSES {
                self.flush(class, 0);
            }
            self.shared().pages.empty_cache(&self.shelf);
        }
        self.send_all();
    }

    /// Takes the first block of a bin; null if it is empty. The hot half of every allocation. `class` is below `N_CLASSES`.
    #[inline(always)]
    #[must_use]
    pub(crate) fn pop(&self, class: usize) -> *mut u8 {
        debug_assert!(class < N_CLASSES);
        // SAFETY: classes are below `N_CLASSES`; a block in the bin is free, and its first word links to the next.
        unsafe {
            let head = self.heads.get_unchecked(class);
            let block = head.get();
            if !block.is_null() {
                head.set((*block).next);
                count::increment(self.allocs.get_unchecked(class));
            }
            block.cast()
        }
    }

    /// Puts a block into a bin; `true` if the bin has to be looked at now (see [`ThreadHeap::overflow`]). The hot half of every
    /// free that found the block to be this heap's.
    ///
    /// # Safety
    /// - `block` is a block of `class` that nobody uses any more, and this is not `nobody`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn push(&self, class: usize, block: *mut u8) -> bool {
        debug_assert!(class < N_CLASSES && !self.is_nobody());
        // SAFETY: the caller's promise.
        unsafe {
            self.link(class, block);
            count::decrement_is_negative(self, class)
        }
    }

    /// Puts a block into a bin if there is room; `false` if not, and the block is still the caller's. Right for any heap, also
    /// `nobody`: for frees that do not ask whose the block is.
    ///
    /// # Safety
    /// - `block` is a block of `class` that nobody uses any more.
    #[inline(always)]
    #[must_use]
    pub unsafe fn try_push(&self, class: usize, block: *mut u8) -> bool {
        debug_assert!(class < N_CLASSES);
        // SAFETY: the caller's promise; classes are below `N_CLASSES`.
        unsafe {
            let room = self.room.get_unchecked(class);
            if room.load(Ordering::Relaxed) <= 0 {
                return false;
            }
            self.link(class, block);
            count::decrement(room);
        }
        true
    }

    /// # Safety
    /// - As for [`ThreadHeap::push`].
    #[inline(always)]
    unsafe fn link(&self, class: usize, block: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            let (head, node) = (self.heads.get_unchecked(class), block.cast::<Node>());
            (*node).next = head.get();
            head.set(node);
        }
    }

    /// The first block of a bin.
    pub(crate) fn head(&self, class: usize) -> &Cell<*mut Node> {
        &self.heads[class]
    }
}

mod counts;
mod view;
