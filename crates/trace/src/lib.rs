//! The format of a trace: every call of an allocator by one process, as the option `record` writes it.
//!
//! ```text
//!  file    header of 4 KiB │ chunk │ chunk │ chunk …        each a multiple of 4 KiB, of one recorder each
//!  chunk   header of 64 B  │ word word word … 0             until a zero byte, or until the chunk's end
//!  word    length − 1 (3 bits) │ operation (4 bits) │ payload (1 to 57 bits)       1 to 8 bytes, little-endian
//!  event   words that say more about it, then the word of the call itself
//! ```
//!
//! `docs/trace-format.md` specifies it. [`Encoder`] makes words of calls, [`Events`] makes events of words. Neither allocates; decoding takes any
//! bytes whatever, and returns an error for those that are no trace.
//!
//! | file | owns |
//! |---|---|
//! | [`word`] | one word |
//! | [`event`] | what an event says |
//! | [`encoder`] | from calls to words |
//! | [`events`] | from words to events |
//! | [`chunk`] | a chunk: header, checksum |
//! | [`mod@file`] | a file: header, finding the chunks |
//!
//! Layer: below everything; it names no other crate.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod chunk;
pub mod encoder;
pub mod event;
pub mod events;
pub mod file;
pub mod word;

pub use encoder::Encoder;
pub use event::{Damage, Event, Kind, What};
pub use events::Events;

/// The version of the format. A reader refuses every other one.
pub const VERSION: u32 = 1;
