//! Two-level segregated fit (TLSF): an allocator with a bounded time for allocating and freeing, over memory that you provide.
//!
//! Free blocks are in lists by size: each power of two is divided into 32 lists. Two levels of bitmaps say which lists are not empty, and
//! two bit scans find a list in which every block fits. [`Tlsf::allocate`] and [`Tlsf::deallocate`] therefore run in a bounded number of
//! instructions, whatever happened before, as a control loop, an audio callback or a game frame requires. Two steps take time that depends on the number
//! of blocks. If neither a list above its own nor the top can serve a request, the heap looks through the request's own list, as a last resort; with
//! the policy [`Bounded`], at four of its blocks at most. And if a block to be freed or resized is refused, the heap looks for what is wrong. A used block costs 8 bytes
//! of header; with that it is rounded up to a multiple of 16 bytes, 32 at least, and may be 16 bytes longer, or longer by less than 5/32 and less than
//! 512 bytes. The crate needs no operating system and no standard library, does not panic, supports any power-of-two alignment, and runs on 32 and 64
//! bits.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use freestone_tlsf::Tlsf;
//!
//! #[repr(align(16))]
//! struct Memory([MaybeUninit<u8>; 65536]);
//! let mut memory = Memory([MaybeUninit::uninit(); 65536]);
//!
//! let mut heap = Tlsf::new();
//! heap.add_region(&mut memory.0)?;
//! let voice = heap.allocate(1000, 64)?;
//! assert_eq!(voice.addr().get() % 64, 0);
//! // SAFETY: each block is freed once, and not used afterwards.
//! unsafe {
//!     let voice = heap.reallocate(voice, 3000, 64)?;
//!     assert!(heap.usable_size(voice)? >= 3000);
//!     heap.deallocate(voice)?;
//! }
//! assert_eq!(heap.leaks().count(), 0);
//! heap.check()?;
//! # Ok::<(), freestone_tlsf::Error>(())
//! ```
//!
//! # Which type
//! | type | for |
//! |---|---|
//! | [`Tlsf`] | one thread at a time |
//! | [`Locked`] | threads; also a `GlobalAlloc` |
//! | [`Sharded`] | many threads that allocate at once; also a `GlobalAlloc` |
//! | [`Standard`], [`WithFooters`], [`Bounded`] | the policy of a heap: the default; finding overruns of one byte; a bound for refused requests too |
//!
//! [`Locked`] and [`Sharded`] exist where the processor has a compare-and-exchange of 32 bits; a Cortex-M0 has none. There, mask interrupts around
//! the calls of a [`Tlsf`].
//!
//! With the feature `allocator-api2`, references to [`Locked`] and [`Sharded`] are `Allocator`s of the crate of that name.
//!
//! # Errors
//! A double free, a pointer from elsewhere, a pointer into a block and a write past a block's end are refused with an [`Error`] that names
//! the block, and the heap is unchanged. [`Tlsf::check`] verifies the whole heap.
//!
//! # The bound
//! On x86-64, for any alignment up to 16, `allocate` takes at most 120 instructions, and so does `deallocate` in a heap that can have
//! up to four regions (the default); each doubling of that number adds four. `deallocate_unchecked` takes at most 100. These are
//! limits on the longest path through the machine code and not a measurement, so they hold for every operation on every heap;
//! `cargo xtask tlsf-bound` finds the paths and fails if one is longer. Three cases are not on them: alignments above 16, refused requests, and
//! a request that neither a list above its own nor the free end of the first region can serve. In the last case the blocks of the request's own
//! list are checked one by one before the request is refused ([`Policy::WALK_MAX`]); with [`Bounded`] no more than four of them.
//!
//! # When not to use it
//! In a program without deadlines on an operating system, a heap with thread caches is faster across threads. For blocks of one size,
//! a pool is faster.
//!
//! # For readers of the source
//! | module | owns |
//! |---|---|
//! | `block_size`, `mapping` | the numbers of a block's size; size → list, as pure arithmetic |
//! | `header`, `block` | header and seal as values; header, links and size in memory |
//! | `bitmap`, `free_list`, `close_fit` | which lists hold a block; the lists; which blocks are handed out whole |
//! | `region`, `top` | which memory the heap may touch; the free end of the first region, which is in no list |
//! | `tlsf` | the heap: its parts; regions added, grown, removed |
//! | `allocate`, `deallocate`, `reallocate` | the three calls, each a short list of named steps |
//! | `footer` | the overrun footer of a heap with the policy [`WithFooters`] |
//! | `walk`, `stats`, `check` | blocks in order, leaks, what is wrong with an address, the invariants |
//! | `locked`, `sharded`, `global` | threads, `GlobalAlloc`, `Allocator` |
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

mod allocate;
mod bitmap;
mod block;
mod block_size;
mod check;
mod close_fit;
mod deallocate;
mod error;
mod footer;
mod free_list;
#[cfg(target_has_atomic = "32")]
mod global;
mod header;
#[cfg(target_has_atomic = "32")]
mod locked;
mod mapping;
mod policy;
mod reallocate;
mod region;
#[cfg(target_has_atomic = "32")]
mod sharded;
mod stats;
mod tlsf;
mod top;
mod walk;

pub use block_size::{GRANULE, HEADER_BYTES, LEAST_BLOCK_BYTES};
pub use error::Error;
#[cfg(target_has_atomic = "32")]
pub use freestone_base::lock::{Parking, Spin};
#[cfg(target_has_atomic = "32")]
pub use locked::Locked;
pub use policy::{Bounded, Policy, Standard, WithFooters};
pub use region::{LEAST_REGION_ADDRESS, LEAST_REGION_BYTES};
#[cfg(target_has_atomic = "32")]
pub use sharded::Sharded;
pub use stats::Stats;
pub use tlsf::Tlsf;
pub use walk::BlockInfo;
