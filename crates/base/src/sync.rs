//! The atomics of the workspace: `core`'s, loom's under `--cfg loom`, or scheduled ones under `--cfg shuttle`.
//!
//! Code that takes its atomics from here runs unchanged in a model. loom explores the interleavings and the orderings of a few calls
//! (`tests.rs` beside each module); shuttle explores random interleavings of the whole heap (`freestone::testing::schedules`).
//! `docs/concurrency.md` lists every atomic of the workspace with its orderings.

#[cfg(not(any(loom, shuttle)))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence};
#[cfg(all(target_has_atomic = "64", not(any(loom, shuttle))))]
pub use core::sync::atomic::{AtomicI64, AtomicU64};
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(shuttle)]
pub use scheduled::{AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
pub mod parked;
#[cfg(shuttle)]
pub mod scheduled;

/// Tells the processor, or the model, that this thread waits in a loop.
#[inline]
pub fn spin_hint() {
    #[cfg(not(any(loom, shuttle)))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(shuttle)]
    scheduled::let_others_run();
}
