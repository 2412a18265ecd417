//! A word: one to eight bytes, the least significant first.
//!
//! ```text
//!  bits 0..3   length in bytes − 1
//!  bits 3..7   operation, 1 to 15: so the first byte of a word is never zero
//!  bits 7..64  payload; the bytes beyond the word's length are zero and are not stored
//! ```

/// What a word is about. Bits 3 to 6 of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// C's `malloc` and its kin. Payload of all six: low 15 bits of the size, then the block's distance.
    C = 1,
    /// `calloc`.
    CZeroed = 2,
    /// Rust's `alloc`.
    Rust = 3,
    /// Rust's `alloc_zeroed`.
    RustZeroed = 4,
    /// C++'s `operator new`.
    New = 5,
    /// C++'s `operator new[]`.
    NewArray = 6,
    /// A free. Payload: the block's distance.
    Free = 7,
    /// The block that the next word resizes. Payload: its distance.
    Moved = 8,
    /// The next word's size without its low 15 bits.
    Size = 9,
    /// Something else about the next word. Payload: [`More`] in the low bit, then its value.
    More = 10,
    /// The number of the stack of the next word; reserved.
    Stack = 11,
    /// Where the distance of the next block is counted from. Payload: the granule.
    Address = 12,
    /// The sequence number. Payload: whether the next event took it, in the low bit; then how much it has grown.
    Sequence = 13,
    /// Microseconds that have passed.
    Time = 14,
    /// The thread of what follows begins, or ends. Payload: whether it ends, in the low bit; then its number.
    Thread = 15,
}

/// What a word of [`Op::More`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// The logarithm of the alignment that was asked for.
    Align = 0,
    /// The allocation failed: there is no block.
    Failed = 1,
}

/// Number of payload bits.
pub const PAYLOAD_BITS: u32 = 57;

/// A word with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word; the bytes beyond its length are zero.
    pub bits: u64,
    /// Its length in bytes, 1 to 8.
    pub len: usize,
}

impl Word {
    /// A word; of the payload the low [`PAYLOAD_BITS`] bits.
    #[inline(always)]
    #[must_use]
    pub fn new(op: Op, payload: u64) -> Self {
        let bits = payload << 7 | (op as u64) << 3;
        // The place of the highest bit, which there is, as the operation is not zero: 63 less the zeros before it.
        let last_byte = (63 ^ bits.leading_zeros()) >> 3;
        Self { bits: bits | u64::from(last_byte), len: last_byte as usize + 1 }
    }

    /// The word at the start of `bytes`: operation, payload, length. `None` if there is none, or only a part of one.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<(Op, u64, usize)> {
        let &first = bytes.first()?;
        let op = Op::of(first >> 3 & 15)?;
        let len = usize::from(first & 7) + 1;
        let mut word = [0; 8];
        word[..len].copy_from_slice(bytes.get(..len)?);
        Some((op, u64::from_le_bytes(word) >> 7, len))
    }
}

impl Op {
    fn of(number: u8) -> Option<Self> {
        Some(match number & 15 {
            0 => return None,
            1 => Self::C,
            2 => Self::CZeroed,
            3 => Self::Rust,
            4 => Self::RustZeroed,
            5 => Self::New,
            6 => Self::NewArray,
            7 => Self::Free,
            8 => Self::Moved,
            9 => Self::Size,
            10 => Self::More,
            11 => Self::Stack,
            12 => Self::Address,
            13 => Self::Sequence,
            14 => Self::Time,
            _ => Self::Thread,
        })
    }
}

#[cfg(test)]
mod tests;
