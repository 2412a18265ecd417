//! The heap profile: allocations that are sampled, with their stacks.
//!
//! ```text
//!  an allocation ─▶ countdown in bytes ─▶ sampled ─▶ its stack ─▶ StackTable: what was allocated there, is live, was live at the peak
//!                   (`exponential`)          └─▶ its address ─▶ LiveTable: which stack, how much it stands for
//!  a free of a sampled block ─▶ LiveTable ─▶ its stack
//!
//!  dump ─▶ `text`: one line a stack, and the libraries that the process has mapped
//! ```
//!
//! Every byte is sampled with the same chance, so a block of `n` bytes is with 1 - exp(-n / interval). A sample stands for as many blocks as that makes
//! probable: 1 divided by the chance. So each estimate is right on average, at every size.
//!
//! | file | owns |
//! |---|---|
//! | [`exponential`] | how far the next sample is, and what a sample stands for |
//! | [`tally`] | blocks and bytes |
//! | [`stack_table`] | the stacks, and what was counted of each |
//! | [`live_table`] | the samples that are live |
//! | [`recorder`] | [`HeapProfile`](recorder::HeapProfile): starting, recording, forgetting |
//! | [`triggers`] | when a profile is written without a request |
//! | [`text`] | the profile as `pprof` reads it |
//!
//! Layer: beside `guarded`, below `span`. `thread::profiling` decides which allocations come here.
//! Threads: any thread, in any state, a signal handler included: there is no lock, and no table grows. A table that is full takes no further sample,
//! which is said once.
//! Memory: mapped when profiling starts, for good; only what is used gets pages.

pub(crate) mod exponential;
pub(crate) mod live_table;
pub(crate) mod recorder;
pub(crate) mod stack_table;
pub(crate) mod tally;
pub(crate) mod text;
pub(crate) mod triggers;
