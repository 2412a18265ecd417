//! Streams from arbitrary bytes: turns the input of a fuzzer into operations.
//!
//! ```text
//! | kind, 4 bits; alignment, 4 bits | ID | size, 2 bytes: number, 12 bits; what it means, 4 bits |     an operation, 4 bytes
//! ```

use super::{Op, Stream};

/// Number of IDs.
const IDS: u8 = 48;

impl Stream {
    /// The stream that `bytes` encode, over a region of `region_bytes`. All bytes are valid, and a change of a few bytes changes a few
    /// operations. Most sizes are small; others are up to about 256 KiB, or absurd.
    #[must_use]
    pub fn from_bytes(region_bytes: usize, bytes: &[u8]) -> Self {
        let (ops, _) = bytes.as_chunks();
        Self { region_bytes, ops: ops.iter().map(op).collect() }
    }
}

fn op(&[choice, id, low, high]: &[u8; 4]) -> Op {
    let (id, bytes) = (u32::from(id % IDS), size(u16::from_le_bytes([low, high])));
    let align_log2 = choice >> 4;
    match choice & 15 {
        kind @ 0..6 => {
            Op::Allocate { id, bytes, align: 1 << if kind < 4 { align_log2 % 5 } else { align_log2.min(13) } }
        }
        6..9 => Op::Reallocate { id, bytes },
        9..15 => Op::Deallocate { id },
        _ => Op::Grow { bytes: bytes % 4096 / 16 * 16 },
    }
}

fn size(word: u16) -> usize {
    let number = usize::from(word & 0xFFF);
    match word >> 12 {
        0..5 => number % 300,
        5..10 => number,
        10..14 => ((1_usize << (number % 19)) + number / 19 % 48).saturating_sub(24),
        14 => number * 64,
        _ if number.is_multiple_of(8) => isize::MAX as usize,
        _ => usize::MAX - number,
    }
}
