//! The blocks of a small span one at a time, as watched heaps take them: any of the free ones, and none that passes through a bin.
//!
//! A watched span carves an OS page into free blocks ([`carve_free`](crate::span::blocks::carve_free)), not into a chain: each is a bit of the bitmap until it is handed out.

use crate::size_class::{block_at, block_bytes};
use crate::span::OwnedSpan;
use crate::span::blocks::{carve_bytes, fresh_mask, is_free, n_blocks};
use crate::span::record::Listed;
use core::cell::Cell;

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

/// Whether another block than the span's first is free. What is written before the first block is not seen by the check of a left neighbour, so
/// that block is the last to be handed out.
pub(crate) fn has_free(span: &OwnedSpan<'_>) -> bool {
    span.n_free.get() > u32::from(is_free(span, 0))
}

/// Which free blocks of a span are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    /// How many at most.
    pub(crate) n: u32,
    /// The word of the bitmap that blocks came from last: the next come from there, too, as long as it has some.
    pub(crate) word: &'a Cell<u32>,
    /// Chooses another word if that has none, and the blocks of a word.
    pub(crate) random: u64,
    /// The blocks of a word are taken in the order of their addresses.
    pub(crate) in_order: bool,
}

/// The word of a bitmap that blocks came from last, if they came from none.
const NO_WORD: u32 = u32::MAX;

/// Takes free blocks, and calls `put` with each; the span's first only if it has no other, and alone. Returns how many: one at least if the span has a free
/// block and `n` is not 0.
pub(crate) fn take(
    span: &OwnedSpan<'_>,
    os_page_bytes: usize,
    choice: Choice<'_>,
    mut put: impl FnMut(*mut u8),
) -> u32 {
    let (n_others, block) = (span.n_free.get() - u32::from(is_free(span, 0)), block_bytes(span.class.get() as usize));
    let n = choice.n.min(if n_others > 0 { n_others } else { span.n_free.get() });
    // No word below the first one, and none of OS pages that were not carved, has a bit.
    let first = usize::from(span.first_word.get());
    let n_carved = 64 - (span.fresh.get() ^ fresh_mask(span, os_page_bytes)).leading_zeros() as usize;
    let to = (n_carved * carve_bytes(span, os_page_bytes)).div_ceil(block).min(n_blocks(span)).div_ceil(64);
    let first = first.min(to.saturating_sub(1));
    let Some(words) = span.bitmap().get(first..to) else { return 0 };
    let wanted = |at: usize, bits: u64| if first + at == 0 && n_others > 0 { bits & !1 } else { bits };
    let last = (choice.word.get() as usize).wrapping_sub(first);
    let is_left = words.get(last).is_some_and(|word| wanted(last, word.get()) != 0);
    let from = if is_left { last } else { ((choice.random >> 48) as usize * words.len()) >> 16 };
    let (mut n_taken, mut random) = (0, if choice.in_order { 0 } else { choice.random });
    choice.word.set(NO_WORD);
    for at in (from..words.len()).chain(0..from) {
        let Some(word) = words.get(at) else { break };
        let mut bits = word.get();
        while n_taken < n {
            let wanted = wanted(at, bits);
            if wanted == 0 {
                break;
            }
            let turn = random as u32 % 64;
            random = random.rotate_right(6);
            let chosen = (wanted.rotate_right(turn).trailing_zeros() + turn) % 64;
            bits &= !(1 << chosen);
            n_taken += 1;
            put(span.start().wrapping_add(((first + at) * 64 + chosen as usize) * block));
        }
        word.set(bits);
        if n_taken == n {
            choice.word.set((first + at) as u32);
            break;
        }
    }
    span.n_free.set(span.n_free.get() - n_taken);
    span.n_out.set(span.n_out.get() + n_taken);
    n_taken
}

/// Puts a block back that is out of a span of which others are out, too, and which has free ones. `false`, and nothing is done, in other cases.
#[inline]
pub(crate) fn put_back(span: &OwnedSpan<'_>, class: usize, start: *mut u8) -> bool {
    let (index, is_start) = block_at(class, start.addr().wrapping_sub(span.start().addr()));
    let is_usual = is_start && span.listed.get() != Listed::Full && span.n_out.get() > 1;
    let mask = 1 << (index % 64);
    let Some(word) = span.bitmap().get(index / 64).filter(|word| is_usual && word.get() & mask == 0) else {
        return false;
    };
    word.set(word.get() | mask);
    span.first_word.set(span.first_word.get().min((index / 64) as u16));
    span.n_free.set(span.n_free.get() + 1);
    span.n_out.set(span.n_out.get() - 1);
    true
}

/// Whether the block at an offset of a span is in an OS page that was not carved.
#[inline(always)]
pub(crate) fn is_uncarved(span: &OwnedSpan<'_>, offset: usize, os_page_bytes: usize) -> bool {
    // The highest bit of either is that of the larger one, which is a power of two (`carve_bytes`), and not zero.
    let unit_log2 = || usize::BITS - 1 - ((span.n_pages().to_bytes().0 / 64) | os_page_bytes | 1).leading_zeros();
    span.fresh.get() != 0 && span.fresh.get() >> (offset >> unit_log2()) & 1 == 1
}

/// Where the block with `index` is, which is below the span's number of blocks.
pub(crate) fn whereabouts(span: &OwnedSpan<'_>, index: usize, os_page_bytes: usize) -> Whereabouts {
    if is_free(span, index) {
        return Whereabouts::Free;
    }
    let offset = index * block_bytes(span.class.get() as usize);
    if is_uncarved(span, offset, os_page_bytes) { Whereabouts::Uncarved } else { Whereabouts::Out }
}

#[cfg(test)]
mod tests;
