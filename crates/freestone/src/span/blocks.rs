//! The blocks of a small span: which are free, and which were never carved.
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

use crate::size_class::{BlockDivision, GRANULE_BYTES, block_at, block_bytes};
use crate::span::free_node::{self, Chain, END_OF_BIN};
use crate::span::fresh_pages::FreshPages;
use crate::span::{OwnedSpan, Span};
use core::cell::Cell;
use core::ops::Range;
use core::ptr;
use freestone_base::align;
use freestone_base::inbox::{LinkKey, Node};

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

/// Prepares a span, which no code uses yet, for blocks of `class`: no block is carved or free. `has_memory`: its pages may have memory behind them.
pub(crate) fn format(span: &OwnedSpan<'_>, class: usize, os_page_bytes: usize, has_memory: bool) {
    span.class.set(class as u8);
    span.fresh.set(fresh_mask(span, os_page_bytes));
    span.fresh_has_memory.set(has_memory);
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

/// The bits of `fresh` in a span of which nothing was carved.
pub(super) fn fresh_mask(span: &Span, os_page_bytes: usize) -> u64 {
    u64::MAX >> (64 - span_bytes(span) / carve_bytes(span, os_page_bytes))
}

/// Carves the next OS page or, where the span may have memory behind it, as many as `n` blocks take, but only until it has [`SMALLEST_BATCH`]: the chain of the blocks, linked with `key` and
/// out from now on; empty if every page has been carved. Calls `provide` with OS pages that have no memory, before it writes to them.
pub(crate) fn carve(
    span: &OwnedSpan<'_>,
    n: u32,
    os_page_bytes: usize,
    key: LinkKey,
    provide: impl FnOnce(FreshPages),
) -> Chain {
    let class = span.class.get() as usize;
    let (block, unit) = (block_bytes(class), carve_bytes(span, os_page_bytes));
    let n_wanted = if span.fresh_has_memory.get() { n.min(SMALLEST_BATCH) as usize } else { 1 };
    let first_block = |unit_index: u32| (unit_index as usize * unit).div_ceil(block).min(n_blocks(span));
    let mut fresh = span.fresh.get();
    while fresh != 0 {
        let from = first_block(fresh.trailing_zeros());
        let mut to = from;
        while fresh != 0 && to - from < n_wanted && first_block(fresh.trailing_zeros()) == to {
            to = first_block(fresh.trailing_zeros() + 1);
            fresh &= fresh - 1;
        }
        span.fresh.set(fresh);
        if from < to {
            if !span.fresh_has_memory.get() {
                let at = align::down(from * block, unit);
                provide(FreshPages::new(span.start().wrapping_add(at), unit));
            }
            span.n_out.set(span.n_out.get() + (to - from) as u32);
            // SAFETY: the blocks lie in the span and were neither free nor out: no code uses their memory.
            return unsafe { link(span.start(), block, from..to, key) };
        }
    }
    Chain::EMPTY
}

/// Links blocks in address order for a bin, at least one.
///
/// # Safety
/// - The blocks, of `block` bytes each and counted from `start`, are the caller's, and no code uses their memory.
unsafe fn link(start: *mut u8, block: usize, blocks: Range<usize>, key: LinkKey) -> Chain {
    let at = |index: usize| start.wrapping_add(index * block).cast::<Node>();
    for index in blocks.clone() {
        let next = if index + 1 < blocks.end { at(index + 1) } else { END_OF_BIN };
        // SAFETY: no code uses the block's memory (this function's contract).
        unsafe { free_node::write_in_bin(at(index), next, key) };
    }
    Chain { first: at(blocks.start), last: at(blocks.end - 1), len: blocks.len() as u32 }
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

/// A small span that a chain of blocks is given back to: the values that all of them need.
#[derive(Debug)]
pub(crate) struct Home<'a> {
    /// The span.
    pub span: OwnedSpan<'a>,
    /// Its size class.
    pub class: usize,
    start: *mut u8,
    granules: usize,
    n_blocks: usize,
    division: BlockDivision,
    bitmap: &'a [Cell<u64>],
}

/// The result of giving back a chain of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intake {
    /// How many blocks.
    pub n: u32,
    /// The index of the last one in its span, if there was any.
    pub last: usize,
    /// The block behind them in their chain, if more were allowed; or the block that was refused.
    pub next: *mut Node,
    /// The last block that was looked at: its link leads on.
    pub before: *mut Node,
    /// Why `next` cannot be given back: it is not a block of this span that is out.
    pub refused: Option<Refused>,
}

impl<'a> Home<'a> {
    /// A small span.
    #[inline]
    #[must_use]
    pub(crate) fn of(span: OwnedSpan<'a>) -> Self {
        let (class, bytes) = (span.class.get() as usize, span_bytes(&span));
        let division = BlockDivision::of(class);
        Self {
            class,
            start: span.start(),
            granules: bytes / GRANULE_BYTES,
            n_blocks: division.block_at(bytes).0,
            division,
            bitmap: span.bitmap(),
            span,
        }
    }

    /// Whether a block lies in the span; `false` for an address that is no multiple of the granule.
    #[inline]
    #[must_use]
    pub(crate) fn holds(&self, block: *mut Node) -> bool {
        // A rotation moves the lowest bits, which are zero in a block's address, to the top.
        block.addr().wrapping_sub(self.start.addr()).rotate_right(GRANULE_BYTES.ilog2()) < self.granules
    }

    /// Whether a block that starts at this address, in the span, is there: free, or never carved.
    #[must_use]
    pub(crate) fn has(&self, address: usize, os_page_bytes: usize) -> bool {
        let (index, is_start) = block_at(self.class, address - self.start.addr());
        let unit = index * block_bytes(self.class) / carve_bytes(&self.span, os_page_bytes);
        let is_fresh = || self.span.fresh.get() >> unit & 1 == 1;
        is_start && index < self.n_blocks && (is_fresh() || is_free(&self.span, index))
    }

    /// Gives back a block, and those behind it in its chain up to the first that does not lie in the span, at most `most` (1 or more). Ends
    /// early when no block is out any more, or at a block that is refused, which is left as it is. With a `key` the chain comes out of a bin
    /// whose links have it, and each block has to be marked as such.
    ///
    /// A function of its own, so that its loop has all registers.
    ///
    /// # Safety
    /// - The first block lies in the span; each is the caller's if it is a block, and linked if `most` is more than 1.
    #[inline(never)]
    pub(crate) unsafe fn give_back(&self, first: *mut Node, most: u32, key: LinkKey) -> Intake {
        let span = &self.span;
        let (n_out, mut lowest, mut last) = (span.n_out.get(), usize::MAX, 0);
        let limit = most.min(n_out);
        let (mut left, mut next, mut before, mut refused) = (limit, first, first, None);
        if limit == 0 {
            // SAFETY: the address is a multiple of the granule in the span's committed memory.
            refused = Some(unsafe { self.bit_of(first, key) }.err().unwrap_or(Refused::FreeAlready));
        }
        while left > 0 {
            before = next;
            // SAFETY: as above.
            let (index, word, mask) = match unsafe { self.bit_of(next, key) } {
                Ok(bit) => bit,
                Err(why) => {
                    refused = Some(why);
                    break;
                }
            };
            word.set(word.get() | mask);
            (lowest, last) = (lowest.min(index), index);
            left -= 1;
            if left == 0 {
                // SAFETY: the block is the caller's, and linked, for `most` is more than 1.
                next = if limit == most { ptr::null_mut() } else { unsafe { free_node::next(next, key) } };
                break;
            }
            // SAFETY: as above.
            next = unsafe { free_node::next(next, key) };
            if !self.holds(next) {
                break;
            }
        }
        let n = limit - left;
        span.n_out.set(n_out - n);
        span.n_free.set(span.n_free.get() + n);
        span.first_word.set(span.first_word.get().min((lowest / 64).min(u16::MAX as usize) as u16));
        Intake { n, last, next, before, refused }
    }

    /// The bit of a block that is out: its index, the word and the mask.
    ///
    /// # Errors
    /// The address is that of no block, or the block is free or not marked as in a bin with this key.
    ///
    /// # Safety
    /// - The address lies in the span, and is a multiple of the granule.
    #[inline(always)]
    unsafe fn bit_of(&self, block: *mut Node, key: LinkKey) -> Result<(usize, &'a Cell<u64>, u64), Refused> {
        // SAFETY: the address is a multiple of the granule in the span's committed memory (this function's contract).
        if !key.is_plain() && unsafe { !free_node::is_in_bin(block) } {
            return Err(Refused::Written);
        }
        let (index, is_start) = self.division.block_at(block.addr() - self.start.addr());
        if !is_start || index >= self.n_blocks {
            return Err(Refused::NotABlock);
        }
        let mask = 1u64 << (index % 64);
        // SAFETY: the index is below the span's number of blocks, so its word is inside the bitmap.
        let word = unsafe { self.bitmap.get_unchecked(index / 64) };
        if word.get() & mask == 0 { Ok((index, word, mask)) } else { Err(Refused::FreeAlready) }
    }
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

#[cfg(test)]
mod tests;
