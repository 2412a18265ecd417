//! Purging the OS pages of a small span in which no block is out.
//!
//! ```text
//! OS pages   0        1        2        3               Page 1: all blocks that start or end in it are free.
//!          ┌────────┬────────┬────────┬────────┬──      It is purged, and its blocks become uncarved.
//! blocks   │ out │ free │ free │ free │ out    │
//! ```

use crate::size_class::{block_at, block_bytes};
use crate::span::blocks::{carve_bytes, is_free, n_blocks, span_bytes};
use crate::span::{OwnedSpan, Span};
use core::cell::Cell;
use core::ops::Range;

/// OS pages are purged one by one when at most one in this many of their span's blocks is out: a fuller span needs them again soon.
const MOSTLY_FREE: u32 = 2;

/// Whether so few of a span's blocks are out that its OS pages are purged one by one.
#[must_use]
pub(crate) fn is_mostly_free(span: &Span) -> bool {
    span.n_out.get() <= n_blocks(span) as u32 / MOSTLY_FREE
}

/// OS pages of an owned span in which no block is out: their contents are not needed. Only [`release_pages`] makes one.
#[derive(Debug)]
pub(crate) struct EmptyStretch {
    start: *mut u8,
    bytes: usize,
}

impl EmptyStretch {
    /// Its first byte.
    #[must_use]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its length in bytes, whole OS pages.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether the block with `index`, which has just been given back, was the last one out of an OS page, in a span that is mostly free.
pub(crate) fn has_emptied_a_page(span: &OwnedSpan<'_>, index: usize, os_page_bytes: usize) -> bool {
    let (block, unit, end) =
        (block_bytes(span.class.get() as usize), carve_bytes(span, os_page_bytes), span_bytes(span));
    let offset = index * block;
    let starts_beside = |other: usize| (offset ^ other) < unit;
    // A block that starts in the same OS page was carved with this one, and has a bit.
    let next_is_out = || starts_beside(offset + block) && offset + 2 * block <= end && !is_free(span, index + 1);
    let previous_is_out = || index > 0 && starts_beside(offset - block) && !is_free(span, index - 1);
    // Nearly always a neighbour is out: that is checked first.
    if starts_beside(offset + block - 1) && (next_is_out() || previous_is_out()) {
        return false;
    }
    let units = Units::of(span, os_page_bytes);
    let (first, last) = (offset >> units.bytes_log2, (offset + block - 1) >> units.bytes_log2);
    is_mostly_free(span) && (first..=last.min(units.len - 1)).any(|at| units.can_go(at))
}

/// The units that a span is carved in (OS pages, or longer ones in a span of more than 64), and its blocks in them.
struct Units<'a> {
    span: &'a OwnedSpan<'a>,
    bytes_log2: u32,
    len: usize,
    class: usize,
    block: usize,
    n_blocks: usize,
}

impl<'a> Units<'a> {
    fn of(span: &'a OwnedSpan<'_>, os_page_bytes: usize) -> Self {
        let bytes_log2 = carve_bytes(span, os_page_bytes).ilog2();
        let class = span.class.get() as usize;
        let (len, n_blocks) = (span_bytes(span) >> bytes_log2, n_blocks(span));
        Self { span, bytes_log2, len, class, block: block_bytes(class), n_blocks }
    }

    /// The blocks that start in a unit.
    fn blocks(&self, at: usize) -> Range<usize> {
        let start = |at: usize| block_at(self.class, (at << self.bytes_log2) + self.block - 1).0.min(self.n_blocks);
        start(at)..start(at + 1)
    }

    fn is_fresh(&self, at: usize) -> bool {
        self.span.fresh.get() >> at & 1 == 1
    }

    /// Whether a unit can be purged: it may have memory, and no block that starts or ends in it is out.
    fn can_go(&self, at: usize) -> bool {
        let is_fresh = self.is_fresh(at);
        if is_fresh && !self.span.fresh_has_memory.get() {
            return false;
        }
        // The block that begins before the unit and ends in it, if there is one.
        let before = block_at(self.class, at << self.bytes_log2).0;
        let blocks = self.blocks(at);
        (before >= blocks.start
            || is_free(self.span, before)
            || self.is_fresh((before * self.block) >> self.bytes_log2))
            && (is_fresh || all_set(self.span.bitmap(), blocks))
    }
}

/// Whether all of a range of bits are set.
fn all_set(bitmap: &[Cell<u64>], bits: Range<usize>) -> bool {
    let mut from = bits.start;
    while from < bits.end {
        let n = (64 - from % 64).min(bits.end - from);
        let mask = (u64::MAX >> (64 - n)) << (from % 64);
        if bitmap.get(from / 64).is_none_or(|word| word.get() & mask != mask) {
            return false;
        }
        from += n;
    }
    true
}

/// Clears a range of bits.
fn clear_bits(bitmap: &[Cell<u64>], bits: Range<usize>) {
    for bit in bits {
        if let Some(word) = bitmap.get(bit / 64) {
            word.set(word.get() & !(1 << (bit % 64)));
        }
    }
}

/// Purges the OS pages in which no block is out: the free blocks that start in them become uncarved again. A free block that starts
/// before and ends in such a page stays free; only the contents of its tail are lost. `purge` is called with each stretch and says whether
/// the kernel took it; what it did not take stays as it was. Returns the number of blocks that are no longer free.
pub(crate) fn release_pages(
    span: &OwnedSpan<'_>,
    os_page_bytes: usize,
    mut purge: impl FnMut(EmptyStretch) -> bool,
) -> u32 {
    let units = Units::of(span, os_page_bytes);
    let (mut at, mut released, mut all_went) = (0, 0, true);
    while at < units.len {
        let from = at;
        while at < units.len && units.can_go(at) {
            at += 1;
        }
        if at == from {
            at += 1;
            continue;
        }
        let start = span.start().wrapping_add(from << units.bytes_log2);
        if purge(EmptyStretch { start, bytes: (at - from) << units.bytes_log2 }) {
            for unit in (from..at).filter(|&unit| !units.is_fresh(unit)) {
                let blocks = units.blocks(unit);
                released += blocks.len() as u32;
                clear_bits(span.bitmap(), blocks);
                span.fresh.set(span.fresh.get() | 1 << unit);
            }
            // Not all of a block lies in the unit that it starts in, and the kernel may not have cleared what it took.
            span.fresh_is_zero.set(false);
        } else {
            all_went = false;
        }
    }
    if all_went {
        span.fresh_has_memory.set(false);
    }
    span.n_free.set(span.n_free.get() - released);
    released
}

#[cfg(test)]
mod tests;
