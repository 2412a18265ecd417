//! The record of a slot: its state, its block, and where that was allocated and freed.
//!
//! Written by the thread that allocates or frees the block, and read by any thread, in a signal handler too: every field is an atomic. The state is
//! stored last, so who reads it sees what belongs to it, unless the slot is used again meanwhile: a finding may then show the stack of the
//! next block.

use crate::misuse::finding::{History, Site};
use freestone_base::sync::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use freestone_os::stack::{FRAMES_MOST, Stack};

/// What a slot is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Never used.
    Vacant,
    /// The program has the block.
    Live,
    /// A thread is freeing the block, or was when the process forked.
    Ending,
    /// The block was freed, and is closed.
    Freed,
}

/// What the program asked for, and where that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its address.
    pub(crate) start: usize,
    /// Bytes that the program asked for.
    pub(crate) size: usize,
    /// Its class, alignment and family.
    pub(crate) kind: Kind,
}

/// What a block is besides its size, in a word: the class and, eight bits each, the logarithm of the alignment, and the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(u32);

impl Kind {
    /// A block of this size class, of an alignment, a power of two, and of the functions of this number, below 256.
    pub(crate) fn new(class: usize, align: usize, family: u32) -> Self {
        Self(class as u32 | align.trailing_zeros() << 16 | family << 24)
    }

    /// The size class that the block would have without a guard.
    pub(crate) fn class(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }

    /// Logarithm of the alignment.
    pub(crate) fn align_log2(self) -> u32 {
        self.0 >> 16 & 0xFF
    }

    /// The number of the functions that free it; 0 if any may.
    pub(crate) fn family(self) -> u32 {
        self.0 >> 24
    }
}

/// See the module header. Zero is a vacant slot.
pub(crate) struct Slot {
    state: AtomicU8,
    is_spent: AtomicBool,
    kind: AtomicU32,
    start: AtomicUsize,
    size: AtomicUsize,
    allocated: SiteRecord,
    freed: SiteRecord,
}

impl Slot {
    /// Its state.
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Vacant,
            1 => State::Live,
            2 => State::Ending,
            _ => State::Freed,
        }
    }

    /// Sets its state.
    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Moves it from one state to another; `false` if it is in neither.
    pub(crate) fn change(&self, from: State, to: State) -> bool {
        self.state.compare_exchange(from as u8, to as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether no further block may use it.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Lets no further block use it: pages of it are open, beside its block or after the block's free, and the program may have written to them.
    pub(crate) fn spend(&self) {
        self.is_spent.store(true, Ordering::Relaxed);
    }

    /// Its block, or the last one.
    pub(crate) fn block(&self) -> Block {
        Block {
            start: self.start.load(Ordering::Relaxed),
            size: self.size.load(Ordering::Relaxed),
            kind: Kind(self.kind.load(Ordering::Relaxed)),
        }
    }

    /// Makes it a block's, which the program gets.
    pub(crate) fn begin(&self, block: Block, site: &Site) {
        self.start.store(block.start, Ordering::Relaxed);
        self.size.store(block.size, Ordering::Relaxed);
        self.kind.store(block.kind.0, Ordering::Relaxed);
        self.allocated.store(site);
        self.set_state(State::Live);
    }

    /// Lets any functions free its block, with any size: the program asked for less, and keeps it as it is.
    pub(crate) fn forget_family(&self) {
        self.kind.fetch_and(0xFF_FFFF, Ordering::Relaxed);
    }

    /// Records where its block was freed.
    pub(crate) fn end(&self, site: &Site) {
        self.freed.store(site);
    }

    /// Where its block was allocated, and freed if it was.
    pub(crate) fn history(&self) -> History {
        let is_freed = self.state() == State::Freed;
        History { allocated: self.allocated.load(), freed: is_freed.then(|| self.freed.load()) }
    }
}

/// Where a thread did something.
struct SiteRecord {
    thread: AtomicU32,
    n_addresses: AtomicU32,
    addresses: [AtomicUsize; FRAMES_MOST],
}

impl SiteRecord {
    fn store(&self, site: &Site) {
        let addresses = site.stack.addresses();
        self.thread.store(site.thread as u32, Ordering::Relaxed);
        self.n_addresses.store(addresses.len() as u32, Ordering::Relaxed);
        for (stored, &address) in self.addresses.iter().zip(addresses) {
            stored.store(address, Ordering::Relaxed);
        }
    }

    fn load(&self) -> Site {
        let n = self.n_addresses.load(Ordering::Relaxed) as usize;
        let addresses = self.addresses.iter().take(n).map(|address| address.load(Ordering::Relaxed));
        Site { thread: self.thread.load(Ordering::Relaxed) as i32, stack: Stack::of(addresses) }
    }
}
