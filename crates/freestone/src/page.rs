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
//! | [`heap`] | the operations: allocate, free, extend, tidy |
//! | [`window`] | finding the window, committing metadata |

pub mod heap;
pub mod run_set;
pub mod state;
pub mod window;

pub use heap::{PageHeap, Run};
pub use state::PageStats;
