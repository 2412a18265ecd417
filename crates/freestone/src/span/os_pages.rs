//! Which OS pages of small spans go back: those in which no block is out.
//!
//! ```text
//! OS pages   0        1        2        3               Page 1: all blocks that start or end in it are free.
//!          ┌────────┬────────┬────────┬────────┬──      It goes back, and its blocks are uncarved again.
//! blocks   │ out │ free │ free │ free │ out    │
//! ```

use crate::size_class::{block_at, block_bytes};
use crate::span::blocks::{carve_bytes, is_free, n_blocks, span_bytes, words_of};
use crate::span::{OwnedSpan, Span};
use core::ops::Range;
use freestone_os::MemoryRange;

/// OS pages are purged one by one when at most one in this many of their span's blocks is out: a fuller span needs them again soon.
const MOSTLY_FREE: u32 = 2;

/// Whether so few of a span's blocks are out that its OS pages are purged one by one.
#[must_use]
pub(crate) fn is_mostly_free(span: &Span) -> bool {
    span.n_out.get() <= n_blocks(span) as u32 / MOSTLY_FREE
}

/// The most stretches that go back together. They are on the stack of the thread that purges.
const AT_ONCE: usize = 32;

/// OS pages of owned spans in which no block is out, collected so that they go back together: their contents are not needed. Only [`release_pages`] adds
/// some.
#[derive(Debug)]
pub(crate) struct EmptyStretches<'a> {
    ranges: [MemoryRange; AT_ONCE],
    /// The span that each of them lies in.
    spans: [Option<&'a Span>; AT_ONCE],
    len: usize,
    /// The kernel has kept some.
    were_kept: bool,
}

impl<'a> EmptyStretches<'a> {
    /// None.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { ranges: [MemoryRange::EMPTY; AT_ONCE], spans: [None; AT_ONCE], len: 0, were_kept: false }
    }

    /// Each of them: whole OS pages.
    #[must_use]
    pub(crate) fn ranges(&self) -> &[MemoryRange] {
        self.ranges.get(..self.len).unwrap_or_default()
    }

    /// The span that one of them lies in.
    #[must_use]
    pub(crate) fn span(&self, at: usize) -> Option<&'a Span> {
        self.spans.get(at).copied().flatten()
    }

    /// Forgets all: they have gone back, or were kept.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Notes that the kernel has kept one of them.
    pub(crate) fn note_kept(&mut self) {
        self.were_kept = true;
    }

    /// Whether the kernel has kept any, ever.
    pub(crate) fn were_kept(&self) -> bool {
        self.were_kept
    }

    /// Adds one; `false` if there is no place left.
    fn push(&mut self, range: MemoryRange, span: &'a Span) -> bool {
        let (Some(place), Some(of)) = (self.ranges.get_mut(self.len), self.spans.get_mut(self.len)) else {
            return false;
        };
        (*place, *of) = (range, Some(span));
        self.len += 1;
        true
    }
}

/// Whether enough blocks are free for an OS page, or a longer unit, without a block that is out, unless nothing was ever carved from the unit.
#[inline]
pub(crate) fn may_release(span: &OwnedSpan<'_>, os_page_bytes: usize) -> bool {
    let in_unit = carve_bytes(span, os_page_bytes) / block_bytes(span.class.get() as usize);
    span.fresh_has_memory.get() || span.n_free.get() as usize >= in_unit.max(1)
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
            && (is_fresh || words_of(self.span.bitmap(), blocks, |word, bits| word.get() & bits == bits))
    }
}

/// Collects the OS pages of a span in which no block is out: the free blocks that start in them are uncarved again. A free block that starts before such
/// a page and ends in it stays free; only the contents of its tail are lost. `purge` is to give back what was collected, and is called when no more
/// fits. Returns the number of blocks that are no longer free.
pub(crate) fn release_pages<'a>(
    span: &OwnedSpan<'a>,
    os_page_bytes: usize,
    stretches: &mut EmptyStretches<'a>,
    mut purge: impl FnMut(&mut EmptyStretches<'a>),
) -> u32 {
    let units = Units::of(span, os_page_bytes);
    let mut going = (0..units.len).filter(|&at| units.can_go(at)).fold(0_u64, |going, at| going | 1 << at);
    let mut released = 0;
    for at in (0..units.len).filter(|&at| going >> at & 1 == 1 && !units.is_fresh(at)) {
        let blocks = units.blocks(at);
        released += blocks.len() as u32;
        words_of(span.bitmap(), blocks, |word, bits| {
            word.set(word.get() & !bits);
            true
        });
    }
    span.fresh.set(span.fresh.get() | going);
    span.fresh_has_memory.set(false);
    // Not all of a block lies in the unit that it starts in, and the kernel may not clear what it takes.
    span.fresh_is_zero.set(span.fresh_is_zero.get() && going == 0);
    span.n_free.set(span.n_free.get() - released);
    while going != 0 {
        let (from, len) = (going.trailing_zeros(), (going >> going.trailing_zeros()).trailing_ones());
        going &= !((u64::MAX >> (64 - len)) << from);
        let (start, bytes) = ((from as usize) << units.bytes_log2, (len as usize) << units.bytes_log2);
        let range = MemoryRange { start: span.start().wrapping_add(start), bytes };
        while !stretches.push(range, span.record()) {
            purge(stretches);
        }
    }
    released
}

#[cfg(test)]
mod tests;
