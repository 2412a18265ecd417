//! The blocks of a small span one at a time, as watched heaps take them: any of the free ones, and none that passes through a bin.
//!
//! A watched span carves an OS page into free blocks, not into a chain: each is a bit of the bitmap until it is handed out.

use crate::size_class::block_bytes;
use crate::span::OwnedSpan;
use crate::span::blocks::{carve_bytes, fresh_mask, is_free, n_blocks};

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// In its span.
    Free,
    /// Out of its span.
    Out,
    /// In an OS page that was not carved.
    Uncarved,
}

/// Carves the next OS page with a block in it: calls `prepare` with the start of each block, which is free then. Returns how many; 0 if every
/// page has been carved.
pub(crate) fn carve(span: &OwnedSpan<'_>, os_page_bytes: usize, mut prepare: impl FnMut(*mut u8)) -> u32 {
    let (block, unit) = (block_bytes(span.class.get() as usize), carve_bytes(span, os_page_bytes));
    while span.fresh.get() != 0 {
        let unit_index = span.fresh.get().trailing_zeros() as usize;
        span.fresh.set(span.fresh.get() & (span.fresh.get() - 1));
        let from = (unit_index * unit).div_ceil(block);
        let to = ((unit_index + 1) * unit).div_ceil(block).min(n_blocks(span));
        for index in from..to {
            prepare(span.start().wrapping_add(index * block));
            if let Some(word) = span.bitmap().get(index / 64) {
                word.set(word.get() | 1 << (index % 64));
            }
        }
        if from < to {
            let n = (to - from) as u32;
            span.n_free.set(span.n_free.get() + n);
            span.first_word.set(span.first_word.get().min((from / 64) as u16));
            return n;
        }
    }
    0
}

/// Whether another block than the span's first is free. What is written before the first block is not seen by the check of a left neighbour, so
/// that block is the last to be handed out.
pub(crate) fn has_free(span: &OwnedSpan<'_>) -> bool {
    span.n_free.get() > u32::from(is_free(span, 0))
}

/// Takes one free block, that at or behind a place that `random` names, and the span's first only if it has no other; `None` if it has none.
pub(crate) fn take(span: &OwnedSpan<'_>, os_page_bytes: usize, random: u32) -> Option<*mut u8> {
    let n_free = span.n_free.get().checked_sub(1)?;
    let block = block_bytes(span.class.get() as usize);
    // No word below the first one, and none of OS pages that were not carved, has a bit.
    let first = usize::from(span.first_word.get());
    let n_carved = 64 - (span.fresh.get() ^ fresh_mask(span, os_page_bytes)).leading_zeros() as usize;
    let to = (n_carved * carve_bytes(span, os_page_bytes)).div_ceil(block).min(n_blocks(span)).div_ceil(64);
    let words = span.bitmap().get(first.min(to - 1)..to)?;
    let (from, bit) = (((random >> 6) as usize * words.len()) >> 26, random % 64);
    for at in (from..words.len()).chain(0..=from) {
        let bits = words.get(at)?.get();
        let index = (to - words.len() + at) * 64;
        let wanted = if index == 0 && n_free > 0 { bits & !1 } else { bits };
        if wanted != 0 {
            let chosen = (wanted.rotate_right(bit).trailing_zeros() + bit) % 64;
            words.get(at)?.set(bits & !(1 << chosen));
            span.n_free.set(n_free);
            span.n_out.set(span.n_out.get() + 1);
            return Some(span.start().wrapping_add((index + chosen as usize) * block));
        }
    }
    None
}

/// Whether the block with `index` is in an OS page that was not carved.
#[inline(always)]
pub(crate) fn is_uncarved(span: &OwnedSpan<'_>, index: usize, os_page_bytes: usize) -> bool {
    if span.fresh.get() == 0 {
        return false;
    }
    let unit = (index * block_bytes(span.class.get() as usize)) >> carve_bytes(span, os_page_bytes).ilog2();
    span.fresh.get() >> unit & 1 == 1
}

/// Where the block with `index` is, which is below the span's number of blocks.
pub(crate) fn whereabouts(span: &OwnedSpan<'_>, index: usize, os_page_bytes: usize) -> Whereabouts {
    if is_free(span, index) {
        return Whereabouts::Free;
    }
    if is_uncarved(span, index, os_page_bytes) { Whereabouts::Uncarved } else { Whereabouts::Out }
}

#[cfg(test)]
mod tests;
