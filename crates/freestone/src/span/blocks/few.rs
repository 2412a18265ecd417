//! OS pages that are carved into free blocks: where few of them are wanted, and the others are for whoever comes next.

use crate::size_class::{BlockDivision, block_bytes};
use crate::span::blocks::{SMALLEST_BATCH, Taken, carve_bytes, span_bytes, take, words_of};
use crate::span::{OwnedSpan, Uncarved};
use core::ops::Range;
use freestone_base::inbox::LinkKey;

/// Takes up to `n` free blocks. If there are none, carves the next OS page first, and leaves those of its blocks free that are not taken; where the span may have memory behind it, as many
/// OS pages as `n` blocks take, but only until there are [`SMALLEST_BATCH`].
#[inline(never)]
pub(crate) fn take_few(span: &OwnedSpan<'_>, n: u32, os_page_bytes: usize, key: LinkKey, uncarved: &Uncarved) -> Taken {
    let n_least = if span.fresh_has_memory.get() { n.min(SMALLEST_BATCH) } else { 1 };
    let mut n_carved = 0;
    if span.n_free.get() == 0 {
        while n_carved < n_least && span.fresh.get() != 0 {
            n_carved += carve_free(span, os_page_bytes, uncarved).len() as u32;
        }
    }
    let chain = take(span, n, key);
    let less_free = i64::from(chain.len) - i64::from(n_carved);
    Taken { chain, less_free, is_zero: n_carved > 0 && span.fresh_is_zero.get() }
}

/// Carves the next OS page with a block in it, whose blocks are free then. Returns their numbers; none if every page has been carved.
#[inline(never)]
pub(crate) fn carve_free(span: &OwnedSpan<'_>, os_page_bytes: usize, uncarved: &Uncarved) -> Range<usize> {
    let class = span.class.get() as usize;
    let (block, unit, division) = (block_bytes(class), carve_bytes(span, os_page_bytes), BlockDivision::of(class));
    let n_blocks = division.block_at(span_bytes(span)).0;
    let first_block = |unit_index: usize| division.block_at(unit_index * unit + block - 1).0.min(n_blocks);
    while span.fresh.get() != 0 {
        let unit_index = span.fresh.get().trailing_zeros() as usize;
        span.fresh.set(span.fresh.get() & (span.fresh.get() - 1));
        if !span.fresh_has_memory.get() {
            uncarved.add(-(unit as i64));
        }
        let blocks = first_block(unit_index)..first_block(unit_index + 1);
        if !blocks.is_empty() {
            span.n_free.set(span.n_free.get() + blocks.len() as u32);
            span.first_word.set(span.first_word.get().min((blocks.start / 64) as u16));
            words_of(span.bitmap(), blocks.clone(), |word, bits| {
                word.set(word.get() | bits);
                true
            });
            return blocks;
        }
    }
    0..0
}
