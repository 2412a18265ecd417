//! Pools: allocators for blocks of one size, over memory that you provide.
//!
//! When a program needs many blocks of one size (connections, packets, nodes, voices), a pool allocates each in some twenty instructions.
//! It takes a free block from the group of sixty-four in which a block was freed last, or the next block that was never used. No block has a
//! header: a shift turns an address into a block's number, and a bit says whether the block is free. A double free, a foreign pointer and
//! a pointer into a block are therefore refused at once, with an error that names the block, and change nothing. The crate needs no
//! operating system and no standard library, and does not panic.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use freestone_pool::{Error, FixedPool, Shape};
//!
//! const PACKETS: Shape = match Shape::new(1500, 16) {
//!     Ok(shape) => shape,
//!     Err(_) => panic!("no such pool"),
//! };
//! #[repr(align(16))]
//! struct Memory([MaybeUninit<u8>; PACKETS.region_bytes()]);
//! let mut memory = Memory([MaybeUninit::uninit(); PACKETS.region_bytes()]);
//!
//! let mut pool = FixedPool::new(PACKETS, &mut memory.0)?;
//! let packet = pool.allocate_zeroed()?;
//! // SAFETY: the block is freed once; the second call is refused.
//! unsafe {
//!     pool.deallocate(packet)?;
//!     let error = pool.deallocate(packet).unwrap_err();
//!     assert_eq!(error, Error::DoubleFree { block: packet.addr().get(), bytes: 1500 });
//! }
//! assert!(pool.close().is_ok());
//! # Ok::<(), Error>(())
//! ```
//!
//! | type | for |
//! |---|---|
//! | [`Shape`] | block size, count and alignment; how much memory that takes |
//! | [`FixedPool`] | one thread |
//! | [`SharedPool`], [`Magazine`] | many threads, without a lock |
//! | [`Pool`], [`Handle`] | values of one type, which their handle drops and whose block it frees |
//! | [`NoFallback`], [`HeapFallback`] | what serves requests when no block is left |
//!
//! [`SharedPool`] and [`Magazine`] exist where the processor has atomics of 64 bits: the head of a list is a block's number and a tag, exchanged as one.
//!
//! # What it costs
//! Memory: the distance between blocks is the next power of two; beside the blocks, 2 bits for each ([`FixedPool`]), or 4 bytes for each and
//! 1152 bytes in all ([`SharedPool`]). Making a [`FixedPool`] touches no memory. Time: constant, whatever happened before;
//! `cargo bench -p freestone-pool` measures it.
//!
//! # When not to use it
//! For blocks of many sizes use a heap: `freestone-tlsf` over memory that you provide, or the crate `freestone`. For objects that are all freed
//! at once, an arena frees them in one step. A block of 65 bytes takes 128.
#![no_std]

mod error;
mod fallback;
mod fixed;
mod grid;
mod groups;
mod inspect;
#[cfg(target_has_atomic = "64")]
mod links;
#[cfg(target_has_atomic = "64")]
mod magazine;
mod shape;
#[cfg(target_has_atomic = "64")]
mod shared;
mod typed;

pub use error::Error;
pub use fallback::{Fallback, HeapFallback, NoFallback};
pub use fixed::FixedPool;
pub use inspect::Stats;
#[cfg(target_has_atomic = "64")]
pub use magazine::Magazine;
pub use shape::Shape;
#[cfg(target_has_atomic = "64")]
pub use shared::SharedPool;
pub use typed::{Handle, Local, Pool, Refused, Source};
