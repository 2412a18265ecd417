//! The page heap: runs of 64 KiB pages, from the operating system and back to it.
//!
//! ```text
//!                 grow            allocate                 free               tidy
//!  reserved ───────────▶ clean ──────────────▶ in use ──────────────▶ dirty ──────────▶ clean
//!                                    ▲                                  │
//!                                    └──────────── allocate ────────────┘
//! ```
//!
//! Layer: above `span`, below `central`.
//!
//! | file | owns |
//! |---|---|
//! | [`run_set`] | free runs by length |
//! | [`state`] | what the lock protects: the sets, the frontier, the counts |
//! | [`heap`] | taking pages, and taking them back |
//! | [`grow`] | more pages at the frontier |
//! | [`large`] | large blocks: growing, shrinking and moving where they are |
//! | [`shelf`] | runs that threads keep for their next large blocks |
//! | [`huge`] | huge pages: which large blocks get them |
//! | [`purge`] | giving memory back: what is too old, and what is too much |
//! | [`limit`] | how much memory the process may have |
//! | [`window`] | finding the window, committing metadata |

pub mod grow;
pub mod heap;
pub mod huge;
pub mod large;
pub mod limit;
pub mod purge;
pub mod run_set;
pub mod shelf;
pub mod state;
pub mod window;

pub use heap::{PageHeap, Run};
pub use large::{LargeList, Moved};
pub use shelf::Shelf;

#[cfg(test)]
mod tests;
