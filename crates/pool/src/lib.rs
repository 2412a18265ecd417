//! Pools of equal blocks over memory you hand them.
//!
//! When a program needs many blocks of one size (connections, packets, nodes, voices), a pool gives each in some twenty instructions:
//! it takes a free block of the sixty-four where one came back last, or the next one that was never used. No block carries a header; a
//! shift turns an address into a block's number, and a bit says whether it is free. So a second free, a stranger's pointer and the inside
//! of a block are told at once, with the block's name, and change nothing. No operating system, no standard library, no panics.
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
//! // SAFETY: the block is given back once; the second time is refused.
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
//! | [`Pool`], [`Handle`] | values of one type, dropped and given back by their handle |
//! | [`NoFallback`], [`HeapFallback`] | what happens when no block is left |
//!
//! # What it costs
//! Memory: a block is spaced to the next power of two; 2 bits for each block ([`FixedPool`]), or 4 bytes and 1152 in all
//! ([`SharedPool`]). Making a [`FixedPool`] touches no memory. Time: constant, whatever happened before; `cargo bench -p freestone-pool` prints it.
//!
//! # When not to use it
//! For blocks of many sizes use a heap: `freestone-tlsf` over memory you hand it, or the general one. For objects that all die
//! at once, an arena gives them back in one step. When 65-byte blocks matter, remember that each takes 128.
#![no_std]

mod error;
mod fallback;
mod fixed;
mod grid;
mod groups;
mod inspect;
mod links;
mod magazine;
mod shape;
mod shared;
mod typed;

pub use error::Error;
pub use fallback::{Fallback, HeapFallback, NoFallback};
pub use fixed::FixedPool;
pub use inspect::Stats;
pub use magazine::Magazine;
pub use shape::Shape;
pub use shared::SharedPool;
pub use typed::{Handle, Local, Pool, Refused, Source};
