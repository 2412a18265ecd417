//! Close fit: free blocks that are only a little longer than a request are handed out whole.
//!
//! ```text
//! lists:  | least | +1 | +2 | +3 | +4 | ...       `least` is the first list that is searched
//!         |<---- close fit ----->|  cut ...       at most 4 of 32 lists, and 256 bytes; none from 16 KiB up
//! ```
//!
//! Cutting off a short remainder costs time twice, because it is merged again when its neighbour is freed, and hardly any request is short
//! enough to use it meanwhile. Lists are counted instead of bytes, because the index of the list is known before the block is read.
//!
//! Invariant: a block that is handed out whole is longer than needed by less than 5/32 of the need, and by less than 512 bytes.
//! Safe code, evaluated while compiling. Source of the limits: `docs/decisions/0014`.

use crate::block_size::{GRANULE, LEAST_BLOCK_BYTES};
use freestone_base::bits::log2_floor;

/// A close fit exceeds the need by less than this part of it: 5 of 32.
const MOST_SHARE: (usize, usize) = (5, 32);

/// The lists of close fits are at most this many bytes from the first list that is searched.
const MOST_BYTES: usize = 256;

/// For each of `FIRST` first levels of `SECOND` lists: how many lists, from the first that is searched, hold close fits. Where lists are
/// closer together than sizes are, these are the lists of one size.
#[allow(clippy::indexing_slicing, reason = "evaluated while compiling, where a panic is an error")]
pub(crate) const fn n_lists<const FIRST: usize, const SECOND: usize>() -> [u8; FIRST] {
    let by_share = (SECOND * MOST_SHARE.0 / MOST_SHARE.1).saturating_sub(1);
    let mut n_lists = [0; FIRST];
    let mut level = 0;
    while level < FIRST {
        let log2 = level + log2_floor(LEAST_BLOCK_BYTES) as usize;
        // In 64 bits, because there may be more levels than an address has bits.
        let of_one_size = ((GRANULE * SECOND) as u64 >> log2) as usize;
        let by_bytes = if of_one_size > 1 { of_one_size } else { ((MOST_BYTES * SECOND) as u64 >> log2) as usize };
        n_lists[level] = if by_bytes < by_share { by_bytes } else { by_share } as u8;
        level += 1;
    }
    n_lists
}

#[cfg(test)]
mod tests;
