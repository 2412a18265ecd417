//! Clearing a freed block, at the level `full`: every byte of it, so that whoever reads it learns nothing, and a later write to any byte is seen.
//!
//! The OS pages of a free block that are purged read as zero, which is what they are anyway.

use core::sync::atomic::{Ordering, compiler_fence};
use freestone_base::bytes;

/// Bytes that are cleared, and compared, at once.
const CHUNK_BYTES: usize = 64;

/// Clears a block. No call of `memset`: see [`fill::write`](crate::span::fill::write).
#[inline]
pub(crate) fn write(block: &mut [u8]) {
    let (chunks, rest) = bytes::chunks_mut::<CHUNK_BYTES>(block);
    for chunk in chunks {
        *chunk = [0; CHUNK_BYTES];
        compiler_fence(Ordering::Release);
    }
    let (words, rest) = bytes::chunks_mut::<8>(rest);
    for word in words {
        *word = [0; 8];
        compiler_fence(Ordering::Release);
    }
    for byte in rest {
        *byte = 0;
        compiler_fence(Ordering::Release);
    }
}

/// The offset of the first byte of a cleared block that was written since.
#[inline]
pub(crate) fn damage(block: &[u8]) -> Option<usize> {
    let (chunks, rest) = bytes::chunks::<CHUNK_BYTES>(block);
    let is_clear = chunks.iter().all(is_zero) && rest.iter().fold(0, |all, byte| all | byte) == 0;
    if is_clear { None } else { block.iter().position(|&byte| byte != 0) }
}

/// Whether all bytes of a chunk are zero. A comparison of arrays would be a call.
#[inline]
fn is_zero(chunk: &[u8; CHUNK_BYTES]) -> bool {
    bytes::chunks::<8>(chunk).0.iter().fold(0, |all, word| all | u64::from_ne_bytes(*word)) == 0
}

#[cfg(test)]
mod tests;
