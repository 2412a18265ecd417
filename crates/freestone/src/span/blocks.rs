//! The blocks of a small span: which are free, and which were never carved.
//!
//! Long because: all that changes a span's bitmap and what of it is carved is here.
#![allow(unsafe_code)]
//!
//! ```text
//! OS pages   0        1        2        3       …      fresh  …1110: only page 0 has been carved
//!          ┌────────┬────────┬────────┬────────┬──
//! blocks   │0 │1 │2 │3 │4 │5 │        │        │        bitmap …0100_1001: blocks 0, 3, 6 free
//!          └────────┴────────┴────────┴────────┴──
//! ```
//!
//! A block belongs to the OS page that it starts in. Carving an OS page hands out all its blocks: the kernel has to provide memory
//! only then, not when the span is made. Of a span that may have memory behind it, several OS pages
//! are carved at once if one has only a few blocks. Free blocks are bits outside the span, so that a program that writes past the end of its block
//! cannot damage them, a double free is detected, and a batch is linked without reading the blocks' own memory.
//!
//! Cost: taking `n` blocks is one pass over the bitmap words that hold them; giving one back is a division by multiplication
//! and a bit. `docs/decisions/0002-bitmaps-not-lists.md` has the measurements.
//!
//! # Safety
//! What is written inside the span is the first word of free blocks, which no code uses. The proof that the span is the caller's ([`OwnedSpan`])
//! gives access to the rest.

use crate::size_class::{BlockDivision, block_at, block_bytes};
use crate::span::free_node::{self, Chain, END_OF_BIN};
use crate::span::{OwnedSpan, Span, Uncarved};
use core::cell::Cell;
use core::ops::Range;
use core::ptr;
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::prefetch::as_if_read;

/// How many blocks are carved at once, even if they lie in several OS pages: fewer would have every few allocations refill their bin.
const SMALLEST_BATCH: u32 = 8;

/// Why a block cannot go back to its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The address is inside a block, or past the last one.
    NotABlock,
    /// The block is already free.
    FreeAlready,
    /// The program wrote to the block after it was freed.
    Written,
}

/// Prepares a span, which no code uses yet, for blocks of `class`: no block is carved or free. `has_memory`: its pages may have memory behind them; else they read as
/// zero.
pub(crate) fn format(span: &OwnedSpan<'_>, class: usize, os_page_bytes: usize, has_memory: bool) {
    span.class.set(class as u8);
    span.fresh.set(fresh_mask(span, os_page_bytes));
    span.fresh_has_memory.set(has_memory);
    span.fresh_is_zero.set(!has_memory);
    span.n_free.set(0);
    span.n_out.set(0);
    span.first_word.set(words(span) as u16);
}

/// Clears the bitmap of a span of which no block is out, before its pages are used for something else. Bitmaps of pages outside small spans
/// are zero, so that a span whose blocks are never freed never touches its bitmap.
pub(crate) fn clear(span: &OwnedSpan<'_>) {
    if span.n_free.replace(0) > 0 {
        span.bitmap().iter().take(words(span)).for_each(|word| word.set(0));
    }
}

/// Bytes of a small span.
pub(super) fn span_bytes(span: &Span) -> usize {
    span.n_pages().to_bytes().0
}

/// Blocks of a small span.
#[must_use]
pub(crate) fn n_blocks(span: &Span) -> usize {
    // A division, by multiplication.
    block_at(span.class.get() as usize, span_bytes(span)).0
}

/// Words in the bitmap of a small span.
fn words(span: &Span) -> usize {
    n_blocks(span).div_ceil(64)
}

/// Bytes that one bit of `fresh` stands for: an OS page, or more in a span of more than 64 of them.
pub(super) fn carve_bytes(span: &Span, os_page_bytes: usize) -> usize {
    os_page_bytes.max(span_bytes(span) / 64)
}

/// Bytes of a span that no block was carved from, if these have no memory; else 0. A function of its own, for counting bits takes many instructions.
#[inline(never)]
pub(crate) fn uncarved_bytes(span: &Span, os_page_bytes: usize) -> i64 {
    if span.fresh_has_memory.get() { 0 } else { fresh_bytes(span, os_page_bytes) }
}

/// Bytes of a span that no block was carved from.
#[inline(never)]
pub(crate) fn fresh_bytes(span: &Span, os_page_bytes: usize) -> i64 {
    i64::from(span.fresh.get().count_ones()) * carve_bytes(span, os_page_bytes) as i64
}

/// The bits of `fresh` in a span of which nothing was carved.
pub(super) fn fresh_mask(span: &Span, os_page_bytes: usize) -> u64 {
    u64::MAX >> (64 - span_bytes(span) / carve_bytes(span, os_page_bytes))
}

/// Blocks that left their span.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The blocks, linked; none if the span had none left.
    pub(crate) chain: Chain,
    /// How many blocks fewer are free in the span: the others were carved.
    pub(crate) less_free: i64,
    /// All of them but link and mark reads as zero.
    pub(crate) is_zero: bool,
}

/// Takes up to `n` free blocks, or else carves the next OS page and, as [`carve`] does, up to `more` behind it.
pub(crate) fn take_or_carve(
    span: &OwnedSpan<'_>,
    n: u32,
    more: usize,
    os_page_bytes: usize,
    key: LinkKey,
    uncarved: &Uncarved,
) -> Taken {
    let chain = take(span, n, key);
    if chain.len > 0 {
        return Taken { chain, less_free: i64::from(chain.len), is_zero: false };
    }
    let is_zero = span.fresh_is_zero.get();
    Taken { chain: carve(span, n, more, os_page_bytes, key, uncarved), less_free: 0, is_zero }
}

/// Carves the next OS page and, where they follow it and `n` blocks do not fit, up to `more` behind it; where the span may have memory behind it, as many as `n` blocks take, but only until
/// it has [`SMALLEST_BATCH`]. The chain of the blocks, linked with `key` and out from now on; empty if every page has been carved. What had no memory is subtracted from `uncarved`.
pub(crate) fn carve(
    span: &OwnedSpan<'_>,
    n: u32,
    more: usize,
    os_page_bytes: usize,
    key: LinkKey,
    uncarved: &Uncarved,
) -> Chain {
    let class = span.class.get() as usize;
    let (block, unit, division) = (block_bytes(class), carve_bytes(span, os_page_bytes), BlockDivision::of(class));
    let n_blocks = division.block_at(span_bytes(span)).0;
    let n_least = if span.fresh_has_memory.get() { n.min(SMALLEST_BATCH) as usize } else { 1 };
    let n_wanted = (division.block_at(more * unit).0 + 1).min(n as usize).max(n_least);
    let first_block = |unit_index: u32| division.block_at(unit_index as usize * unit + block - 1).0.min(n_blocks);
    let mut fresh = span.fresh.get();
    while fresh != 0 {
        let at = fresh.trailing_zeros();
        let from = first_block(at);
        // Behind the unit in which the last of the wanted blocks starts, or the units that follow each other; past the last block of the span there is only the latter.
        let behind_wanted = ((from + n_wanted - 1) * block) as u32 / unit as u32 + 1;
        let end = behind_wanted.max(at + 1).min(at + (fresh >> at).trailing_ones());
        let to = first_block(end);
        fresh &= u64::MAX << (end - 1) << 1;
        span.fresh.set(fresh);
        if !span.fresh_has_memory.get() {
            uncarved.add(-((end - at) as i64 * unit as i64));
        }
        if from < to {
            span.n_out.set(span.n_out.get() + (to - from) as u32);
            // SAFETY: the blocks lie in the span and were neither free nor out: no code uses their memory.
            return unsafe { link(span.start(), block, from..to, key) };
        }
    }
    Chain::EMPTY
}

/// Links blocks in address order for a bin, at least one. A function of its own, so that its loop has all registers; four blocks a round.
///
/// # Safety
/// - The blocks, of `block` bytes each and counted from `start`, are the caller's, and no code uses their memory.
#[inline(never)]
unsafe fn link(start: *mut u8, block: usize, blocks: Range<usize>, key: LinkKey) -> Chain {
    let at = |index: usize| start.wrapping_add(index * block).cast::<Node>();
    let (first, last) = (at(blocks.start), at(blocks.end - 1));
    let link_one = |node: *mut Node| {
        let next = as_if_read(node.wrapping_byte_add(block));
        // SAFETY: no code uses the block's memory (this function's contract).
        unsafe { free_node::write_in_bin(node, next, key) };
        next
    };
    let mut node = first;
    for _ in 0..(blocks.len() - 1) / 4 {
        node = link_one(link_one(link_one(link_one(node))));
    }
    while node != last {
        node = link_one(node);
    }
    // SAFETY: as above.
    unsafe { free_node::write_in_bin(last, END_OF_BIN, key) };
    Chain { first, last, len: blocks.len() as u32 }
}

/// Takes the `n` lowest free blocks, or all if there are fewer, as a chain in address order, linked for a bin with `key`.
pub(crate) fn take(span: &OwnedSpan<'_>, n: u32, key: LinkKey) -> Chain {
    let n = n.min(span.n_free.get());
    if n == 0 {
        return Chain::EMPTY;
    }
    let block = block_bytes(span.class.get() as usize);
    let (start, bitmap) = (span.start(), span.bitmap());
    let mut at = span.first_word.get() as usize;
    let (mut first, mut last) = (ptr::null_mut::<Node>(), ptr::null_mut::<Node>());
    let mut left = n;
    // `n_free` bits are set at or above `first_word`, so the loop ends inside the bitmap.
    while let Some(word) = bitmap.get(at) {
        let mut bits = word.get();
        while bits != 0 && left > 0 {
            let node: *mut Node = start.wrapping_add((at * 64 + bits.trailing_zeros() as usize) * block).cast();
            bits &= bits - 1;
            if first.is_null() {
                first = node;
            } else {
                // SAFETY: `last` is the free block found before this one: a set bit is a block whose memory no code uses.
                unsafe { free_node::write_in_bin(last, node, key) };
            }
            last = node;
            left -= 1;
        }
        word.set(bits);
        if left == 0 {
            break;
        }
        at += 1;
    }
    // SAFETY: as above.
    unsafe { free_node::write_in_bin(last, END_OF_BIN, key) };
    span.first_word.set(at as u16);
    span.n_free.set(span.n_free.get() - n);
    span.n_out.set(span.n_out.get() + n);
    Chain { first, last, len: n }
}

/// A small span that blocks are given back to.
#[derive(Debug)]
pub(crate) struct Home<'a> {
    /// The span.
    pub span: OwnedSpan<'a>,
    /// Its size class.
    pub class: usize,
}

impl<'a> Home<'a> {
    /// A small span.
    #[inline]
    #[must_use]
    pub(crate) fn of(span: OwnedSpan<'a>) -> Self {
        Self { class: span.class.get() as usize, span }
    }

    /// Whether a block that starts at this address, in the span, is there: free, or never carved.
    #[must_use]
    pub(crate) fn has(&self, address: usize, os_page_bytes: usize) -> bool {
        let (index, is_start) = block_at(self.class, address - self.span.start().addr());
        let unit = index * block_bytes(self.class) / carve_bytes(&self.span, os_page_bytes);
        let is_fresh = || self.span.fresh.get() >> unit & 1 == 1;
        is_start && index < n_blocks(&self.span) && (is_fresh() || is_free(&self.span, index))
    }

    /// The number of a block that starts at this address, in the span.
    #[must_use]
    pub(crate) fn index_of(&self, address: usize) -> usize {
        block_at(self.class, address - self.span.start().addr()).0
    }

    /// Gives back a block. With a `key` it comes out of a bin whose links have it, and has to be marked as such.
    ///
    /// # Errors
    /// The address is not that of a block that is out: it is left as it is.
    ///
    /// # Safety
    /// - The address lies in the span, and is a multiple of the granule. If a block starts there, it is the caller's.
    pub(crate) unsafe fn give_back(&self, block: *mut Node, key: LinkKey) -> Result<(), Refused> {
        let span = &self.span;
        let (index, is_start) = block_at(self.class, block.addr() - span.start().addr());
        let Some(word) = span.bitmap().get(index / 64).filter(|_| is_start && index < n_blocks(span)) else {
            return Err(Refused::NotABlock);
        };
        // SAFETY: a block of the span starts here, and is the caller's (this function's contract).
        if !key.is_plain() && unsafe { !free_node::is_in_bin(block) } {
            return Err(Refused::Written);
        }
        if is_free(span, index) || span.n_out.get() == 0 {
            return Err(Refused::FreeAlready);
        }
        word.set(word.get() | 1 << (index % 64));
        span.n_out.set(span.n_out.get() - 1);
        span.n_free.set(span.n_free.get() + 1);
        span.first_word.set(span.first_word.get().min((index / 64) as u16));
        Ok(())
    }

    /// Gives back `n` blocks that lie beside each other from an address in the span on. Nothing of them is read or written.
    ///
    /// # Errors
    /// No block starts at the address, the span does not have as many behind it, or one of them is free: they are left as they are.
    pub(crate) fn give_back_stretch(&self, address: usize, n: u32) -> Result<(), Refused> {
        let span = &self.span;
        let (index, is_start) = block_at(self.class, address - span.start().addr());
        let end = index + n as usize;
        if !is_start || end > n_blocks(span) {
            return Err(Refused::NotABlock);
        }
        if span.n_out.get() < n || !words_of(span.bitmap(), index..end, |word, bits| word.get() & bits == 0) {
            return Err(Refused::FreeAlready);
        }
        words_of(span.bitmap(), index..end, |word, bits| {
            word.set(word.get() | bits);
            true
        });
        span.n_out.set(span.n_out.get() - n);
        span.n_free.set(span.n_free.get() + n);
        span.first_word.set(span.first_word.get().min((index / 64) as u16));
        Ok(())
    }
}

/// Calls `visit` with each word that some bits of a bitmap are in, and which bits of it these are, until it returns `false`. Returns whether it never did,
/// and the bitmap has all of these words.
pub(super) fn words_of(bitmap: &[Cell<u64>], bits: Range<usize>, visit: impl Fn(&Cell<u64>, u64) -> bool) -> bool {
    let mut from = bits.start;
    while from < bits.end {
        let n = (64 - from % 64).min(bits.end - from);
        let mask = (u64::MAX >> (64 - n)) << (from % 64);
        if bitmap.get(from / 64).is_none_or(|word| !visit(word, mask)) {
            return false;
        }
        from += n;
    }
    true
}

/// Whether the block with `index` is free; not if the span has no such block.
#[inline]
pub(crate) fn is_free(span: &OwnedSpan<'_>, index: usize) -> bool {
    span.bitmap().get(index / 64).is_some_and(|word| word.get() >> (index % 64) & 1 == 1)
}

/// Counts the set bits of the bitmap.
pub(crate) fn count_free(span: &OwnedSpan<'_>) -> u32 {
    span.bitmap().iter().take(words(span)).map(|word| word.get().count_ones()).sum()
}

/// Counts the blocks that were never carved.
pub(crate) fn count_fresh(span: &OwnedSpan<'_>, os_page_bytes: usize) -> u32 {
    let class = span.class.get() as usize;
    let (block, unit) = (block_bytes(class), carve_bytes(span, os_page_bytes));
    let starts = |units: usize| (units * unit).div_ceil(block).min(n_blocks(span));
    (0..64).filter(|unit| span.fresh.get() >> unit & 1 == 1).map(|unit| (starts(unit + 1) - starts(unit)) as u32).sum()
}

mod few;
mod intake;
pub(crate) use few::{carve_free, take_few};
pub(crate) use intake::{End, take_in};

#[cfg(test)]
mod tests;
