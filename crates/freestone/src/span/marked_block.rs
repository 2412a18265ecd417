//! A block of a watched span: its trailer, its canary, and what it is filled with while it is free.
#![allow(unsafe_code)]
//!
//! ```text
//!             0                     size            size + canary      capacity   bytes
//!  handed out │ the program's         │ canary           │                │ trailer │
//!  freed      │ pattern, at the ends  │ canary           │                │ trailer │      a pattern of at least 16 bytes
//!  at `full`  │ zero                                                      │ trailer │      so all of it is zero when it is handed out
//! ```
//!
//! Every block of a watched span has a trailer from the moment its OS page is carved: an overflow that reaches it is seen, and a block that is
//! free, or waits in a quarantine, is told from one that is out.
//!
//! Threads: whoever holds the block writes it; the owner of its span reads trailer and last bytes of canary when it looks at the block's right
//! neighbour. So a trailer is read and written as one atomic number, and no thread but the owner writes other bytes over the last ones of a
//! canary.
//!
//! # Safety
//! A [`MarkedBlock`] is made for a block of a watched span, which is mapped; what its methods read and write lies in the block.

use crate::size_class::GRANULE_BYTES;
use crate::span::secret::{Secret, Words};
use crate::span::trailer::{Fields, State, TRAILER_BYTES, Trailer, base_of};
use crate::span::{canary, erase, fill};
use core::ops::Range;
use core::slice;
use freestone_base::sync::{AtomicU32, Ordering};

pub(crate) mod purged;

/// See the module header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkedBlock {
    start: *mut u8,
    bytes: usize,
    words: Words,
    erases: bool,
    /// What the size in its trailer counts from.
    base: usize,
}

/// What the short ways know of all blocks that they take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Freed blocks are cleared, not filled.
    pub(crate) erases: bool,
    /// What the sizes in trailers count from.
    base: usize,
}

impl Kind {
    /// Blocks below the last class, which are filled when they are freed.
    pub(crate) const FILLED: Self = Self { erases: false, base: 0 };
    /// Blocks below the last class, which are cleared.
    pub(crate) const CLEARED: Self = Self { erases: true, base: 0 };

    /// Blocks of `bytes`.
    pub(crate) fn of(bytes: usize, secret: &Secret) -> Self {
        Self { erases: secret.erases(), base: base_of(bytes) }
    }
}

impl MarkedBlock {
    /// The block of `bytes` at `start`.
    ///
    /// # Safety
    /// - A block of a watched span of that size is there, and what is called of this value is called by one that may: the block's holder may
    ///   call everything, the span's owner what only reads.
    #[inline(always)]
    pub(crate) unsafe fn at(start: *mut u8, bytes: usize, secret: &Secret) -> Self {
        // SAFETY: this function's contract is that of `new`.
        unsafe { Self::new(start, bytes, secret, Kind::of(bytes, secret)) }
    }

    /// As [`MarkedBlock::at`], for who knows its kind.
    ///
    /// # Safety
    /// - As for [`MarkedBlock::at`].
    #[inline(always)]
    pub(crate) unsafe fn new(start: *mut u8, bytes: usize, secret: &Secret, kind: Kind) -> Self {
        let Kind { erases, base } = kind;
        Self { start, bytes, words: secret.words(start.addr()), erases, base }
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
        let fields = Fields::decode(self.cell().load(Ordering::Acquire), self.words.trailer)?;
        let trailer = fields.counting_from(self.base).trailer()?;
        (trailer.size <= self.capacity()).then_some(trailer)
    }

    /// Whether the trailer is zero: no block was carved here, or its OS page was purged. (One of `2^32` trailers is zero otherwise.)
    pub(crate) fn is_blank(&self) -> bool {
        self.cell().load(Ordering::Acquire) == 0
    }

    /// Writes the trailer.
    #[inline(always)]
    pub(crate) fn set_trailer(&self, trailer: Trailer) {
        self.cell().store(self.fields_of(trailer).encode(self.words.trailer), Ordering::Release);
    }

    /// The fields that this trailer has in this block.
    #[inline(always)]
    pub(crate) fn fields_of(&self, trailer: Trailer) -> Fields {
        Fields::with_base(trailer, self.base)
    }

    /// Bytes of the block, of which the program was given the first [`MarkedBlock::capacity`].
    #[inline(always)]
    fn slice(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(range.start <= range.end && range.end <= self.capacity());
        // SAFETY: the range is below the block's trailer; whoever may call what reads them knows that no code writes them meanwhile (module header).
        unsafe { slice::from_raw_parts(self.start.wrapping_add(range.start), range.len()) }
    }

    /// As [`MarkedBlock::slice`], to be written.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    fn slice_mut(&self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(range.start <= range.end && range.end <= self.capacity());
        // SAFETY: the range is below the block's trailer; only the block's holder calls what writes them, one at a time (module header).
        unsafe { slice::from_raw_parts_mut(self.start.wrapping_add(range.start), range.len()) }
    }

    /// Makes a range of the block zero, off the ways that are taken often.
    #[cold]
    #[inline(never)]
    fn clear(&self, range: Range<usize>) {
        erase::write(self.slice_mut(range));
    }

    /// The eight bytes at an offset.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        debug_assert!(at + size_of::<u64>() <= self.capacity());
        // SAFETY: the bytes are below the block's trailer, and whoever may call what reads them knows that no code writes them meanwhile (module header).
        unsafe { self.start.wrapping_add(at).cast::<u64>().read_unaligned() }
    }

    /// How long the canary behind `size` bytes is, and the window that ends with it, the first bytes of which may be the program's.
    #[inline(always)]
    fn window(&self, size: usize) -> (usize, *mut canary::Window) {
        let n = (self.capacity() - size).min(canary::MOST_BYTES);
        (n, self.start.wrapping_add(size + n - canary::MOST_BYTES).cast())
    }

    /// Hands the block out for `size` bytes, to be freed as the trailer's fields say, which have this size: it is free, and no code has it.
    #[inline(always)]
    pub(crate) fn begin(&self, (size, fields): (usize, Fields), is_fresh: bool) {
        if self.erases && is_fresh {
            erase::write(self.slice_mut(0..self.capacity()));
        }
        let (n, window) = self.window(size);
        // SAFETY: the block has as many bytes before the trailer as a window, and this one ends before the trailer; the caller is the block's holder.
        canary::begin_window(unsafe { &mut *window }, n, self.words.canary);
        self.cell().store(fields.encode(self.words.trailer), Ordering::Release);
    }

    /// Makes the canary behind `held` bytes one behind `size`. Where freed blocks are cleared, so is what comes to the program, and what neither it nor
    /// the canary has any more.
    pub(crate) fn move_canary(&self, size: usize, held: usize) {
        if self.erases {
            let [end, held_end] = [size, held].map(|size| canary::range(size, self.capacity()).end);
            let range = if size > held { held..size } else { end..held_end };
            self.clear(range);
        }
        self.write_canary(size);
    }

    /// Writes the canary behind the first `size` bytes.
    #[inline(never)]
    pub(crate) fn write_canary(&self, size: usize) {
        let (n, window) = self.window(size);
        // SAFETY: the block has as many bytes before the trailer as a window, and this one ends before the trailer; the caller is the block's holder.
        canary::write_window(unsafe { &mut *window }, n, self.words.canary);
    }

    /// The offset of the first byte of the canary behind `size` bytes that was written over, for the block's holder.
    pub(crate) fn canary_damage(&self, size: usize) -> Option<usize> {
        if self.has_whole_canary(size) { None } else { self.damage_from(size, size) }
    }

    /// Whether the canary behind `size` bytes is as it was written, for the block's holder.
    #[inline(always)]
    fn has_whole_canary(&self, size: usize) -> bool {
        let (n, window) = self.window(size);
        // SAFETY: the block has as many bytes before the trailer as a window, and this one ends before the trailer; the caller is the block's holder.
        canary::is_whole(unsafe { &*window }, n, self.words.canary)
    }

    /// As [`MarkedBlock::canary_damage`], from an offset on.
    fn damage_from(&self, from: usize, size: usize) -> Option<usize> {
        let end = canary::range(size, self.capacity()).end;
        let from = from.clamp(size, end);
        Some(from + canary::damage(self.slice(from..end), self.words.canary)?)
    }

    /// As [`MarkedBlock::canary_damage`], of the last bytes only of the canary of a block with this trailer, for the owner of the block's span: the
    /// block's holder may be freeing it, and write links into its first bytes. A canary that does not reach the trailer is not looked at, nor one that
    /// may be cleared.
    pub(crate) fn late_damage(&self, trailer: &Trailer) -> Option<usize> {
        let reaches = self.capacity() - trailer.size <= canary::MOST_BYTES;
        let is_there = reaches && trailer.state != State::Fresh && !(self.erases && trailer.state == State::Freed);
        is_there.then(|| self.damage_from(self.capacity() - canary::LATE_BYTES, trailer.size)).flatten()
    }

    /// Marks the block as freed, which was handed out as these fields say, by functions of the family with this number, and fills the bytes that the program
    /// had, or clears them. `is_own`: its span is this heap's.
    #[inline(always)]
    pub(crate) fn end(&self, (fields, family): (Fields, u32), is_own: bool) {
        self.cell().store(fields.encode_freed(family, self.words.trailer), Ordering::Release);
        let size = fields.size();
        if self.erases {
            let end = if is_own { canary::range(size, self.capacity()).end } else { size };
            return erase::write(self.slice_mut(0..end));
        }
        fill::write(self.slice_mut(0..size.max(fill::LEAST_BYTES)));
    }

    /// Fills a freed block again, of which the program had `size` bytes, or clears it.
    pub(crate) fn fill(&self, size: usize) {
        if self.erases {
            return self.clear(0..self.capacity());
        }
        self.write_canary(size);
        fill::write(self.slice_mut(0..size.max(fill::LEAST_BYTES)));
    }

    /// Makes the first bytes of a freed block that comes home, where links were, what they were before. What the other thread had to leave of it
    /// is cleared.
    #[inline]
    pub(crate) fn fill_head(&self, size: usize) {
        if self.erases {
            self.clear(0..GRANULE_BYTES);
            return self.clear(canary::range(size, self.capacity()));
        }
        fill::write(self.slice_mut(0..GRANULE_BYTES));
    }

    /// Whether the block was never handed out, if it is free, and was not written to since, as far as its trailer and what was filled show.
    #[inline(always)]
    pub(crate) fn if_unused(&self) -> Option<bool> {
        self.unused_fields().map(Fields::is_fresh)
    }

    /// The trailer's fields, if it says that the block is free, and what was filled was not written to since.
    #[inline(always)]
    fn unused_fields(&self) -> Option<Fields> {
        let fields = Fields::decode_free(self.cell().load(Ordering::Acquire), self.words.trailer)?;
        if fields == Fields::FRESH {
            return Some(fields);
        }
        let fields = fields.counting_from(self.base);
        let size = fields.size();
        let is_unused = size <= self.capacity()
            && if self.erases {
                erase::is_clear(self.slice(0..self.capacity()))
            } else {
                fill::is_whole(size.max(fill::LEAST_BYTES), |at| self.word(at))
            };
        is_unused.then_some(fields)
    }

    /// Whether the block is free, and no byte of it that is looked at was written to since.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        let Some(fields) = self.unused_fields() else { return false };
        if fields.is_fresh() || self.erases {
            return true;
        }
        let (n, window) = self.window(fields.size());
        // SAFETY: the block has as many bytes before the trailer as a window, and this one ends before the trailer; the caller is the block's holder.
        let window = unsafe { &*window };
        // What was filled of the canary is none any more.
        canary::is_whole(window, n.min((fields.size() + n).saturating_sub(fill::LEAST_BYTES)), self.words.canary)
    }

    /// The trailer's fields, if it says that the program has the block, from functions of `family`, and if neither it nor the canary was written over.
    #[inline(always)]
    pub(crate) fn if_whole(&self, family: u32) -> Option<Fields> {
        let fields = Fields::decode_live(self.cell().load(Ordering::Acquire), self.words.trailer, family)?;
        let fields = fields.counting_from(self.base);
        if fields.size() > self.capacity() {
            return None;
        }
        self.has_whole_canary(fields.size()).then_some(fields)
    }

    /// Whether trailer and last bytes of canary are whole, as [`MarkedBlock::trailer`] and [`MarkedBlock::late_damage`] say, for the owner of the
    /// block's span.
    #[inline(always)]
    pub(crate) fn is_tail_whole(&self) -> bool {
        let Some(fields) = Fields::decode(self.cell().load(Ordering::Acquire), self.words.trailer) else {
            return false;
        };
        let Some(room) = self.capacity().checked_sub(fields.counting_from(self.base).size()) else { return false };
        // One that was never handed out has a size of 0 or the base, so it has room for more than a canary.
        // ThreadSanitizer takes what is read below for a race with what the block's holder writes.
        if room > canary::MOST_BYTES || (self.erases && fields.is_freed()) || cfg!(tsan) {
            return true;
        }
        let late = self.start.wrapping_add(self.capacity() - canary::LATE_BYTES).cast::<[AtomicU32; 2]>();
        // SAFETY: the bytes lie before the trailer, aligned to four. If they are the program's, which may write them meanwhile, nothing is made of them.
        let [low, high] = unsafe { &*late };
        let late = u64::from(low.load(Ordering::Relaxed)) | u64::from(high.load(Ordering::Relaxed)) << 32;
        canary::is_late_whole(late, room, self.words.canary)
    }

    /// The offset of the first byte of a freed block, of which the program had `size`, that was written since: what was filled, or canary. `is_own`:
    /// its span is this heap's, and was when the block was freed.
    pub(crate) fn freed_damage(&self, size: usize, is_own: bool, os_page_bytes: usize) -> Option<usize> {
        if self.erases {
            return erase::damage(self.slice(0..if is_own { self.capacity() } else { size }));
        }
        let filled = size.max(fill::LEAST_BYTES);
        if let Some(offset) = fill::damage(self.slice(0..filled), os_page_bytes) {
            return Some(offset);
        }
        let offset = self.damage_from(filled, size)?;
        // The OS pages of a free block but the first may have been purged, and read as zero then; no byte of a canary is zero.
        let start = self.start.addr();
        let is_purged = |at: usize| (start ^ (start + at)) >= os_page_bytes && self.slice(at..at + 1) == [0];
        let end = canary::range(size, self.capacity()).end;
        let damage = |from| self.damage_from(from, size);
        core::iter::successors(Some(offset), |&at| damage(at + 1).filter(|_| at + 1 < end)).find(|&at| !is_purged(at))
    }
}

#[cfg(test)]
mod tests;
