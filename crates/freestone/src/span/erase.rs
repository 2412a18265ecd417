//! Clearing a freed block, at the level `full`: every byte of it, so that whoever reads it learns nothing, and a later write to any byte is seen.
//!
//! The OS pages of a free block that are purged read as zero, which is what they are anyway.
//!
//! ```text
//!  0         64        128      bytes - 64       bytes
//!  │ chunk    │ chunk    │ …         │ last chunk │          the last chunk may overlap the one before
//! ```

use core::sync::atomic::{Ordering, compiler_fence};
use freestone_base::bytes;

/// Bytes that are cleared, and compared, at once.
const CHUNK_BYTES: usize = 64;

/// Bytes of the pieces of what is shorter.
const PIECE_BYTES: usize = 16;

/// Where pieces begin which together are `bytes`, at least a piece and less than a chunk.
#[inline]
fn pieces(bytes: usize) -> [usize; 4] {
    let last = bytes - PIECE_BYTES;
    [0, last.min(PIECE_BYTES), last.min(2 * PIECE_BYTES), last]
}

/// Clears a block. No call of `memset`: see [`fill::write`](crate::span::fill::write).
#[inline]
pub(crate) fn write(block: &mut [u8]) {
    let len = block.len();
    if len >= CHUNK_BYTES {
        for chunk in bytes::chunks_mut::<CHUNK_BYTES>(block).0 {
            *chunk = [0; CHUNK_BYTES];
            compiler_fence(Ordering::Release);
        }
        if let Some(last) = block.last_chunk_mut() {
            *last = [0; CHUNK_BYTES];
        }
    } else if len >= PIECE_BYTES {
        for at in pieces(len) {
            if let Some(piece) = block.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *piece = [0; PIECE_BYTES];
            }
        }
    } else {
        for byte in block {
            *byte = 0;
            compiler_fence(Ordering::Release);
        }
    }
}

/// The offset of the first byte of a cleared block that was written since.
#[cold]
#[inline(never)]
pub(crate) fn damage(block: &[u8]) -> Option<usize> {
    if is_clear(block) { None } else { block.iter().position(|&byte| byte != 0) }
}

/// Whether all bytes of a block are zero.
#[inline]
pub(crate) fn is_clear(block: &[u8]) -> bool {
    let len = block.len();
    if len >= CHUNK_BYTES {
        let chunks = bytes::chunks::<CHUNK_BYTES>(block).0;
        return chunks.iter().all(|chunk| bits(chunk) == 0) && block.last_chunk::<CHUNK_BYTES>().map_or(0, bits) == 0;
    }
    if len >= PIECE_BYTES {
        let piece = |at: usize| block.get(at..).and_then(<[u8]>::first_chunk).map_or(0, piece_bits);
        let [a, b, c, d] = pieces(len);
        return piece(a) | piece(b) | piece(c) | piece(d) == 0;
    }
    block.iter().fold(0, |all, byte| all | byte) == 0
}

/// The bits that are set in any word of a chunk. A comparison of arrays would be a call, and a loop stays one in code that is compiled for size.
#[inline(always)]
fn bits(chunk: &[u8; CHUNK_BYTES]) -> u128 {
    match bytes::chunks::<PIECE_BYTES>(chunk).0 {
        [a, b, c, d] => piece_bits(a) | piece_bits(b) | piece_bits(c) | piece_bits(d),
        _ => 0,
    }
}

#[inline(always)]
fn piece_bits(piece: &[u8; PIECE_BYTES]) -> u128 {
    u128::from_ne_bytes(*piece)
}

#[cfg(test)]
mod tests;
