//! The blocks of a small span one at a time, as watched heaps take them: any of the free ones, and none that passes through a bin.
#![allow(unsafe_code)]
//!
//! A watched span carves an OS page into free blocks, not into a chain: each is a bit of the bitmap until it is handed out.
//!
//! # Safety
//! As in `blocks`.

use crate::size_class::block_bytes;
use crate::span::blocks::{carve_bytes, n_blocks};
use crate::span::{Layout, Span};

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
///
/// # Safety
/// - See the module header.
pub(crate) unsafe fn carve(layout: &Layout, page: u32, os_page_bytes: usize, mut prepare: impl FnMut(*mut u8)) -> u32 {
    // SAFETY: the span is the caller's and its pages are in use, so its record and bitmap are committed.
    let span = unsafe { &*layout.record(page) };
    let (block, unit) = (block_bytes(span.class.get() as usize), carve_bytes(span, os_page_bytes));
    while span.fresh.get() != 0 {
        let unit_index = span.fresh.get().trailing_zeros() as usize;
        span.fresh.set(span.fresh.get() & (span.fresh.get() - 1));
        let from = (unit_index * unit).div_ceil(block);
        let to = ((unit_index + 1) * unit).div_ceil(block).min(n_blocks(span));
        for index in from..to {
            prepare(layout.page_start(page).wrapping_add(index * block));
            // SAFETY: the index is below the span's number of blocks, so its word is inside the bitmap.
            unsafe { *layout.bitmap(page).add(index / 64) |= 1 << (index % 64) };
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

/// Takes one free block, that at or behind a place that `random` names; the span has one.
///
/// # Safety
/// - See the module header.
pub(crate) unsafe fn take(layout: &Layout, page: u32, random: u32) -> *mut u8 {
    // SAFETY: the span is the caller's and its pages are in use, so its record and bitmap are committed.
    let span = unsafe { &*layout.record(page) };
    debug_assert!(span.n_free.get() > 0);
    let (bitmap, n_words) = (layout.bitmap(page), n_blocks(span).div_ceil(64));
    let first = (span.first_word.get() as usize).min(n_words - 1);
    let mut word = first + (((random >> 6) as usize * (n_words - first)) >> 26);
    let mut bit = random % 64;
    loop {
        // SAFETY: the word is one of the span's bitmap.
        let bits = unsafe { *bitmap.add(word) };
        if bits != 0 {
            let at = (bits.rotate_right(bit).trailing_zeros() + bit) % 64;
            // SAFETY: as above.
            unsafe { *bitmap.add(word) = bits & !(1 << at) };
            span.n_free.set(span.n_free.get() - 1);
            span.n_out.set(span.n_out.get() + 1);
            let index = word * 64 + at as usize;
            return layout.page_start(page).wrapping_add(index * block_bytes(span.class.get() as usize));
        }
        bit = 0;
        // No word below the first has a bit.
        word = if word + 1 == n_words { first } else { word + 1 };
    }
}

/// Where the block with `index` is.
///
/// # Safety
/// - See the module header; the index is below the span's number of blocks.
pub(crate) unsafe fn whereabouts(layout: &Layout, page: u32, index: usize, os_page_bytes: usize) -> Whereabouts {
    // SAFETY: the span is the caller's and its pages are in use, so its record and bitmap are committed.
    let (span, word): (&Span, u64) = unsafe { (&*layout.record(page), *layout.bitmap(page).add(index / 64)) };
    if word >> (index % 64) & 1 == 1 {
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
