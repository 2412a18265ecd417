//! What an event says.

use crate::word::Op;
use core::fmt;

/// Which function allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// C's `malloc` and its kin.
    C,
    /// `calloc`.
    CZeroed,
    /// Rust's `alloc`.
    Rust,
    /// Rust's `alloc_zeroed`.
    RustZeroed,
    /// C++'s `operator new`.
    New,
    /// C++'s `operator new[]`.
    NewArray,
}

impl Kind {
    /// Whether the block is zero.
    #[must_use]
    pub fn is_zeroed(self) -> bool {
        matches!(self, Self::CZeroed | Self::RustZeroed)
    }

    /// The word that has the event.
    #[inline(always)]
    #[must_use]
    pub(crate) fn op(self) -> Op {
        match self {
            Self::C => Op::C,
            Self::CZeroed => Op::CZeroed,
            Self::Rust => Op::Rust,
            Self::RustZeroed => Op::RustZeroed,
            Self::New => Op::New,
            Self::NewArray => Op::NewArray,
        }
    }
}

/// What was called. A block is named by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The thread has its heap from here on.
    Begin,
    /// The thread's heap has ended.
    End,
    /// `size` bytes were asked for.
    Allocate {
        /// By which function.
        kind: Kind,
        /// Bytes that were asked for.
        size: u64,
        /// Logarithm of the alignment that was asked for; 0 if none was.
        align_log2: u8,
        /// The block; 0 if the call failed.
        block: u64,
    },
    /// A block was to be resized.
    Resize {
        /// The block that was passed.
        from: u64,
        /// Bytes that were asked for.
        size: u64,
        /// The block that was returned; 0 if the call failed, and then the old one is as it was.
        block: u64,
    },
    /// A block was freed.
    Free {
        /// The block.
        block: u64,
    },
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number of the thread.
    pub thread: u32,
    /// Microseconds since the recording began, as of when the thread last looked at the clock.
    pub time_us: u64,
    /// The sequence number that the thread saw after the call.
    pub sequence: u64,
    /// The sequence number that the call took before it freed a block: no other event has the same.
    pub ticket: Option<u64>,
    /// What was called.
    pub what: What,
}

/// Why a trace, or a part of one, cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file does not begin as a trace does.
    NoTrace,
    /// The trace has another version.
    Version(u32),
    /// The file ends inside its header.
    CutHeader,
    /// A chunk's bytes do not have its checksum.
    Checksum {
        /// Number of its recorder.
        recorder: u32,
        /// The recorder's chunks before it.
        place: u64,
    },
    /// A chunk's header contradicts itself or the file.
    Chunk,
    /// Something that is no word.
    Word,
    /// A word that cannot be where it is.
    Order,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTrace => f.write_str("this is no trace of Freestone"),
            Self::Version(version) => {
                write!(
                    f,
                    "the trace has version {version} of the format, and this program reads version {}",
                    crate::VERSION
                )
            }
            Self::CutHeader => f.write_str("the trace ends inside its header"),
            Self::Checksum { .. } => f.write_str("a chunk does not have its checksum"),
            Self::Chunk => f.write_str("a chunk's header is damaged"),
            Self::Word => f.write_str("a chunk contains something that is no event"),
            Self::Order => f.write_str("a chunk contains a part of an event where there can be none"),
        }
    }
}

impl core::error::Error for Damage {}
