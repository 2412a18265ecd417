//! The atomics door: `core`'s atomics, or loom's under `--cfg loom`.
//!
//! Code that takes its atomics from here runs unchanged in a loom model. `docs/concurrency.md` lists every atomic of the
//! workspace with its orderings.

#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Tells the processor (or loom) that this thread waits in a loop.
#[inline]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
