//! The blocks of a small span one at a time, as watched heaps take them: any of the free ones, and none that passes through a bin.
//!
//! A watched span carves an OS page into free blocks, not into a chain: each is a bit of the bitmap until it is handed out.

use crate::size_class::block_bytes;
use crate::span::OwnedSpan;
use crate::span::blocks::{carve_bytes, is_free, n_blocks};

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

/// Takes one free block, that at or behind a place that `random` names; `None` if the span has none.
pub(crate) fn take(span: &OwnedSpan<'_>, random: u32) -> Option<*mut u8> {
    let n_free = span.n_free.get().checked_sub(1)?;
    let n_words = n_blocks(span).div_ceil(64);
    let words = span.bitmap().get((span.first_word.get() as usize).min(n_words - 1)..n_words)?;
    let from = ((random >> 6) as usize * words.len()) >> 26;
    let mut bit = random % 64;
    // No word below the first has a bit.
    for at in (from..words.len()).chain(0..=from) {
        let bits = words.get(at)?.get();
        if bits != 0 {
            let chosen = (bits.rotate_right(bit).trailing_zeros() + bit) % 64;
            words.get(at)?.set(bits & !(1 << chosen));
            span.n_free.set(n_free);
            span.n_out.set(span.n_out.get() + 1);
            let index = (n_words - words.len() + at) * 64 + chosen as usize;
            return Some(span.start().wrapping_add(index * block_bytes(span.class.get() as usize)));
        }
        bit = 0;
    }
    None
}

/// Where the block with `index` is, which is below the span's number of blocks.
pub(crate) fn whereabouts(span: &OwnedSpan<'_>, index: usize, os_page_bytes: usize) -> Whereabouts {
    if is_free(span, index) {
        return Whereabouts::Free;
    }
    if span.fresh.get() == 0 {
        return Whereabouts::Out;
    }
    let unit = (index * block_bytes(span.class.get() as usize)) >> carve_bytes(span, os_page_bytes).ilog2();
    if span.fresh.get() >> unit & 1 == 1 { Whereabouts::Uncarved } else { Whereabouts::Out }
}

#[cfg(test)]
mod tests;
