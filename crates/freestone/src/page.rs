//! The page heap: runs of 64 KiB pages, from the operating system and back to it.
//!
//! ```text
//!              expansion          allocation          deallocation          purging
//!  never used ──────────▶ clean ─────────────▶ in use ────────────▶ dirty ─────────▶ clean
//!                                    ▲                               │
//!                                    └────────── allocation ─────────┘
//! ```
//!
//! Layer: above `span`, below `central`. Inside, each file names only those above it in this table:
//!
//! | file | owns |
//! |---|---|
//! | [`policy`] | decisions: numbers and a clock in, a decision out |
//! | [`runs`] | runs of pages and their states; bookkeeping without policy |
//! | [`large_cache`] | runs that a thread keeps for its next large blocks |
//! | [`cache_list`], [`large_list`] | the caches with an open slot; the large blocks of an explicit heap |
//! | [`page_stats`], [`state`], [`watch`] | the numbers; what the lock protects; which threads sleep |
//! | [`run_lists`] | runs that are free, but not in the page heap yet: emptied spans, and freed large blocks |
//! | [`address_range`] | finding the address range |
//! | [`page_heap`] | the lock, and what can be read without it |
//! | [`transitions`], [`huge_pages`], [`guards`] | mapping, unmapping and purging runs; huge pages; guards behind large blocks and spans |
//! | [`address_quarantine`] | freed large blocks whose addresses are not used again yet |
//! | [`expansion`] | more clean runs |
//! | [`freed`] | freed runs of large blocks for the next ones, without the lock |
//! | [`purging`], [`limits`] | giving memory back: when it is due, and when a limit is near |
//! | [`allocation`], [`deallocation`], [`storage`] | taking runs, and taking them back; storage for thread heaps |
//! | [`ahead`], [`emptied`] | taking several runs for spans at once; emptied spans for the next ones, without the lock |
//! | [`closed`] | what an address that cannot be accessed belongs to |
//! | [`large_blocks`], [`relocation`] | large blocks: growing and shrinking where they are, and moving |

mod address_quarantine;
mod address_range;
pub(crate) mod ahead;
mod allocation;
mod cache_list;
mod clearing;
pub(crate) mod closed;
mod deallocation;
mod emptied;
mod expansion;
mod freed;
mod guards;
mod huge_pages;
mod large_blocks;
pub(crate) mod large_cache;
mod large_list;
mod limits;
mod page_heap;
mod page_stats;
mod policy;
mod purging;
mod relocation;
mod run_lists;
pub(crate) mod runs;
pub(crate) mod state;
mod storage;
mod transitions;
mod watch;

pub(crate) use allocation::{Prefers, Run};
pub(crate) use large_cache::LargeRunCache;
pub(crate) use large_list::LargeList;
pub(crate) use page_heap::{OwnedRun, PageHeap};
#[cfg(test)]
pub(crate) use page_stats::PageStats;
pub(crate) use policy::growth::COPIED_MOST;
pub(crate) use policy::large_cache_share::check_interval;
pub(crate) use relocation::Moved;

#[cfg(test)]
mod tests;
