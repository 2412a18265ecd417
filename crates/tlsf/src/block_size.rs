//! The three numbers that every block's size follows from, in bytes.
//!
//! A block's size is the distance from its header to the next header: a multiple of [`GRANULE`], [`LEAST_BLOCK_BYTES`] or more. The
//! header is part of it.

/// The unit of block sizes, in bytes, and the alignment of every block's payload.
pub const GRANULE: usize = 16;

/// Bytes of the header in front of each block's payload.
pub const HEADER_BYTES: usize = 8;

/// Bytes of the smallest block, header included: a free block needs that much for its header, two links and its size.
pub const LEAST_BLOCK_BYTES: usize = 32;
