//! Freestone: a memory allocator that is fast, lean, and gives memory back by itself.
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
//! Memory flows down one staircase and back up; the modules are the stairs, and each may name only those below it
//! (`layers.dag`, checked by a test).
//!
//! ```text
//!  program ── malloc / Box::new
//!     │
//!  api       alloc, free, realloc: the hot paths; the process's one allocator; explicit heaps
//!  thread    thread heaps: a bin a size class, no locks
//!  central   spans between owners
//!  page      runs of 64 KiB pages: dirty, clean, purged
//!  span      span records, bitmaps, the page map: address → owner and size class
//!  size_class, config, stats, misuse
//! ```
//!
//! Start reading at `api/alloc.rs`.
#![cfg_attr(not(test), no_std)]

#[cfg(test)]
extern crate std;

pub mod api;
pub mod central;
pub mod check;
pub mod config;
pub mod misuse;
pub mod page;
pub mod shared;
pub mod size_class;
pub mod span;
pub mod stats;
#[cfg(test)]
mod testing;
pub mod thread;
pub mod usage;

pub use api::heap::Heap;
pub use api::rust::Freestone;
pub use stats::Stats;
