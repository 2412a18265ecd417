//! Allocation: find a list, take its head, give back what is left over.
//!
//! ```text
//! find   │ the lowest list in which every block fits, by two bit scans; its head is the block. None: the top, see `top.rs`
//! cut    │ | block ........................ |   →   | block | rest ............ |
//! relist │ the rest goes to the head of its own list
//! ```
//!
//! A block that is hardly longer than asked for is not cut: where it comes from a list near the first one searched, and where the rest could
//! not be a block.
//!
//! Cost: bounded, see the crate's documentation; only the last resort (no list above has a block, nor the top) looks at more than one.
//!
//! # Safety
//! Blocks come from the heap's own lists. A header is believed after its seal was compared: an overrun into the free block
//! is reported, not followed.
#![allow(unsafe_code)]

use crate::block::{Block, FREE, HEADER_BYTES, Header, LEAST_BLOCK_BYTES, PREV_FREE};
use crate::error::Error;
use crate::footer::{self, FOOTER_BYTES};
use crate::free_list::FreeLists;
use crate::mapping::{GRANULE, index_to_search};
use crate::policy::Policy;
use crate::tlsf::Tlsf;
use core::hint::cold_path;
use core::ptr::NonNull;

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    const BLOCK_EXTRA: usize = if P::FOOTER { HEADER_BYTES + FOOTER_BYTES } else { HEADER_BYTES };

    /// The largest request that could be served, in a region of [`Tlsf::MOST_REGION_BYTES`].
    pub const MOST_BYTES: usize = Self::MOST_REGION_BYTES - 2 * GRANULE - Self::BLOCK_EXTRA;

    /// The largest request, and block, that the lists are searched for: more would need the last list or one beyond it.
    const MOST_SEARCHED_BYTES: usize = Self::MOST_REGION_BYTES / 2;

    /// Gives out a block of at least `bytes` bytes at a multiple of `align`. Its contents are undefined.
    ///
    /// Alignments up to 16 cost nothing. A larger one needs a free block of `bytes + align + 40`.
    ///
    /// # Errors
    /// No bytes, an alignment that is not a power of two, more than any block could hold, no block large enough; or damage found
    /// in the block that would have been given out. The heap is as it was.
    ///
    /// # Complexity
    /// O(1); see [`Policy::WALK_MAX`] for the one exception.
    #[inline(always)]
    pub fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let (mut rare_bytes, mut rare_align) = (bytes, align);
        let below = align.wrapping_sub(1);
        if below < GRANULE && align & below == 0 && bytes.wrapping_sub(1) < Self::MOST_SEARCHED_BYTES {
            let need = Self::block_bytes(bytes);
            let least = index_to_search(need, SECOND);
            if let Some((index, block)) = self.lists.find(least) {
                // SAFETY: a listed block has a header; and every block of its list has `need` bytes or more.
                unsafe {
                    let header = block.header(self.free_sealer);
                    if header.is_whole_without(FREE | PREV_FREE) {
                        let payload = self.cut(block, Some((least, index)), header, need);
                        return Ok(self.give(payload, bytes));
                    }
                }
                // Another request that finds the same damaged block: so that nobody has to keep this one until here.
                (rare_bytes, rare_align) = (need - Self::BLOCK_EXTRA, GRANULE);
            } else if need <= self.top.bytes() && self.top.is_whole(self.sealer) {
                // SAFETY: the top has `need` bytes or more.
                unsafe {
                    let payload = self.cut_top(Header::TOP, need);
                    return Ok(self.give(payload, bytes));
                }
            }
        }
        Self::allocate_rarely(rare_bytes, rare_align, self)
    }

    /// Every other case: larger alignments, the last resort, and refusals. (In this order most of it is in place.)
    #[cold]
    #[inline(never)]
    fn allocate_rarely(bytes: usize, align: usize, heap: &mut Self) -> Result<NonNull<u8>, Error> {
        if !align.is_power_of_two() {
            return Err(Error::BadAlignment { align });
        }
        let need = Self::checked_block_bytes(bytes)?;
        if align > GRANULE {
            return heap.allocate_aligned(bytes, align, need);
        }
        let refused = Error::Exhausted { bytes, align };
        let (block, header) = heap.find_whole(need)?.ok_or(refused)?;
        // SAFETY: a free block with `need` bytes or more.
        unsafe {
            let payload = heap.cut_found(block, header, need);
            Ok(heap.give(payload, bytes))
        }
    }

    /// A free block of `size` bytes or more whose header is whole: by the lists, else the top, else by the last resort.
    fn find_whole(&self, size: usize) -> Result<Option<(Block, Header)>, Error> {
        let listed =
            if size <= Self::MOST_SEARCHED_BYTES { self.lists.find(index_to_search(size, SECOND)) } else { None };
        let found = match listed {
            Some((_, block)) => Some(block),
            None if size <= self.top.bytes() => Some(self.top.block()),
            // SAFETY: the lists hold free blocks of this heap.
            None => unsafe { self.lists.find_in_own_list(size, P::WALK_MAX, self.sealer) },
        };
        let Some(block) = found else { return Ok(None) };
        // SAFETY: a free block has a header.
        let header = unsafe { block.header(self.sealer) };
        let is_whole = if self.top.is_at(block) { header == Header::TOP } else { header.is_whole() };
        if is_whole { Ok(Some((block, header))) } else { Err(Self::diagnose(block.payload_address(), self)) }
    }

    /// As [`Tlsf::allocate`], with the first `bytes` bytes zero.
    ///
    /// # Errors
    /// As [`Tlsf::allocate`].
    ///
    /// # Complexity
    /// O(`bytes`), for the zeros.
    #[inline]
    pub fn allocate_zeroed(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let block = self.allocate(bytes, align)?;
        // SAFETY: the block has at least `bytes` bytes and nobody else knows it.
        unsafe { block.write_bytes(0, bytes) };
        Ok(block)
    }

    /// Size of the block that serves a request of 1 to [`Tlsf::MOST_BYTES`] bytes.
    #[inline(always)]
    fn block_bytes(bytes: usize) -> usize {
        // Rounded up by setting the low bits, which needs no long mask.
        let below = (bytes + Self::BLOCK_EXTRA - 1) | (GRANULE - 1);
        if below < LEAST_BLOCK_BYTES { LEAST_BLOCK_BYTES } else { below + 1 }
    }

    /// As [`Tlsf::block_bytes`], for any number.
    pub(crate) fn checked_block_bytes(bytes: usize) -> Result<usize, Error> {
        match bytes {
            0 => Err(Error::ZeroSize),
            1.. if bytes <= Self::MOST_BYTES => Ok(Self::block_bytes(bytes)),
            _ => Err(Error::TooLarge { bytes, most: Self::MOST_BYTES }),
        }
    }

    /// Makes the free block `block` a used one of `need` bytes, or somewhat more: see the file's header. Returns its payload.
    ///
    /// # Safety
    /// The block is listed, its header is `header`, and it has `need` bytes or more. If `found` is given, it is the first list that was
    /// searched and the one that the block heads; and its header, decoded as a free one, says nothing but its size.
    #[inline(always)]
    unsafe fn cut(&mut self, block: Block, found: Option<(usize, usize)>, header: Header, need: usize) -> NonNull<u8> {
        let size = header.size();
        let rest = size - need;
        // A footer is to stand right behind what was asked for.
        let is_near =
            !P::FOOTER && found.is_some_and(|(least, index)| FreeLists::<FIRST, SECOND>::is_near(least, index));
        // SAFETY: the block and the one behind it lie in a region; see the caller's obligations.
        unsafe {
            match found {
                Some((_, index)) => self.lists.pop(block, index),
                None => self.lists.remove(block),
            }
            if is_near || is_no_block(rest) {
                let next = block.after(size);
                block.set_header(header.used(size), self.sealer);
                next.set_header(next.header(self.sealer).without(PREV_FREE), self.sealer);
            } else {
                cold_path();
                let tail = block.after(need);
                block.set_header(header.used(need), self.sealer);
                tail.set_header(Header::new(rest, FREE), self.sealer);
                tail.after(rest).set_size_before(rest);
                self.lists.insert(tail, rest);
            }
            block.payload()
        }
    }

    /// As [`Tlsf::cut`], of a block in any list, or of the top.
    ///
    /// # Safety
    /// The block is free, its header is `header`, and it has `need` bytes or more.
    unsafe fn cut_found(&mut self, block: Block, header: Header, need: usize) -> NonNull<u8> {
        // SAFETY: the caller's obligations are those of the steps.
        unsafe { if self.top.is_at(block) { self.cut_top(header, need) } else { self.cut(block, None, header, need) } }
    }

    /// As [`Tlsf::cut`], of the top.
    ///
    /// # Safety
    /// The top has `need` bytes or more; its header is `header`.
    #[inline(always)]
    unsafe fn cut_top(&mut self, header: Header, need: usize) -> NonNull<u8> {
        let block = self.top.block();
        // SAFETY: the top has `need` bytes or more, so there is a block.
        unsafe {
            let size = self.top.take(need, self.sealer);
            block.set_header(header.used(size), self.sealer);
            block.payload()
        }
    }

    /// Writes the footer of a block just made used, if this heap has them; returns its payload.
    ///
    /// # Safety
    /// The block is used and serves a request for `bytes`.
    #[inline(always)]
    unsafe fn give(&self, payload: NonNull<u8>, bytes: usize) -> NonNull<u8> {
        if P::FOOTER {
            // SAFETY: as the caller says.
            unsafe {
                let block = Block::of_payload(payload);
                footer::write(block, block.header(self.sealer).size(), bytes, self.sealer);
            }
        }
        payload
    }

    /// Allocation at a multiple of more than the granule: finds a block with room to move in, and frees the gap in front.
    fn allocate_aligned(&mut self, bytes: usize, align: usize, need: usize) -> Result<NonNull<u8>, Error> {
        let refused = Error::Exhausted { bytes, align };
        let room = need.checked_add(align).and_then(|sum| sum.checked_add(LEAST_BLOCK_BYTES)).ok_or(refused)?;
        if room >= Self::MOST_REGION_BYTES {
            return Err(refused);
        }
        let (block, header) = self.find_whole(room)?.ok_or(refused)?;
        // SAFETY: the block is free and has `need + align + 32` bytes or more, so that the gap fits in front.
        unsafe {
            let aligned = self.skip_to(block, header.size(), align);
            let payload = self.cut_found(aligned, aligned.header(self.sealer), need);
            Ok(self.give(payload, bytes))
        }
    }

    /// Splits a free block so that the second part's payload is at a multiple of `align`; both parts are free.
    /// Returns the second part, or the whole block if it was aligned already.
    ///
    /// # Safety
    /// The block is free: of `size` bytes, or the top. It has `align + 2 * LEAST_BLOCK_BYTES` or more.
    unsafe fn skip_to(&mut self, block: Block, size: usize, align: usize) -> Block {
        let payload = block.payload_address();
        let aligned = freestone_base::align::up(payload, align);
        let gap = match aligned - payload {
            0 => 0,
            gap if gap < LEAST_BLOCK_BYTES => freestone_base::align::up(payload + LEAST_BLOCK_BYTES, align) - payload,
            gap => gap,
        };
        // SAFETY: both parts lie in the block; the gap is a block's size or more.
        unsafe {
            if gap == 0 {
                return block;
            }
            let second = block.after(gap);
            second.set_size_before(gap);
            if self.top.is_at(block) {
                self.top.take(gap, self.sealer);
                self.lists.insert(block, gap);
                second.set_header(Header::TOP.with(PREV_FREE), self.sealer);
            } else {
                self.lists.remove(block);
                self.lists.insert(block, gap);
                second.set_header(Header::new(size - gap, FREE | PREV_FREE), self.sealer);
                self.lists.insert(second, size - gap);
            }
            block.set_header(Header::new(gap, FREE), self.sealer);
            second
        }
    }
}

/// Whether a rest is too short to be a block of its own.
#[inline(always)]
fn is_no_block(rest: usize) -> bool {
    // So that this is not asked first: the processor would wait for the block's size where its list is answer enough.
    cold_path();
    rest < LEAST_BLOCK_BYTES
}
