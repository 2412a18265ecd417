//! What a free block holds while it is out of its span: its link, and its mark; and chains of such blocks.
#![allow(unsafe_code)]
//!
//! ```text
//!  offset 0   link   the next block of its bin or chain, encoded with a key
//!         8   mark   MARK                        a program's data is that by chance only
//!        12   place  0                           in a bin
//!                    SUSPECT                     in transit, and was marked when it was freed: the owner finds out whether it was free
//!                    odd                         in transit, from when it is buffered; 8 bytes into a block that comes later are so many times 8 bytes
//!                                                away: the receiver prefetches them
//!                    twice a number              in transit, and so many blocks beside each other from this one on are: nothing is known of the others'
//!                                                contents (`thread::idle`)
//! ```
//!
//! `malloc` clears the mark. So a block that is freed and has it was freed before, or the program wrote the same number there: `free` leaves its
//! hot path, and `thread::double_free` finds out which. The mark needs no secrecy for that.
//!
//! A link to a block that the heap profile has chosen is its address and [`CHOSEN`]: the hot path takes that for a damaged link, and the allocation that would
//! take the block is sampled (`thread::profiling`). Only links of bins are such.
//!
//! A mark also says where the block is. If a block that comes out of a bin or an inbox has another mark than that place gives, the block was
//! freed again meanwhile, or the program wrote to it.
//!
//! # Safety
//! A free block has room for two words (`GRANULE_BYTES`), and its holder is the only one who reads or writes them. `is_marked` reads a block
//! that is about to be freed, whose contents the program may not have written: it reads as the processor does, so any contents are a number.

use crate::size_class::GRANULE_BYTES;
use crate::span::{Entry, View};
use core::mem::offset_of;
use core::ptr;
use freestone_base::bytes;
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::prefetch;

/// The mark of a free block: any number that is rare in programs, and as a 32-bit immediate operand is not extended by ones.
pub(crate) const MARK: u32 = 0x2D9B_71E5;

/// Where in a free block its mark is.
pub(crate) const MARK_OFFSET: usize = offset_of!(FreeNode, mark);

/// A place in a bin.
const IN_BIN: i32 = 0;

/// A place in transit: see the module header.
const SUSPECT: i32 = i32::MIN;

/// In the place of every block that is in transit and no suspect.
const IN_TRANSIT: i32 = 1;

/// What a place counts a stretch of blocks in: so it is even.
pub(crate) const STRETCH_UNIT: i32 = 2;

/// The end of a bin: no block has this address, and like a damaged link it fails the test for alignment.
pub(crate) const END_OF_BIN: *mut Node = ptr::without_provenance_mut(1);

/// What the address of a chosen block has added where the block is linked.
const CHOSEN: usize = GRANULE_BYTES / 2;

/// The layout of the first two words of a free block.
#[derive(Debug)]
#[repr(C)]
struct FreeNode {
    link: *mut Node,
    /// What a link of 32 bits lacks to a word.
    rest: [u8; size_of::<u64>() - size_of::<*mut Node>()],
    mark: u32,
    place: i32,
}

const _: () = assert!(size_of::<FreeNode>() <= GRANULE_BYTES);
const _: () = assert!(offset_of!(FreeNode, mark) == 8);
const _: () = assert!(MARK <= i32::MAX as u32);

/// What a block's mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// It is in a bin.
    InBin,
    /// It is in transit, or buffered by a thread that does not own its span.
    InTransit,
    /// It is in transit, and may have been free before.
    Suspect,
    /// It and those beside it, so many together, are in transit.
    Stretch(u32),
    /// It is none: the program has written to the block.
    No,
}

/// Writes the words of a block that goes into a bin before `next`, or before [`END_OF_BIN`].
///
/// # Safety
/// - The block is free and the caller's.
#[inline(always)]
pub(crate) unsafe fn write_in_bin(block: *mut Node, next: *mut Node, key: LinkKey) {
    let node = block.cast::<FreeNode>();
    // SAFETY: the block is free and the caller's, and has room for two words.
    unsafe { (*node).link = key.apply(next) };
    // SAFETY: as above; mark and place are written as one word, as `malloc` clears them.
    unsafe { second_word(block).write(mark_in(IN_BIN)) };
}

/// Clears the mark of a block that is handed out.
///
/// # Safety
/// - The block is free and the caller's.
#[inline(always)]
pub(crate) unsafe fn clear_mark(block: *mut Node) {
    // SAFETY: the block is free and the caller's, and its second word is its mark and place.
    unsafe { second_word(block).write(0) };
}

/// The mark and the place of a block, as one word.
#[inline(always)]
fn second_word(block: *mut Node) -> *mut u64 {
    block.cast::<u8>().wrapping_add(offset_of!(FreeNode, mark)).cast()
}

/// The second word of a block in a place.
const fn mark_in(place: i32) -> u64 {
    (place as u32 as u64) << 32 | MARK as u64
}

/// Writes the words of a block that goes into a remote-free buffer or an inbox, before `next`, or before null. It names `ahead`, the block that the receiver is
/// to prefetch: another one, or the block itself for none.
///
/// # Safety
/// - The block is free and the caller's.
#[inline(always)]
pub(crate) unsafe fn write_in_transit(block: *mut Node, next: *mut Node, ahead: *mut Node, key: LinkKey) {
    // SAFETY: the block is free and the caller's, and has room for two words.
    unsafe { (*block).next = key.apply(next) };
    // Blocks are aligned, so the bits of the mark and the lowest one of the place stay as they are. A distance that is too long is cut, and the receiver
    // prefetches some other address, which does no harm.
    let bytes = ahead.addr().wrapping_sub(block.addr()) as isize as u64;
    debug_assert!(bytes % GRANULE_BYTES as u64 == 0);
    // SAFETY: as above.
    unsafe { second_word(block).write((bytes << (32 - PLACE_SHIFT)) | mark_in(IN_TRANSIT)) };
}

/// A place in transit counts in units of 2 to this power bytes, half a granule: so it is odd.
const PLACE_SHIFT: u32 = 3;
const _: () = assert!(2 << PLACE_SHIFT == GRANULE_BYTES && SUSPECT & IN_TRANSIT == 0 && IN_BIN & IN_TRANSIT == 0);

/// Whether a block is marked as in transit, and no suspect.
///
/// # Safety
/// - The block is free and the caller's.
#[inline(always)]
#[must_use]
pub(crate) unsafe fn is_in_transit(block: *mut Node) -> bool {
    let node = block.cast::<FreeNode>();
    // SAFETY: the block is free and the caller's. A program that writes to it meanwhile breaks its contract, and is found by this.
    let mark = unsafe { (*node).mark };
    // SAFETY: as above.
    mark == MARK && unsafe { (*node).place } & IN_TRANSIT != 0
}

/// Whether a block is as [`write_in_transit`] wrote it with the same `next` and `key`, and some block ahead.
///
/// # Safety
/// - The block was written by [`write_in_transit`], and its span has been there since.
#[inline(always)]
#[must_use]
pub(crate) unsafe fn is_as_buffered(block: *mut Node, next: *mut Node, key: LinkKey) -> bool {
    // SAFETY: the block lies in a span, whose memory is committed.
    let link = unsafe { (*block).next };
    // SAFETY: as above.
    link == key.apply(next) && unsafe { is_in_transit(block) }
}

/// Marks a block that goes into an inbox, and had a mark when the program freed it.
///
/// # Safety
/// - The block is free and the caller's.
pub(crate) unsafe fn mark_suspect(block: *mut Node) {
    // SAFETY: the block is free and the caller's.
    unsafe { second_word(block).write(mark_in(SUSPECT)) };
}

/// Marks the first of `n` blocks that lie beside each other and go into an inbox. Nothing is written to the others.
///
/// # Safety
/// - The blocks are free and the caller's.
pub(crate) unsafe fn mark_stretch(block: *mut Node, n: u32) {
    debug_assert!(n > 0 && n < i32::MAX as u32 / STRETCH_UNIT as u32);
    // SAFETY: the block is free and the caller's.
    unsafe { second_word(block).write(mark_in(n as i32 * STRETCH_UNIT)) };
}

/// Whether a block that the program frees has the mark of a free one.
///
/// # Safety
/// - The block is the start of a small block, or was when the program allocated it.
#[inline(always)]
pub(crate) unsafe fn is_marked(block: *mut Node) -> bool {
    // SAFETY: the address is in a small span, whose memory is committed: this reads 4 bytes of the block's 16 or more. What the program has not
    // written there was written by `malloc`.
    unsafe { bytes::word_is::<{ offset_of!(FreeNode, mark) }, MARK>(block.cast()) }
}

/// Whether both the mark and the place of a block say that it is in a bin.
///
/// # Safety
/// - The block is free and the caller's.
#[inline(always)]
#[must_use]
pub(crate) unsafe fn is_in_bin(block: *mut Node) -> bool {
    // SAFETY: the block is free and the caller's. A program that writes to it meanwhile breaks its contract, and is found by this.
    unsafe { second_word(block).read() == mark_in(IN_BIN) }
}

/// What the mark of a block says, which came out of a bin or an inbox.
///
/// # Safety
/// - The block is free and the caller's.
#[inline]
#[must_use]
pub(crate) unsafe fn marked(block: *mut Node) -> Marked {
    let node = block.cast::<FreeNode>();
    // SAFETY: the block is free and the caller's. A program that writes to it meanwhile breaks its contract, and is found by this.
    let mark = unsafe { (*node).mark };
    // SAFETY: as above.
    let place = unsafe { (*node).place };
    match place {
        _ if mark != MARK => Marked::No,
        IN_BIN => Marked::InBin,
        SUSPECT => Marked::Suspect,
        _ if place & IN_TRANSIT != 0 => Marked::InTransit,
        _ if place > 0 => Marked::Stretch((place / STRETCH_UNIT) as u32),
        _ => Marked::No,
    }
}

/// The block that a block of a bin or chain links to.
///
/// # Safety
/// - The block is free and the caller's, and was linked with `key`.
#[inline(always)]
#[must_use]
pub(crate) unsafe fn next(block: *mut Node, key: LinkKey) -> *mut Node {
    // SAFETY: the block is free and the caller's, so its first word is its link.
    key.apply(unsafe { (*block).next })
}

/// The block `n` behind another in a bin, which has as many.
///
/// # Safety
/// - The blocks are free, the caller's, and were linked with `key` just now.
pub(crate) unsafe fn behind(block: *mut Node, n: u64, key: LinkKey) -> *mut Node {
    // SAFETY: this function's contract is that of `next`.
    (0..n).fold(block, |block, _| not_chosen(unsafe { next(block, key) }))
}

/// A link to a block of a bin that is chosen.
pub(crate) fn chosen(block: *mut Node) -> *mut Node {
    block.map_addr(|address| address | CHOSEN)
}

/// The block that a link of a bin leads to, chosen or not; the end stays the end.
#[inline(always)]
pub(crate) fn not_chosen(link: *mut Node) -> *mut Node {
    link.map_addr(|address| address & !CHOSEN)
}

/// Prefetches the block that a block in transit names.
///
/// # Safety
/// - The block is free and the caller's.
#[inline]
pub(crate) unsafe fn prefetch_ahead(block: *mut Node) {
    // SAFETY: the block is free and the caller's.
    let place = unsafe { (*block.cast::<FreeNode>()).place } as isize;
    prefetch::for_write(block.cast::<u8>().wrapping_offset(place << PLACE_SHIFT));
}

/// Whether an address can be a block's: the end of a bin is none.
#[inline(always)]
pub(crate) fn is_aligned(block: *mut Node) -> bool {
    block.addr() % GRANULE_BYTES == 0
}

/// Whether an address can be that of a free block of `class` in a bin or a chain: it is aligned, and lies in a small span of blocks that are as
/// large at least. A Rust program may free a block that was shrunk in place as one of a smaller class.
#[inline]
#[must_use]
pub(crate) fn is_plausible(block: *mut Node, class: usize, view: &View) -> bool {
    view.entry_of_block(block.addr()).and_then(Entry::class).is_some_and(|of| of >= class)
}

/// A chain of free blocks, linked through their first words; each link is encoded with the key of the chain's holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// First block, or null.
    pub first: *mut Node,
    /// Last block, or null.
    pub last: *mut Node,
    /// Number of blocks.
    pub len: u32,
}

impl Chain {
    /// No blocks.
    pub(crate) const EMPTY: Self = Self { first: ptr::null_mut(), last: ptr::null_mut(), len: 0 };

    /// Adds a block in front of the chain, whose links have this key.
    ///
    /// # Safety
    /// - The block is free and the caller's.
    #[inline]
    pub(crate) unsafe fn push(&mut self, block: *mut Node, key: LinkKey) {
        // SAFETY: the block is free and the caller's, so its first word may be written.
        unsafe { (*block).next = key.apply(self.first) };
        if self.first.is_null() {
            self.last = block;
        }
        self.first = block;
        self.len += 1;
    }
}

mod linked;
pub(crate) use linked::Linked;

#[cfg(test)]
mod tests;
