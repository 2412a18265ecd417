//! Atomics of the model under schedules (`--cfg shuttle`): `core`'s, in whose every operation the scheduler may run another thread.
//!
//! They are as large as `core`'s and may be zeroed memory, so that span records, page map and thread heaps have the layout they ship with;
//! shuttle's own atomics do not. Orderings are not modelled: that is what the loom models are for.
//!
//! ```text
//!  operation ─▶ one in `chance`: the scheduler picks a thread ─▶ has the process been forked without this one? it vanishes ─▶ core's operation
//! ```
//!
//! **Forks.** In a forked child only the thread that forked is there. [`fork_alone`] makes it so: every other thread vanishes at its next
//! operation here, by unwinding with [`Vanished`]. The forking thread holds all locks at that moment, so a thread that vanishes holds none.
//!
//! The model runs all its threads on one thread of the operating system: the state below is that thread's. Outside a model (`begin` has not
//! been called) nothing here changes what the atomics do.
#![allow(unsafe_code)]
//!
//! # Safety
//! Addresses of lock words are compared, never read.

extern crate std;

use core::cell::{Cell, RefCell};
pub use core::sync::atomic::Ordering;
use core::sync::atomic::{self as core_atomic};
use shuttle::thread::Thread;
use std::thread::LocalKey;
use std::vec::Vec;

/// The panic payload of a thread that does not exist in the forked child.
#[derive(Debug)]
pub struct Vanished;

std::thread_local! {
    /// An operation in so many is a scheduling point; 0: no model runs.
    static CHANCE: Cell<u32> = const { Cell::new(0) };
    /// State of the generator that decides which.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    /// After a fork: the one thread that is there.
    static SURVIVOR: Cell<Option<shuttle::scheduler::TaskId>> = const { Cell::new(None) };
    /// Threads that sleep in the kernel, by the address of the word they wait for.
    static SLEEPERS: RefCell<Vec<(usize, Thread)>> = const { RefCell::new(Vec::new()) };
}

/// Begins a model: from now on one operation in `chance` is a scheduling point, drawn from `seed`.
pub fn begin(chance: u32, seed: u64) {
    CHANCE.set(chance.max(1));
    RANDOM.set(seed);
    SURVIVOR.set(None);
    SLEEPERS.with_borrow_mut(Vec::clear);
}

/// Ends a model: operations are no scheduling points any more, and no thread vanishes.
pub fn end() {
    CHANCE.set(0);
    SURVIVOR.set(None);
}

/// From now on the calling thread is the only one of the process.
pub fn fork_alone() {
    SURVIVOR.set(Some(shuttle::current::me()));
    // Sleeping threads wake up, to vanish at their next operation.
    let sleepers = SLEEPERS.with_borrow_mut(core::mem::take);
    sleepers.iter().for_each(|(_, thread)| thread.unpark());
}

/// The next number of a generator (xorshift multiplied).
fn draw(state: &'static LocalKey<Cell<u64>>) -> u64 {
    let mut word = state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    state.set(word);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

/// A point where another thread may run: before an operation on shared memory.
#[inline]
pub fn point() {
    let chance = CHANCE.get();
    if chance != 0 && !std::thread::panicking() && draw(&RANDOM).is_multiple_of(u64::from(chance)) {
        switch();
    }
}

/// Another thread runs here with a chance of one half: for system calls.
pub fn kernel_point() {
    if CHANCE.get() != 0 && !std::thread::panicking() && draw(&RANDOM) & 1 == 0 {
        switch();
    }
}

/// Lets another thread run.
pub fn let_others_run() {
    if CHANCE.get() == 0 {
        core::hint::spin_loop();
    } else if !std::thread::panicking() {
        switch();
    }
}

fn switch() {
    vanish_if_gone();
    shuttle::thread::yield_now();
    vanish_if_gone();
}

fn vanish_if_gone() {
    if SURVIVOR.get().is_some_and(|survivor| survivor != shuttle::current::me()) {
        std::panic::resume_unwind(std::boxed::Box::new(Vanished));
    }
}

/// Sleeps until another thread calls [`wake`] for `word`, unless it is not `expected` any more: looking and falling asleep are one step.
pub fn sleep(word: &AtomicU32, expected: u32) {
    if CHANCE.get() == 0 || std::thread::panicking() {
        return;
    }
    switch();
    if word.0.load(Ordering::SeqCst) != expected {
        return;
    }
    let (address, this) = (core::ptr::from_ref(word).addr(), shuttle::thread::current());
    let id = this.id();
    SLEEPERS.with_borrow_mut(|sleepers| sleepers.push((address, this)));
    shuttle::thread::park();
    SLEEPERS.with_borrow_mut(|sleepers| sleepers.retain(|(_, thread)| thread.id() != id));
    vanish_if_gone();
}

/// Wakes at most `most` of the threads that sleep on `word`.
pub fn wake(word: &AtomicU32, most: u32) {
    let address = core::ptr::from_ref(word).addr();
    for _ in 0..most {
        let woken = SLEEPERS.with_borrow_mut(|sleepers| {
            sleepers.iter().position(|(at, _)| *at == address).map(|at| sleepers.remove(at).1)
        });
        let Some(thread) = woken else { return };
        thread.unpark();
    }
}

/// A number for the calling thread of a model; 0 outside of one.
pub fn this_thread() -> usize {
    if CHANCE.get() == 0 { 0 } else { (usize::from(shuttle::current::me()) + 1) << 4 }
}

/// A fence: orderings are not modelled.
pub fn fence(_ordering: Ordering) {
    point();
}

macro_rules! common {
    ($value:ty) => {
        /// Reads.
        pub fn load(&self, order: Ordering) -> $value {
            point();
            self.0.load(order)
        }
        /// Writes.
        pub fn store(&self, value: $value, order: Ordering) {
            point();
            self.0.store(value, order);
        }
        /// Writes, and returns what was there.
        pub fn swap(&self, value: $value, order: Ordering) -> $value {
            point();
            self.0.swap(value, order)
        }
        /// Writes `new` where `current` is.
        ///
        /// # Errors
        /// Something else was there: that is the error.
        pub fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            point();
            self.0.compare_exchange(current, new, success, failure)
        }
        /// As `compare_exchange`.
        ///
        /// # Errors
        /// Something else was there: that is the error.
        pub fn compare_exchange_weak(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            self.compare_exchange(current, new, success, failure)
        }
    };
}

macro_rules! number {
    ($($name:ident $value:ty;)*) => {$(
        /// As `core`'s, with a scheduling point before each operation.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(core_atomic::$name);

        impl $name {
            /// Of this value.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(core_atomic::$name::new(value))
            }
            common!($value);
            /// Adds, and returns what was there.
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                point();
                self.0.fetch_add(value, order)
            }
            /// Subtracts, and returns what was there.
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                point();
                self.0.fetch_sub(value, order)
            }
            /// Sets bits, and returns what was there.
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                point();
                self.0.fetch_or(value, order)
            }
            /// Keeps bits, and returns what was there.
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                point();
                self.0.fetch_and(value, order)
            }
            /// Writes the larger value, and returns what was there.
            pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                point();
                self.0.fetch_max(value, order)
            }
        }
    )*};
}

number! {
    AtomicU8 u8;
    AtomicU32 u32;
    AtomicU64 u64;
    AtomicI64 i64;
    AtomicUsize usize;
}

/// As `core`'s, with a scheduling point before each operation.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicBool(core_atomic::AtomicBool);

impl AtomicBool {
    /// Of this value.
    #[must_use]
    pub const fn new(value: bool) -> Self {
        Self(core_atomic::AtomicBool::new(value))
    }
    common!(bool);
}

/// As `core`'s, with a scheduling point before each operation.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicPtr<T>(core_atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    /// Of this value.
    #[must_use]
    pub const fn new(value: *mut T) -> Self {
        Self(core_atomic::AtomicPtr::new(value))
    }
    common!(*mut T);
}
