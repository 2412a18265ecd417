//! Recording: which blocks are sampled and live, and what was live at the peak.
#![allow(unsafe_code)]
//!
//! ```text
//!  off ── start ──▶ on (session 1) ── stop ──▶ off ── start ──▶ on (session 2) …
//!                    │ record                   │ forget: what was sampled is forgotten when it is freed, whether or not more is sampled
//! ```
//!
//! # Safety
//! All tables are atomic numbers, which may be zero bytes at first.

use crate::heap_profile::exponential::{allocations_until, bytes_until, weight_of};
use crate::heap_profile::live_table::{LiveTable, Sample};
use crate::heap_profile::stack_table::{StackCounts, StackIndex, StackTable};
use crate::heap_profile::tally::Tally;
use crate::heap_profile::triggers::Triggers;
use crate::size_class::{N_CLASSES, block_bytes};
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr;
use freestone_base::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use freestone_os::stack::hash_of;
use freestone_os::{Late, Zeroed};

/// Frames of a stack that are recorded at most.
pub(crate) const FRAMES_MOST: usize = 64;

struct Tables {
    stacks: StackTable,
    live: LiveTable,
    /// What a sampled block of each size class stands for.
    weights: [Tally; N_CLASSES],
}

// SAFETY: its tables are atomic numbers, for which zero bytes are zeros.
unsafe impl Zeroed for Tables {}

/// Where a tracer finds the two tables in their mapping: the stacks, and the live samples; and the bytes of the mapping.
pub(crate) const PLACES: [usize; 3] = [offset_of!(Tables, stacks), offset_of!(Tables, live), size_of::<Tables>()];

/// See the module header.
///
/// Wide because: it is what a thread may ask at any time, each a number by itself.
pub(crate) struct HeapProfile {
    tables: Late<Tables>,
    /// One byte in so many is sampled; 0: none is.
    interval: AtomicU64,
    /// The last interval that was not 0.
    last_interval: AtomicU64,
    session: AtomicU32,
    /// Whether slow paths have to ask: it was started, so that bins may have blocks that were chosen.
    is_asked: AtomicBool,
    /// Whether frees of Rust's global allocator are noticed.
    notices_rust: AtomicBool,
    /// Whether that can still begin.
    may_notice_rust: AtomicBool,
    /// The heap that sampled small blocks come from, and its generation.
    heap: AtomicPtr<c_void>,
    generation: AtomicU32,
    /// Bytes that live samples stand for, in 16ths, the most that they stood for, and how often that was more than ever before.
    live_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    peak: AtomicU64,
    n_dropped: AtomicU64,
    has_said_full: AtomicBool,
    triggers: Triggers,
}

impl HeapProfile {
    /// Off; nothing is mapped.
    pub(crate) const fn new() -> Self {
        Self {
            tables: Late::new(),
            interval: AtomicU64::new(0),
            last_interval: AtomicU64::new(0),
            session: AtomicU32::new(0),
            is_asked: AtomicBool::new(false),
            notices_rust: AtomicBool::new(false),
            may_notice_rust: AtomicBool::new(false),
            heap: AtomicPtr::new(ptr::null_mut()),
            generation: AtomicU32::new(NO_GENERATION),
            live_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            n_dropped: AtomicU64::new(0),
            has_said_full: AtomicBool::new(false),
            triggers: Triggers::new(),
        }
    }

    /// Where the address of the tables is: 0 is there before profiling starts.
    pub(crate) fn place_of_tables(&self) -> *const usize {
        self.tables.place()
    }

    /// Whether slow paths have to ask what is to be done: it was started at some time.
    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Whether allocations are sampled.
    pub(crate) fn is_on(&self) -> bool {
        self.interval.load(Ordering::Relaxed) != 0
    }

    /// Whether frees of Rust's global allocator are noticed.
    #[inline]
    pub(crate) fn notices_rust(&self) -> bool {
        self.notices_rust.load(Ordering::Relaxed)
    }

    /// Lets frees of Rust's global allocator be noticed from its first allocation on. To be called before any thread has freed a block.
    pub(crate) fn expect_rust(&self) {
        self.may_notice_rust.store(true, Ordering::Relaxed);
    }

    /// Rust's global allocator allocates. Returns whether its frees are noticed.
    pub(crate) fn meet_rust(&self) -> bool {
        if self.may_notice_rust.load(Ordering::Relaxed) {
            self.notices_rust.store(true, Ordering::Relaxed);
        }
        self.notices_rust()
    }

    /// Draws how many bytes of large blocks are left until the next sample, from a random number: that block is sampled in which they end.
    pub(crate) fn bytes_until(&self, random: u64) -> i64 {
        bytes_until(self.last_interval(), random) as i64
    }

    /// Draws how many allocations of blocks of `block_bytes` are left until the next sampled one, that one included, from a random number.
    pub(crate) fn allocations_until(&self, block_bytes: usize, random: u64) -> u64 {
        allocations_until(self.last_interval(), block_bytes, random)
    }

    /// How often it was started. A countdown that was drawn in another session holds no more.
    pub(crate) fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    /// Starts to sample one byte in `interval`, which is not 0. `false` without memory for the tables.
    pub(crate) fn start(&self, interval: u64) -> bool {
        let Some(tables) = self.tables.get_mapped() else { return false };
        for (class, weight) in tables.weights.iter().enumerate() {
            weight.set(weight_of(block_bytes(class), interval));
        }
        self.session.fetch_add(1, Ordering::Relaxed);
        self.last_interval.store(interval, Ordering::Relaxed);
        self.interval.store(interval, Ordering::Relaxed);
        self.is_asked.store(true, Ordering::Relaxed);
        true
    }

    /// Makes a profile due whenever `allocated` bytes were allocated, and whenever `growth` bytes more are live than ever before; 0: never.
    pub(crate) fn set_triggers(&self, allocated: u64, growth: u64) {
        self.triggers.set(allocated, growth, self.peak_bytes.load(Ordering::Relaxed));
    }

    /// What makes a profile due.
    pub(crate) fn triggers(&self) -> &Triggers {
        &self.triggers
    }

    /// Samples no more. What is live stays known, and is forgotten as it is freed.
    pub(crate) fn stop(&self) {
        self.interval.store(0, Ordering::Relaxed);
    }

    /// Whether it was ever started.
    pub(crate) fn has_tables(&self) -> bool {
        self.tables.get().is_some()
    }

    /// The heap that sampled small blocks come from, as `set_heap` got it; null before that.
    pub(crate) fn heap(&self) -> *mut c_void {
        self.heap.load(Ordering::Acquire)
    }

    /// Sets the heap that sampled small blocks come from, and the number of its generation, unless there is one. It stays for good.
    pub(crate) fn set_heap(&self, heap: *mut c_void, generation: u32) {
        if self.generation.compare_exchange(NO_GENERATION, generation, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.heap.store(heap, Ordering::Release);
        }
    }

    /// Whether this is the number of the generation of the heap that sampled small blocks come from.
    #[inline]
    pub(crate) fn is_generation(&self, number: u32) -> bool {
        self.generation.load(Ordering::Relaxed) == number
    }

    /// Whether the tables take another sample. Counts a sample that is lost if not.
    pub(crate) fn has_room(&self) -> bool {
        let has_room = self.tables.get().is_some_and(|tables| tables.live.has_room());
        if !has_room {
            self.drop_one();
        }
        has_room
    }

    /// The stack with this hash, if it was added.
    #[inline]
    pub(crate) fn find_stack(&self, hash: u64) -> Option<StackIndex> {
        self.tables.get()?.stacks.find(hash)
    }

    /// Adds a stack of these addresses, with their hash if that is known. Counts a sample that is lost if there is no room.
    pub(crate) fn add_stack(&self, addresses: &[usize], hash: Option<u64>) -> Option<StackIndex> {
        let hash = hash.unwrap_or_else(|| hash_of(addresses));
        let stack = self.tables.get()?.stacks.intern(addresses, hash);
        if stack.is_none() {
            self.drop_one();
        }
        stack
    }

    /// Records that the block at `address`, of a size class, was sampled with this stack.
    pub(crate) fn record_small(&self, address: usize, stack: StackIndex, class: usize) {
        if let Some(tables) = self.tables.get() {
            self.record(tables, address, Sample { stack, weight: tables.weights[class].sum() });
        }
    }

    /// Records that the large block at `address`, of `bytes`, was sampled with this stack. `false` if there is no room.
    pub(crate) fn record_large(&self, address: usize, stack: &[usize], bytes: usize) -> bool {
        let weight = weight_of(bytes, self.last_interval());
        let (Some(tables), Some(stack)) = (self.tables.get(), self.add_stack(stack, None)) else { return false };
        self.record(tables, address, Sample { stack, weight })
    }

    fn record(&self, tables: &Tables, address: usize, sample: Sample) -> bool {
        if !tables.live.insert(address, sample) {
            self.drop_one();
            return false;
        }
        tables.stacks.count_allocation(sample.stack, sample.weight);
        self.triggers.note_allocated(sample.weight);
        self.add(tables, sample);
        true
    }

    fn add(&self, tables: &Tables, sample: Sample) {
        tables.stacks.add(sample.stack, sample.weight, self.peak.load(Ordering::Relaxed));
        let live = self.live_bytes.fetch_add(sample.weight.bytes, Ordering::Relaxed) + sample.weight.bytes;
        if live > self.peak_bytes.load(Ordering::Relaxed) {
            self.peak_bytes.fetch_max(live, Ordering::Relaxed);
            self.peak.fetch_add(1, Ordering::Relaxed);
            self.triggers.note_live(live);
        }
    }

    /// Forgets the sample at `address`, if there is one: it is freed.
    pub(crate) fn forget(&self, address: usize) {
        self.take(address);
    }

    /// Takes the sample at `address` out, if there is one: it is not live until it is put back.
    pub(crate) fn take(&self, address: usize) -> Option<Sample> {
        let tables = self.tables.get()?;
        let sample = tables.live.remove(address)?;
        tables.stacks.subtract(sample.stack, sample.weight, self.peak.load(Ordering::Relaxed));
        self.live_bytes.fetch_sub(sample.weight.bytes, Ordering::Relaxed);
        Some(sample)
    }

    /// Puts a sample back that was taken out. `false` if there is no room by now.
    pub(crate) fn put_back(&self, address: usize, sample: Sample) -> bool {
        let Some(tables) = self.tables.get() else { return false };
        let is_kept = tables.live.insert(address, sample);
        if is_kept {
            self.add(tables, sample);
        }
        is_kept
    }

    /// Counts a sample that was not recorded, because the tables are full.
    #[cold]
    fn drop_one(&self) {
        self.n_dropped.fetch_add(1, Ordering::Relaxed);
        if self.has_tables() && !self.has_said_full.swap(true, Ordering::Relaxed) {
            freestone_os::report(format_args!(
                "the heap profile is full: samples are lost from now on; start with a larger heap_profile_interval"
            ));
        }
    }

    /// Counts a sample that was not recorded, because the heap of sampled blocks was busy.
    pub(crate) fn count_dropped(&self) {
        self.n_dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Samples that were not recorded.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// The last interval; 0 if it was never started.
    pub(crate) fn last_interval(&self) -> u64 {
        self.last_interval.load(Ordering::Relaxed)
    }

    /// Calls `visit` with each stack's addresses and counts, until that returns an error.
    ///
    /// # Errors
    /// The first that `visit` returns.
    pub(crate) fn for_each<E>(&self, visit: impl FnMut(&[AtomicUsize], StackCounts) -> Result<(), E>) -> Result<(), E> {
        match self.tables.get() {
            Some(tables) => tables.stacks.for_each(self.peak.load(Ordering::Relaxed), visit),
            None => Ok(()),
        }
    }
}

/// The number of no generation.
const NO_GENERATION: u32 = u32::MAX;

#[cfg(test)]
mod tests;
