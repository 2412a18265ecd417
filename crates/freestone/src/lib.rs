//! Freestone is a memory allocator that is fast, lean, and gives memory back to the operating system by itself.
//!
//! To make it the allocator of a Rust program:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: freestone::Freestone = freestone::Freestone;
//!
//! fn main() {
//!     assert_eq!(vec![1, 2, 3].len(), 3);
//! }
//! ```
//!
//! # Why
//! - **It gives memory back.** Memory that is free for longer than the option `decay_ms`, a second by default, goes back to the operating system,
//!   by a background thread once two threads have allocated; before that, when the program calls the allocator. A thread's caches are bounded.
//! - **It is fast.** Where the layout is known at compile time, allocating a small block takes a handful of instructions without a lock, an atomic
//!   read-modify-write or a call, and so does freeing it.
//! - **It notices mistakes.** By default it reports double frees of small blocks, misaligned frees and damaged links;
//!   [the option `harden`](options::Harden) finds more, at a price.
//! - **It shows what it holds**, without another build: [figures](Freestone::stats), their [texts for monitoring](Freestone::with_details), and the
//!   [stacks that allocated](profile) what is live.
//!
//! For calls whose time is bounded, take `freestone-tlsf`; for many blocks of one size, `freestone-pool`. Both work in memory that you provide.
//!
//! # How
//! To read what it holds, and to return free memory to the operating system:
//!
//! ```
//! # #[global_allocator]
//! # static ALLOCATOR: freestone::Freestone = freestone::Freestone;
//! let buffer = vec![1_u8; 8 << 20];
//! assert!(ALLOCATOR.stats().live >= 8 << 20);
//! drop(buffer);
//! ALLOCATOR.purge();
//! ```
//!
//! To allocate blocks that are freed together:
//!
//! ```
//! use core::alloc::Layout;
//! use freestone::Heap;
//!
//! // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
//! let request = unsafe { Heap::new() }.expect("memory for a heap");
//! let block = request.allocate(Layout::new::<[u8; 4096]>());
//! assert!(block.is_some());
//! drop(request); // and every block of it
//! ```
//!
//! Options are set by environment variables (`FREESTONE_DECAY_MS=250`), by a symbol of the program, or by [`Freestone::set_option`]; see
//! [`options`].
//!
//! # Errors
//! An allocation that fails returns null from `GlobalAlloc` and `None` from [`Heap`]. A double or foreign free that can be seen is reported on
//! standard error; then the process aborts, unless the option `misuse` says otherwise.
//!
//! # Platforms
//! Linux on x86-64 and AArch64, with glibc or musl, and on 64-bit RISC-V with glibc; Rust 1.85 or newer. `no_std`: needs the C library, not `std`. Windows on x86-64 and WebAssembly
//! (wasm32, one thread), newer and less tested; macOS, iOS, FreeBSD and Android compile, and were never run. Only Linux has reports, heap profiles,
//! traces, live statistics and guarded blocks. Any other platform is refused at compile time, with the way out.
//!
//! # Features
//! A collection that takes an allocator may take [`Freestone`], a [`Heap`] or a `&Heap`, by the trait that it asks for:
//! - `allocator-api2`: that of the crate allocator-api2 0.4.
//! - `allocator-api2-02`: that of allocator-api2 0.2, as hashbrown and bumpalo ask for.
//! - `nightly`: that of the standard library, `Allocator` of core; needs a nightly compiler.
//!
//! # Inside
//! Each module may name only those below it (`layers.dag`, checked by a test).
//!
//! ```text
//!  program ── malloc / Box::new
//!     │
//!  api       alloc, free, realloc: the hot paths; the process's one allocator; explicit heaps
//!  thread    thread heaps: one bin per size class, no locks
//!  shared    what all heaps share
//!  central   spans without an owner
//!  page      runs of 64 KiB pages: dirty, clean, purged
//!  span      span records, bitmaps, the page map: address → owner and size class
//!  guarded   blocks between closed pages, one allocation in many
//!  heap_profile  stacks of sampled allocations
//!  record    every call, written to a trace
//!  size_class, config, stats, random, misuse, usage
//! ```
//!
//! Start reading at `api/alloc.rs`.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(feature = "nightly", feature(allocator_api))]

#[cfg(test)]
extern crate std;

mod api;
mod central;
mod check;
mod config;
#[doc(hidden)]
pub mod door;
mod guarded;
mod heap_profile;
mod misuse;
mod page;
mod random;
mod record;
mod shared;
mod size_class;
mod span;
mod stats;
#[cfg(test)]
mod testing;
mod thread;
mod usage;

pub use api::explicit_heap::Heap;
pub use api::global_alloc::Freestone;
pub use api::pressure::Callback;
pub use freestone_os::Errno;
pub use stats::rows::{ClassStats, HeapKind, HeapStats};
pub use stats::{Details, Stats};

/// What the process's allocator holds now, as [`Freestone::stats`] says it: for code that does not see the static that is the global allocator.
///
/// ```
/// let stats = freestone::stats();
/// assert!(stats.committed >= stats.live);
/// ```
#[must_use]
pub fn stats() -> Stats {
    Freestone.stats()
}

/// The options: their names, units, defaults and ranges.
///
/// An option is set, the last one winning, by an environment variable (`FREESTONE_DECAY_MS=250`), by the link-time symbol
/// `freestone_options` (a C string, `"decay_ms=250,limit=1g"`), or by [`Freestone::set_option`]. In a process that is more privileged than its
/// caller, variable and symbol can raise `harden` above its default, and are ignored otherwise. The option `profile` sets several others at once, those in [`PROFILES`](options::PROFILES); an option that is
/// set explicitly overrides its profile.
///
/// ```
/// use freestone::options::OPTIONS;
///
/// for option in OPTIONS {
///     println!("{} (by default {:?}; {}): {}", option.key, option.default(), option.range(), option.effect());
/// }
/// assert!(OPTIONS.iter().any(|option| option.key == "decay_ms"));
/// ```
pub mod options {
    pub use crate::config::profile::Profile;
    pub use crate::config::{Harden, Mistake, NEVER_MS, OPTIONS, OptionSpec, PROFILES, Unit};
}

/// The heap profile: which stacks allocated what is live, found by sampling.
///
/// With the option `heap_profile=on` it starts with the allocator, and is written when the process ends.
///
/// ```
/// use freestone::profile::{self, Snapshot};
///
/// #[global_allocator]
/// static ALLOCATOR: freestone::Freestone = freestone::Freestone;
///
/// assert!(profile::start());
/// let buffer = vec![1_u8; 64 << 20];
/// let mut text = Vec::new();
/// profile::write(Snapshot::Live, &mut |piece| {
///     text.extend_from_slice(piece);
///     Ok(())
/// })
/// .expect("memory takes everything");
/// assert!(text.starts_with(b"heap profile: "));
/// profile::stop();
/// drop(buffer);
/// ```
pub mod profile {
    pub use crate::api::profile::{start, stop, write, write_file, write_to};
    pub use crate::heap_profile::text::Snapshot;
}
