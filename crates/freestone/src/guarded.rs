//! Guarded blocks: one allocation in many, between pages without access.
//!
//! ```text
//!  records │ closed │ slot 0 │ closed │ slot 1 │ closed │ …          one mapping, outside the address range of the heap
//!                     ┊    ┊
//!                     ┊    └ a block at the end: what is behind it faults at once
//!                     └ or at the start: what is before it does
//!
//!  vacant ── allocate ──▶ live ── free ──▶ freed (closed: any use faults) ── every other slot was used ──▶ live …
//!                          └ a fault, and the program goes on ──▶ spent
//! ```
//!
//! A slot has room for the largest small block. Only the OS pages that a block lies in are open, and only while it is live. Slots are used in turn, so
//! a freed block stays closed as long as possible. Bytes between a block and the end of its open pages are filled, and checked when the block
//! is freed. Each slot's record has where its block was allocated and freed.
//!
//! | file | owns |
//! |---|---|
//! | [`pool`] | the slots: allocating, freeing, and what a fault in them means |
//! | [`slot`] | the record of a slot |
//! | [`geometry`] | where slots are |
//! | [`vacant`] | which slot is used next |
//! | [`empty_blocks`] | blocks of no bytes, at the level `full` |
//!
//! Layer: above `misuse`, below `span`. `thread::sampling` decides which allocations come here; `api::faults` is told of faults.
//! Cost: a system call to open pages and one to close them, and two stacks. Nothing is mapped before the first guarded block.
//! When all slots are live, or there is no memory, no block is guarded; the first is said once.

pub(crate) mod empty_blocks;
pub(crate) mod geometry;
pub(crate) mod pool;
pub(crate) mod slot;
pub(crate) mod vacant;
