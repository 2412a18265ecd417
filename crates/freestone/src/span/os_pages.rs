//! Purging the OS pages of a small span in which no block is out.
#![allow(unsafe_code)]
//!
//! ```text
//! OS pages   0        1        2        3               Page 1: all blocks that start or end in it are free.
//!          ┌────────┬────────┬────────┬────────┬──      It is purged, and its blocks become uncarved.
//! blocks   │ out │ free │ free │ free │ out    │
//! ```
//!
//! # Safety
//! As in `blocks`.

use crate::size_class::{block_at, block_bytes};
use crate::span::blocks::{carve_bytes, is_free, n_blocks, span_bytes};
use crate::span::{Layout, Span};

/// OS pages are purged one by one when at most one in this many of their span's blocks is out: a fuller span needs them again soon.
const MOSTLY_FREE: u32 = 2;

/// Whether so few of a span's blocks are out that its OS pages are purged one by one.
#[must_use]
pub(crate) fn is_mostly_free(span: &Span) -> bool {
    span.n_out.get() <= n_blocks(span) as u32 / MOSTLY_FREE
}

/// Whether the block with `index`, which has just been given back, was the last one out of an OS page, in a span that is mostly free.
///
/// # Safety
/// - See the module header; the block is one of the span at `page`, and free.
pub(crate) unsafe fn has_emptied_a_page(layout: &Layout, page: u32, index: usize, os_page_bytes: usize) -> bool {
    // SAFETY: the span is the caller's and its pages are in use, so its record and bitmap are committed.
    let span = unsafe { &*layout.record(page) };
    let (block, unit, end) =
        (block_bytes(span.class.get() as usize), carve_bytes(span, os_page_bytes), span_bytes(span));
    let offset = index * block;
    let starts_beside = |other: usize| (offset ^ other) < unit;
    // Nearly always a neighbour is out: that is checked first.
    // SAFETY: a block that starts in the same OS page was carved with this one, and has a bit.
    unsafe {
        let next_is_out =
            || starts_beside(offset + block) && offset + 2 * block <= end && !is_free(layout, page, index + 1);
        let previous_is_out = || index > 0 && starts_beside(offset - block) && !is_free(layout, page, index - 1);
        if starts_beside(offset + block - 1) && (next_is_out() || previous_is_out()) {
            return false;
        }
    }
    let units = Units::of(span, os_page_bytes);
    let (first, last) = (offset >> units.bytes_log2, (offset + block - 1) >> units.bytes_log2);
    // SAFETY: the span is the caller's and in use, so its record and bitmap are committed.
    is_mostly_free(span) && (first..=last.min(units.len - 1)).any(|at| unsafe { units.can_go(layout, page, at) })
}

/// The units that a span is carved in (OS pages, or longer ones in a span of more than 64), and its blocks in them.
struct Units<'a> {
    span: &'a Span,
    bytes_log2: u32,
    len: usize,
    class: usize,
    block: usize,
    n_blocks: usize,
}

impl<'a> Units<'a> {
    fn of(span: &'a Span, os_page_bytes: usize) -> Self {
        let bytes_log2 = carve_bytes(span, os_page_bytes).ilog2();
        let class = span.class.get() as usize;
        let (len, n_blocks) = (span_bytes(span) >> bytes_log2, n_blocks(span));
        Self { span, bytes_log2, len, class, block: block_bytes(class), n_blocks }
    }

    /// The blocks that start in a unit.
    fn blocks(&self, at: usize) -> core::ops::Range<usize> {
        let start = |at: usize| block_at(self.class, (at << self.bytes_log2) + self.block - 1).0.min(self.n_blocks);
        start(at)..start(at + 1)
    }

    fn is_fresh(&self, at: usize) -> bool {
        self.span.fresh.get() >> at & 1 == 1
    }

    /// Whether a unit can be purged: it may have memory, and no block that starts or ends in it is out.
    ///
    /// # Safety
    /// - See the module header.
    unsafe fn can_go(&self, layout: &Layout, page: u32, at: usize) -> bool {
        let is_fresh = self.is_fresh(at);
        if is_fresh && !self.span.fresh_has_memory.get() {
            return false;
        }
        // The block that begins before the unit and ends in it, if there is one.
        let before = block_at(self.class, at << self.bytes_log2).0;
        let blocks = self.blocks(at);
        // SAFETY: block numbers below `n_blocks` have bits.
        unsafe {
            (before >= blocks.start
                || is_free(layout, page, before)
                || self.is_fresh((before * self.block) >> self.bytes_log2))
                && (is_fresh || all_set(layout.bitmap(page), blocks))
        }
    }
}

/// Whether all of a range of bits are set.
unsafe fn all_set(bitmap: *const u64, bits: core::ops::Range<usize>) -> bool {
    let mut from = bits.start;
    while from < bits.end {
        let n = (64 - from % 64).min(bits.end - from);
        let mask = (u64::MAX >> (64 - n)) << (from % 64);
        // SAFETY: the caller's bits are inside the span's bitmap.
        if unsafe { *bitmap.add(from / 64) } & mask != mask {
            return false;
        }
        from += n;
    }
    true
}

/// Purges the OS pages in which no block is out: the free blocks that start in them become uncarved again. A free block that starts
/// before and ends in such a page stays free; only the contents of its tail are lost. `purge` is called with each stretch and says whether
/// the kernel took it; what it did not take stays as it was. Returns the number of blocks that are no longer free.
///
/// # Safety
/// - See the module header.
pub(crate) unsafe fn release_pages(
    layout: &Layout,
    page: u32,
    os_page_bytes: usize,
    mut purge: impl FnMut(*mut u8, usize) -> bool,
) -> u32 {
    // SAFETY: the span is the caller's and its pages are in use, so its record and bitmap are committed.
    let span = unsafe { &*layout.record(page) };
    let units = Units::of(span, os_page_bytes);
    let (mut at, mut released, mut all_went) = (0, 0, true);
    while at < units.len {
        let from = at;
        // SAFETY: the span is the caller's and in use, so its record and bitmap are committed.
        while at < units.len && unsafe { units.can_go(layout, page, at) } {
            at += 1;
        }
        if at == from {
            at += 1;
            continue;
        }
        if purge(layout.page_start(page).wrapping_add(from << units.bytes_log2), (at - from) << units.bytes_log2) {
            for unit in (from..at).filter(|&unit| !units.is_fresh(unit)) {
                let blocks = units.blocks(unit);
                released += blocks.len() as u32;
                // SAFETY: these blocks are free: their bits are set, for none of them is fresh.
                unsafe { clear_bits(layout.bitmap(page), blocks) };
                span.fresh.set(span.fresh.get() | 1 << unit);
            }
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

/// Clears a range of bits.
unsafe fn clear_bits(bitmap: *mut u64, bits: core::ops::Range<usize>) {
    for bit in bits {
        // SAFETY: the caller's bits are inside the span's bitmap.
        unsafe { *bitmap.add(bit / 64) &= !(1 << (bit % 64)) };
    }
}

#[cfg(test)]
mod tests;
