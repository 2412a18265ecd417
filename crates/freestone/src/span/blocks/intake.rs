//! Blocks of a chain that go back to their span.
//!
//! ```text
//!  chain   12 ─▶ 11 ─▶ 10 ─▶ 9 ─▶ 30 ─▶ 4 ─▶ 5 ─▶ …
//!           └───── a run ────┘     └── one by one
//! ```
//!
//! A thread that frees blocks in the order in which it allocated them has them in its bin as a run of neighbours. Of a run only the ends are divided by the
//! block size, and its bits are set by the word. A chain that is no run where it enters the span is not asked again: to ask at every block costs more than
//! short runs save. `docs/decisions/0060-runs-of-blocks-go-back-together.md` has the measurements.
//!
//! All of it is inlined, so that the loop over spans keeps what this one needs: both are most of what freeing a large structure costs.

use super::{Refused, span_bytes};
use crate::size_class::BlockDivision;
use crate::span::OwnedSpan;
use crate::span::free_node;
use core::cell::Cell;
use core::ptr;
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::prefetch::as_if_read;

/// The result of taking in blocks of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intake {
    /// How many blocks.
    pub n: u32,
    /// The block behind them in their chain, or the block that was refused; if as many were taken in as may be, what the last one links to.
    pub next: *mut Node,
    /// Where that is.
    pub end: End,
}

/// Where a walk along a chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Behind this block, the last one that was taken in: the next one does not lie in the span, or no more may be taken in.
    Behind(*mut Node),
    /// At the next block, which cannot be given back for this reason: it is not a block of the span that is out.
    Refused(Refused),
}

/// Gives back a block to a span, and those behind it in its chain up to the first that does not lie in the span, at most `most` (1 or more). Ends
/// early when no block is out any more, or at a block that is refused, which is left as it is. The chain comes out of a bin whose links have the `key`.
/// `division` is that of the span's class.
///
/// # Safety
/// - The first block lies in the span; each is the caller's if it is a block, and linked.
#[inline(always)]
pub(crate) unsafe fn take_in(
    span: &OwnedSpan<'_>,
    division: BlockDivision,
    first: *mut Node,
    most: u32,
    key: LinkKey,
) -> Intake {
    let (start, n_out) = (span.start().addr(), span.n_out.get());
    let limit = most.min(n_out);
    let (index, is_start) = division.block_at(first.addr() - start);
    let n_blocks = division.block_at(span_bytes(span)).0;
    if limit == 0 || index >= n_blocks || !is_start {
        let is_block = index < n_blocks && is_start;
        let why = if is_block { Refused::FreeAlready } else { Refused::NotABlock };
        return Intake { n: 0, next: first, end: End::Refused(why) };
    }
    let (words, left) = (span.bitmap().as_ptr(), limit as usize);
    let mut walk = Walk { words, start, division, n_blocks, key, left, index, next: first };
    let end = 'chain: {
        loop {
            let last = (walk.index, walk.next);
            if let Err(end) = walk.take_one() {
                break 'chain end;
            }
            if walk.index.abs_diff(last.0) != 1 {
                break;
            }
            let Some(last) = walk.take_run(last.1) else { break };
            if let Err(end) = walk.find_next(last) {
                break 'chain end;
            }
        }
        loop {
            if let Err(end) = walk.take_one() {
                break 'chain end;
            }
        }
    };
    let n = limit - walk.left as u32;
    span.n_out.set(n_out - n);
    span.n_free.set(span.n_free.get() + n);
    // To find the lowest word that has changed would take two of the instructions of each block.
    span.first_word.set(0);
    Intake { n, next: walk.next, end }
}

/// A chain that is walked along.
#[derive(Clone, Copy)]
struct Walk {
    /// The span's bitmap.
    words: *const Cell<u64>,
    /// Address of the span's first byte.
    start: usize,
    division: BlockDivision,
    n_blocks: usize,
    key: LinkKey,
    /// How many more blocks may be taken in.
    left: usize,
    /// The number of the next block.
    index: usize,
    next: *mut Node,
}

impl Walk {
    /// A word of the bitmap.
    ///
    /// # Safety
    /// - The bitmap has such a word.
    #[inline(always)]
    unsafe fn word(&self, at: usize) -> &Cell<u64> {
        // SAFETY: the word is inside the bitmap (this function's contract).
        let word = unsafe { self.words.add(at) };
        // SAFETY: the bitmap of a span in use is committed, and only the span's owner reads or writes it.
        unsafe { &*word }
    }

    /// Takes in the next block, and finds out which one is behind it.
    #[inline(always)]
    fn take_one(&mut self) -> Result<(), End> {
        // SAFETY: a block of the span starts here, and is the caller's (contract of `take_in`).
        if unsafe { !free_node::is_in_bin(self.next) } {
            return Err(End::Refused(Refused::Written));
        }
        // SAFETY: the number is below that of the span's blocks, so its word is inside the bitmap.
        let word = unsafe { self.word(self.index / 64) };
        if word.get() >> (self.index % 64) & 1 == 1 {
            return Err(End::Refused(Refused::FreeAlready));
        }
        word.set(word.get() | 1 << (as_if_unknown(self.index) % 64));
        let taken = self.next;
        // SAFETY: the block is the caller's, and linked.
        self.next = unsafe { free_node::next(taken, self.key) };
        self.left = as_if_unknown(self.left) - 1;
        self.find_next(taken)
    }

    /// Finds out which block is the next one, behind the one that was taken in last.
    #[inline(always)]
    fn find_next(&mut self, taken: *mut Node) -> Result<(), End> {
        if self.left == 0 {
            return Err(End::Behind(taken));
        }
        let (index, is_start) = self.division.block_at(self.next.addr().wrapping_sub(self.start));
        if index >= self.n_blocks {
            return Err(End::Behind(taken));
        }
        if !is_start {
            let is_other = !free_node::is_aligned(self.next);
            return Err(if is_other { End::Behind(taken) } else { End::Refused(Refused::NotABlock) });
        }
        self.index = index;
        Ok(())
    }

    /// Takes in the next block, which lies beside the one that was taken in last, and those behind it in the chain each of which lies beside the one before in the
    /// same direction, four at a time. Returns the last. `None` if they are fewer, or one of them is free already: then nothing is done.
    #[inline(always)]
    fn take_run(&mut self, taken: *mut Node) -> Option<*mut Node> {
        let mut run = *self;
        let last = run.take_beside(taken);
        (self.left, self.next) = (run.left, run.next);
        last
    }

    /// As [`Walk::take_run`]. A function of its own, so that the loop over single blocks has all registers.
    #[inline(never)]
    fn take_beside(&mut self, taken: *mut Node) -> Option<*mut Node> {
        let rises = self.next > taken;
        let most = if rises { self.n_blocks - self.index } else { self.index + 1 };
        let step = self.next.addr().wrapping_sub(taken.addr());
        let mut run = Run { next: self.next, beside: self.next, step, key: self.key };
        for _ in 0..most.min(self.left) / 4 {
            if !(run.goes_on() && run.goes_on() && run.goes_on() && run.goes_on()) {
                break;
            }
        }
        let last = run.beside.wrapping_byte_sub(step);
        if last == taken {
            return None;
        }
        let to = self.division.block_at(last.addr() - self.start).0;
        let (low, high) = if rises { (self.index, to) } else { (to, self.index) };
        if !self.words_of(low, high, |word, bits| word.get() & bits == 0) {
            return None;
        }
        self.words_of(low, high, |word, bits| {
            word.set(word.get() | bits);
            true
        });
        self.next = run.next;
        self.left -= high - low + 1;
        Some(last)
    }

    /// Calls `visit` with each word of the bitmap, and its bits of the blocks from one number to another, both included, as long as it returns `true`. They are
    /// blocks of the span. Returns whether it always did.
    #[inline(always)]
    fn words_of(&self, from: usize, to: usize, visit: impl Fn(&Cell<u64>, u64) -> bool) -> bool {
        let mut bits = u64::MAX << (from % 64);
        for at in from / 64..to / 64 {
            // SAFETY: the numbers are below that of the span's blocks, so their words are inside the bitmap.
            if !visit(unsafe { self.word(at) }, bits) {
                return false;
            }
            bits = u64::MAX;
        }
        // SAFETY: as above.
        visit(unsafe { self.word(to / 64) }, bits & u64::MAX >> (63 - to % 64))
    }
}

/// Blocks of a chain each of which lies beside the one before.
struct Run {
    next: *mut Node,
    /// Where the next block has to be.
    beside: *mut Node,
    step: usize,
    key: LinkKey,
}

impl Run {
    /// Adds the next block, if it lies beside the last one and is marked as a block in a bin. There is such a block in the span.
    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        // SAFETY: the last block's link leads to this block of the span, so it is the caller's.
        if self.next != self.beside || unsafe { !free_node::is_in_bin(self.beside) } {
            return false;
        }
        // SAFETY: the block is the caller's, and linked.
        self.next = unsafe { free_node::next(self.beside, self.key) };
        self.beside = as_if_read(self.beside).wrapping_byte_add(self.step);
        true
    }
}

/// The number as it is, but the compiler knows nothing of it: so it computes with it where that takes the fewest instructions.
#[inline(always)]
fn as_if_unknown(number: usize) -> usize {
    as_if_read(ptr::without_provenance_mut::<u8>(number)).addr()
}

#[cfg(test)]
mod tests;
