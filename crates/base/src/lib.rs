//! What every Freestone allocator builds on: address arithmetic, atomics that run in models, a ranked lock, text without a heap.
//!
//! Layer: the lowest. Nothing here allocates, panics on input, or calls the operating system.
//!
//! | module | owns |
//! |---|---|
//! | [`units`] | bytes, pages and milliseconds as types, so that one cannot be taken for another |
//! | [`align`] | rounding to powers of two, without overflow |
//! | [`bytes`] | copying and filling without the C library |
//! | [`bits`] | bit scan and the two-level logarithm every size table here is built on |
//! | [`branch`] | what is known about branches, for compilers that can be told
//! | [`ptr`] | the only integer-to-pointer conversions of the workspace |
//! | [`sync`] | atomics: `core`'s, or a model's under `--cfg loom` and `--cfg shuttle` |
//! | [`count`] | counters that one thread writes and any thread may read |
//! | [`inbox`] | a list that many threads push onto and one takes as a whole |
//! | [`slot`] | a one-place cache for a number, which other threads may close |
//! | [`tagged_stack`] | a list of numbers that many threads push onto and pop from, and of which any takes all |
//! | [`once`] | initialising once, where an attempt may fail |
//! | [`lock`] | a mutual-exclusion lock with a rank, whose waiting is a parameter |
//! | [`prefetch`] | prefetching |
//! | [`text`] | a fixed buffer to format messages into |
//!
//! ```
//! use freestone_base::align;
//! use freestone_base::lock::{Lock, Spin};
//!
//! let end: Lock<usize, Spin> = Lock::new(100);
//! *end.lock() = align::up(100, 64);
//! assert_eq!(*end.lock(), 128);
//! ```
//!
//! # Small processors
//! A module whose operations the target's processor does not have is left out: [`count`], [`slot`] and [`tagged_stack`] need atomics of 64 bits,
//! [`inbox`], [`lock`] and [`once`] a compare-and-exchange of 32 bits or a pointer.
#![no_std]

pub mod align;
pub mod bits;
pub mod branch;
pub mod bytes;
#[cfg(target_has_atomic = "64")]
pub mod count;
#[cfg(target_has_atomic = "ptr")]
pub mod inbox;
#[cfg(target_has_atomic = "32")]
pub mod lock;
#[cfg(target_has_atomic = "32")]
pub mod once;
pub mod prefetch;
pub mod ptr;
#[cfg(target_has_atomic = "64")]
pub mod slot;
pub mod sync;
#[cfg(target_has_atomic = "64")]
pub mod tagged_stack;
pub mod text;
pub mod units;
