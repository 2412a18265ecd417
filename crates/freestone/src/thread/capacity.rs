//! How many blocks a bin may hold: numbers in, a number out.
//!
//! A bin starts small. One that was flushed since it was last empty was too small for its program: its capacity grows by what was flushed
//! ([`learned`]). All bins of a heap grow together to a number of blocks ([`growth`]): of a larger number, most are no longer in a processor's cache when they are
//! flushed, and what a bin gives out again is in the order in which it was freed, where a span gives blocks out in the order of their addresses. While a thread frees and
//! does not allocate, each flush allows the bin less ([`allowed`]): the thread will not need these blocks soon, and each may be the only one on its OS page. In a process
//! of many threads all bins of a class share a fixed number of bytes, and a bin may borrow beyond its share ([`shared`], `usage::room`).

/// A bin may always hold blocks of this many bytes in a process of few threads, but at least [`ALLOWED_LEAST`]: enough to make a flush worth its call.
const ALLOWED_LEAST_BYTES: u32 = 4096;

/// See [`ALLOWED_LEAST_BYTES`].
const ALLOWED_LEAST: u32 = 8;

/// Up to this many heaps, bins have their whole capacity.
const FEW_HEAPS: u32 = 4;

/// All bins of a heap grow to as many blocks together as this many bins of the largest capacity hold, but at least [`TOGETHER_LEAST`].
const LARGEST_TOGETHER: u32 = 4;

/// See [`LARGEST_TOGETHER`]: about as many as the bins of all classes start with, and one of the default's largest capacity.
const TOGETHER_LEAST: u32 = 16_384;

/// Bytes of one class that all threads together may cache, where there are more heaps than that.
const SHARED_BYTES: usize = 4 << 20;

/// The most blocks that a bin of `capacity` blocks of `block_bytes` may hold in a process of `n_heaps` heaps, if it has borrowed room for `borrowed` beyond its share.
pub(crate) fn shared(capacity: u32, block_bytes: usize, n_heaps: u32, borrowed: u32) -> u32 {
    if n_heaps <= FEW_HEAPS {
        return capacity;
    }
    let share = (SHARED_BYTES / n_heaps as usize / block_bytes).max(1);
    capacity.min(share as u32 + borrowed)
}

/// What a bin may hold after `flushed` blocks were flushed since it was last empty: half for each time that its capacity was flushed.
pub(crate) fn allowed(capacity: u32, flushed: u32, block_bytes: usize) -> u32 {
    let halvings = (flushed / capacity.max(1)).min(31);
    let least = (ALLOWED_LEAST_BYTES / block_bytes as u32).max(ALLOWED_LEAST);
    (capacity >> halvings).max(least.min(capacity))
}

/// How many blocks a full bin that may hold `allowed` keeps: half of them; none once a whole capacity was flushed, because its thread only frees.
pub(crate) fn kept(capacity: u32, flushed: u32, allowed: i64) -> i64 {
    if flushed >= capacity { 0 } else { allowed / 2 }
}

/// The blocks by which a bin may grow in a heap whose bins may hold `together`, and one of them at most `largest`.
pub(crate) fn growth(together: u32, largest: u32) -> u32 {
    largest.saturating_mul(LARGEST_TOGETHER).max(TOGETHER_LEAST).saturating_sub(together)
}

/// The capacity, at most `most`, of a bin that runs empty after `flushed` blocks were flushed: large enough to have kept them.
pub(crate) fn learned(capacity: u32, flushed: u32, most: u32) -> u32 {
    capacity.saturating_add(flushed).min(most)
}

#[cfg(test)]
mod tests;
