//! What a block of a watched span says about itself: its last four bytes.
#![allow(unsafe_code)]
//!
//! ```text
//!  start                     size                    bytes - 4     bytes
//!  │ what the program asked for │ canary (`canary`)        │ trailer  │
//!
//!  trailer   31      22 21    18 17   15 14          0     xored with 32 bits made of the secret and the block's address
//!           │ check    │ align  │ state │ size        │    align: logarithm; check: 10 bits made of the others, the secret and the address
//! ```
//!
//! Every block of a watched span has a trailer from the moment its OS page is carved: an overflow that reaches it is seen, and a block that is
//! free, or waits in a quarantine, is told from one that is out.
//!
//! Threads: whoever holds the block writes its trailer; the owner of its span reads it when it looks at the block's right neighbour. So a
//! trailer is read and written as one atomic number.
//!
//! # Safety
//! A [`Marked`] is made for a block of a watched span, which is mapped; what its methods read and write lies in the block.

use crate::size_class::{GRANULE_BYTES, SMALL_MAX};
use crate::span::family::Family;
use crate::span::secret::Secret;
use crate::span::{canary, erase, fill};
use core::ops::Range;
use core::slice;
use freestone_base::sync::{AtomicU32, Ordering};

/// Bytes of a trailer.
pub(crate) const TRAILER_BYTES: usize = size_of::<u32>();

/// The smallest block of a watched span: two links and a trailer do not overlap.
pub(crate) const LEAST_BLOCK_BYTES: usize = 2 * GRANULE_BYTES;

const _: () = assert!(SMALL_MAX <= 1 << 15);
const _: () = assert!(LEAST_BLOCK_BYTES - TRAILER_BYTES >= canary::MOST_BYTES);

/// What a block of a watched span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It was never handed out since its OS page was carved.
    Fresh,
    /// It was handed out and freed.
    Freed,
    /// The program has it.
    Live(Family),
}

/// See the module header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    /// What the block is.
    pub(crate) state: State,
    /// Bytes that the program asked for.
    pub(crate) size: usize,
    /// Logarithm of the alignment that the program asked for.
    pub(crate) align_log2: u32,
}

impl Trailer {
    /// That of a block that was never handed out.
    pub(crate) const FRESH: Self = Self { state: State::Fresh, size: 0, align_log2: 0 };

    #[inline(always)]
    fn encode(self, word: u64) -> u32 {
        let state = match self.state {
            State::Fresh => FRESH,
            State::Freed => FREED,
            State::Live(family) => family as u32,
        };
        let fields = self.size as u32 | state << 15 | self.align_log2 << 18;
        (fields | check(fields, word) << 22) ^ (word >> 32) as u32
    }

    #[inline(always)]
    fn decode(stored: u32, word: u64) -> Option<Self> {
        let plain = stored ^ (word >> 32) as u32;
        let fields = plain & FIELDS;
        if plain >> 22 != check(fields, word) {
            return None;
        }
        let state = match state_of_fields(fields) {
            FRESH => State::Fresh,
            FREED => State::Freed,
            family => State::Live(Family::of(family)?),
        };
        Some(Self { state, size: size_of_fields(fields), align_log2: fields >> 18 })
    }
}

/// The bits of a trailer's fields.
const FIELDS: u32 = (1 << 22) - 1;

/// The states that no family has, as a trailer has them.
const FRESH: u32 = 0;
const FREED: u32 = 1;

#[inline(always)]
fn state_of_fields(fields: u32) -> u32 {
    fields >> 15 & 7
}

#[inline(always)]
fn size_of_fields(fields: u32) -> usize {
    (fields & 0x7fff) as usize
}

/// Ten bits that belong to the other fields and the address.
#[inline(always)]
fn check(fields: u32, word: u64) -> u32 {
    (fields ^ word as u32).wrapping_mul(0x9E37_79B1) >> 22
}

/// A block of a watched span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marked {
    start: *mut u8,
    bytes: usize,
    word: u64,
    erases: bool,
}

impl Marked {
    /// The block of `bytes` at `start`.
    ///
    /// # Safety
    /// - A block of a watched span of that size is there, and what is called of this value is called by one that may: the block's holder may
    ///   call everything, the span's owner what only reads.
    #[inline(always)]
    pub(crate) unsafe fn at(start: *mut u8, bytes: usize, secret: &Secret) -> Self {
        Self { start, bytes, word: secret.word(start.addr()), erases: secret.erases() }
    }

    /// Where it starts.
    #[inline(always)]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Most bytes that the program may ask for and get in this block.
    #[inline(always)]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes - TRAILER_BYTES
    }

    #[inline(always)]
    fn cell(&self) -> &AtomicU32 {
        // SAFETY: the last four bytes of a mapped block, aligned to four, and only accessed as an atomic (module header).
        unsafe { &*self.start.wrapping_add(self.capacity()).cast::<AtomicU32>() }
    }

    /// What the trailer says; `None` if it was written over.
    #[inline(always)]
    pub(crate) fn trailer(&self) -> Option<Trailer> {
        let trailer = Trailer::decode(self.cell().load(Ordering::Acquire), self.word)?;
        (trailer.size <= self.capacity()).then_some(trailer)
    }

    /// Whether the trailer is zero: no block was carved here, or its OS page was purged. (One of `2^32` trailers is zero otherwise.)
    pub(crate) fn is_blank(&self) -> bool {
        self.cell().load(Ordering::Acquire) == 0
    }

    /// Whether the trailer, of a free block, may be zero because its OS page was purged.
    pub(crate) fn is_tail_purged(&self, os_page_bytes: usize) -> bool {
        let page_of = |address: usize| address & !(os_page_bytes - 1);
        let start = self.start.addr();
        page_of(start) != page_of(start + self.bytes - 1) && self.is_blank()
    }

    /// Writes the trailer.
    #[inline(always)]
    pub(crate) fn set_trailer(&self, trailer: Trailer) {
        self.cell().store(trailer.encode(self.word), Ordering::Release);
    }

    /// Bytes of the block, of which the program was given the first [`Marked::capacity`].
    #[inline(always)]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(range.start <= range.end && range.end <= self.capacity());
        // SAFETY: the range is below the block's trailer; whoever may call what reads them knows that no code writes them meanwhile (module header).
        unsafe { slice::from_raw_parts(self.start.wrapping_add(range.start), range.len()) }
    }

    /// As [`Marked::bytes`], to be written.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    fn bytes_mut(&self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(range.start <= range.end && range.end <= self.capacity());
        // SAFETY: the range is below the block's trailer; only the block's holder calls what writes them, one at a time (module header).
        unsafe { slice::from_raw_parts_mut(self.start.wrapping_add(range.start), range.len()) }
    }

    /// Where the canary behind `size` bytes ends, and the window before that, the first bytes of which may be the program's.
    #[inline(always)]
    fn window(&self, size: usize) -> (usize, *mut canary::Window) {
        let end = canary::range(size, self.capacity()).end;
        (end, self.start.wrapping_add(end - canary::MOST_BYTES).cast())
    }

    /// Writes the canary behind the first `size` bytes of a block that is not the program's yet.
    #[inline(always)]
    pub(crate) fn begin_canary(&self, size: usize) {
        if self.erases {
            // Canaries of earlier sizes and links were here, and must not be seen.
            erase::write(self.bytes_mut(0..size));
        }
        self.write_canary(size);
    }

    /// Writes what the canary behind the first `size` bytes lacks of that behind the first `held`.
    pub(crate) fn lengthen_canary(&self, size: usize, held: usize) {
        canary::write(self.bytes_mut(canary::range(size, held)), size, self.word);
    }

    /// Writes the canary behind the first `size` bytes of a block that had `held`, fewer.
    pub(crate) fn move_canary(&self, size: usize, held: usize) {
        if self.erases {
            erase::write(self.bytes_mut(held..size));
        }
        self.write_canary(size);
    }

    /// Writes the canary behind the first `size` bytes.
    #[inline(always)]
    pub(crate) fn write_canary(&self, size: usize) {
        let (end, window) = self.window(size);
        // SAFETY: the block has as many bytes before the trailer as a window, and this one ends before the trailer; the caller is the block's holder.
        canary::write_window(unsafe { &mut *window }, end, end - size, self.word);
    }

    /// The offset of the first byte of the canary behind `size` bytes that was written over, for the block's holder.
    pub(crate) fn canary_damage(&self, size: usize) -> Option<usize> {
        canary::damage(self.bytes(canary::range(size, self.capacity())), size, self.word)
    }

    /// As [`Marked::canary_damage`], of the canary's last bytes only, for the owner of the block's span: the block's holder may be freeing it, and
    /// write links into its first bytes; to its last it writes only what is there already. Fewer bytes are not looked at.
    pub(crate) fn late_damage(&self, size: usize) -> Option<usize> {
        let from = self.capacity() - canary::LATE_BYTES;
        if size > from || size + canary::MOST_BYTES < self.capacity() {
            return None;
        }
        canary::damage(self.bytes(from..self.capacity()), from, self.word)
    }

    /// Fills the `size` bytes that the program had, or clears them.
    #[inline(always)]
    pub(crate) fn fill(&self, size: usize) {
        if self.erases {
            return erase::write(self.bytes_mut(0..size));
        }
        fill::write(self.bytes_mut(0..size));
    }

    /// Makes the first bytes of a free block, where links were, what they were before: filled, and canary behind `size`.
    #[inline]
    pub(crate) fn fill_head(&self, size: usize) {
        let head = size.min(GRANULE_BYTES);
        if self.erases {
            erase::write(self.bytes_mut(0..head));
        } else {
            fill::write(self.bytes_mut(0..head));
        }
        canary::write(self.bytes_mut(head..GRANULE_BYTES), head, self.word);
    }

    /// Whether the block is free, and was not written to since, as far as its trailer and what was filled show.
    #[inline(always)]
    pub(crate) fn is_unused(&self) -> bool {
        let Some(fields) = self.fields() else { return false };
        let size = size_of_fields(fields);
        match state_of_fields(fields) {
            FREED if size > self.capacity() => false,
            FREED if self.erases => erase::damage(self.bytes(0..size)).is_none(),
            FREED => fill::is_whole(self.bytes(0..size)),
            state => state == FRESH,
        }
    }

    /// The trailer's fields, if it was not written over.
    #[inline(always)]
    fn fields(&self) -> Option<u32> {
        let plain = self.cell().load(Ordering::Acquire) ^ (self.word >> 32) as u32;
        let fields = plain & FIELDS;
        (plain >> 22 == check(fields, self.word)).then_some(fields)
    }

    /// The trailer, if it says that the program has the block, from functions of `family`, and if neither it nor the canary was written over.
    #[inline(always)]
    pub(crate) fn if_whole(&self, family: u32) -> Option<(Family, Trailer)> {
        let fields = self.fields()?;
        let size = size_of_fields(fields);
        if state_of_fields(fields) != family || size > self.capacity() {
            return None;
        }
        let (end, window) = self.window(size);
        // SAFETY: the block has as many bytes before the trailer as a window, and this one ends before the trailer; the caller is the block's holder.
        if !canary::is_whole(unsafe { &*window }, end, end - size, self.word) {
            return None;
        }
        let family = Family::of(family)?;
        Some((family, Trailer { state: State::Live(family), size, align_log2: fields >> 18 }))
    }

    /// Whether trailer and last bytes of canary are whole, as [`Marked::trailer`] and [`Marked::late_damage`] say, for the owner of the block's span.
    #[inline(always)]
    pub(crate) fn is_tail_whole(&self) -> bool {
        let Some(fields) = self.fields() else { return false };
        let (size, from) = (size_of_fields(fields), self.capacity() - canary::LATE_BYTES);
        let has_canary =
            size <= from && size + canary::MOST_BYTES >= self.capacity() && state_of_fields(fields) != FRESH;
        let late = self.start.wrapping_add(from).cast::<[AtomicU32; 2]>();
        // SAFETY: the bytes lie before the trailer, aligned to four. If they are the program's, which may write them meanwhile, nothing is made of them.
        let late = unsafe { &*late }.each_ref().map(|half| half.load(Ordering::Relaxed));
        let late = u64::from(late[0]) | u64::from(late[1]) << 32;
        let wrong = if has_canary { late ^ canary::word_at(from, self.word) } else { 0 };
        wrong == 0 && size <= self.capacity()
    }

    /// The offset of the first byte of a freed block, of which the program had `size`, that was written since: what was filled, or canary.
    #[inline]
    pub(crate) fn freed_damage(&self, size: usize, os_page_bytes: usize) -> Option<usize> {
        let bytes = self.bytes(0..size);
        let filled = if self.erases { erase::damage(bytes) } else { fill::damage(bytes, os_page_bytes) };
        if filled.is_some() {
            return filled;
        }
        let offset = self.canary_damage(size)?;
        // The OS pages of a free block but the first may have been purged, and read as zero then; no byte of a canary is zero.
        let start = self.start.addr();
        let is_purged = |at: usize| (start ^ (start + at)) >= os_page_bytes && self.bytes(at..at + 1) == [0];
        (offset..canary::range(size, self.capacity()).end).find(|&at| !is_purged(at) && self.is_wrong(at))
    }

    /// Whether the byte of canary at an offset was written over.
    fn is_wrong(&self, at: usize) -> bool {
        canary::damage(self.bytes(at..at + 1), at, self.word).is_some()
    }
}

#[cfg(test)]
mod tests;
