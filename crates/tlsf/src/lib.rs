//! An O(1) heap over any memory you hand it.
//!
//! Two-level segregated fit (TLSF): free blocks hang in lists by size, powers of two cut into 32; two bitmaps say which lists are not
//! empty; two bit scans find one in which every block fits. So `allocate` and `deallocate` run in a bounded number of
//! instructions, whatever happened before: what a control loop, an audio callback or a game frame needs. A used block
//! pays 8 bytes, and is hardly longer than asked for: by less than 5/32, and 512 bytes. No operating system, no standard library,
//! no panics, any power-of-two alignment, 32 and 64 bits.
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
//! // SAFETY: the blocks are given back once, and not used afterwards.
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
//! | module | owns |
//! |---|---|
//! | `mapping` | size → list, as pure arithmetic |
//! | `bitmap` | which lists hold a block |
//! | `block` | header, seal, links: where the bits lie |
//! | `free_list`, `top` | the free blocks: the lists, and the one that is in none |
//! | `region` | which memory the heap may touch |
//! | `tlsf` | the heap: its parts; regions added, appended to, removed |
//! | `allocate`, `deallocate`, `reallocate` | the three calls, each a short list of named steps |
//! | `footer` | the overrun footer of a [`Guarded`] heap |
//! | `walk`, `stats`, `check` | blocks in order, leaks, what is wrong with an address, the invariants |
//! | `locked`, `sharded`, `global` | threads, `GlobalAlloc`, `Allocator` |
//!
//! # The bound
//! On x86-64, for any alignment up to 16, `allocate` takes at most 120 instructions, and so does `deallocate` in a heap that may have
//! up to four regions (the default); each doubling of that costs four more. `deallocate_unchecked` takes at most 100. That is no
//! measurement but the longest way through the machine code, so it holds for every operation on every heap; `cargo xtask
//! tlsf-bound` finds and prints it. In a random mix, counted step by step, the mean is 63 to allocate and 57 to deallocate.
//! What is not on that way: larger alignments (294 in a random sample), refusals, and a request that no list above its own can
//! serve, nor the top: before it is refused, the blocks of its own list are looked at, one by one ([`Policy::WALK_MAX`]). With
//! [`Bounded`] that is at most four of them.
//!
//! # When not to use it
//! For a program on an operating system without deadlines, a thread-caching heap is faster across threads. For blocks of one size,
//! a pool is.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

mod allocate;
mod bitmap;
mod block;
mod check;
mod deallocate;
mod error;
mod footer;
mod free_list;
mod global;
mod locked;
mod mapping;
mod policy;
mod reallocate;
mod region;
mod sharded;
mod stats;
mod tlsf;
mod top;
mod walk;

pub use block::{HEADER_BYTES, LEAST_BLOCK_BYTES};
pub use error::Error;
pub use freestone_base::lock::{Parking, Spin};
pub use locked::Locked;
pub use mapping::GRANULE;
pub use policy::{Bounded, Guarded, Policy, Standard};
pub use region::LEAST_REGION_BYTES;
pub use sharded::Sharded;
pub use stats::Stats;
pub use tlsf::Tlsf;
pub use walk::BlockInfo;
