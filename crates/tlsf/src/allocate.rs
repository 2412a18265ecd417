//! Allocation: find a list, take its head, cut off the remainder.
//!
//! ```text
//! find   │ the lowest list in which every block fits, by two bit scans; its head is the block. If there is none: the top, see `top.rs`
//! cut    │ | block ........................ |   →   | block | rest ............ |
//! relist │ the rest becomes the head of its own list
//! ```
//!
//! A block is not cut if it is a close fit (see `close_fit.rs`), or if the remainder could not be a block.
//!
//! Cost: bounded, see the crate's documentation. Only the last resort, when neither a list above nor the top has a block, reads more
//! than one block.
//!
//! # Safety
//! Blocks come from the heap's own lists and its top. The seal of a header is checked before its size is used: an overrun into
//! the free block is reported, and no size or link of that block is followed.
#![allow(unsafe_code)]

use crate::block::Block;
use crate::block_size::{GRANULE, HEADER_BYTES, LEAST_BLOCK_BYTES};
use crate::error::Error;
use crate::footer::{self, FOOTER_BYTES};
use crate::free_list::{Found, FreeLists};
use crate::header::{FREE, Header, PREV_FREE};
use crate::mapping::index_to_search;
use crate::policy::Policy;
use crate::region::REGION_OVERHEAD_BYTES;
use crate::tlsf::Tlsf;
use core::ptr::NonNull;
use freestone_base::branch::cold_path;

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Bytes of a used block that its owner must not write: header and footer.
    const BLOCK_EXTRA: usize = if P::FOOTER { HEADER_BYTES + FOOTER_BYTES } else { HEADER_BYTES };

    /// The largest request, in bytes, that a heap of this type can serve, in a region of [`Tlsf::MOST_REGION_BYTES`].
    ///
    /// ```
    /// use freestone_tlsf::{Error, Standard, Tlsf};
    ///
    /// type Small<'m> = Tlsf<'m, Standard, 10>;
    /// let too_large = Small::MOST_BYTES + 1;
    /// assert_eq!(Small::with_policy().allocate(too_large, 16), Err(Error::TooLarge { bytes: too_large, most: Small::MOST_BYTES }));
    /// ```
    pub const MOST_BYTES: usize = Self::MOST_REGION_BYTES - REGION_OVERHEAD_BYTES - Self::BLOCK_EXTRA;

    /// The largest request that [`Tlsf::allocate`] searches the lists for itself: a power of two, so that the comparison is a shift. Of a larger
    /// one, [`Tlsf::find_intact`] finds out whether there is a list in which every block fits.
    const MOST_SEARCHED_BYTES: usize = Self::MOST_REGION_BYTES / 2;

    /// Allocates a block of at least `bytes` bytes at a multiple of `align`. Its contents are undefined.
    ///
    /// Alignments up to 16 cost nothing. A larger one needs a free block that is, header included, `align + 32` bytes longer than the block: `bytes + 8`
    /// (in heaps with footers `bytes + 16`), rounded up to a multiple of 16, 32 at least.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 64)?;
    /// assert_eq!(block.addr().get() % 64, 0);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// The heap is unchanged after each.
    /// - [`Error::ZeroSize`], [`Error::BadAlignment`]: the size is 0, or the alignment is no power of two.
    /// - [`Error::TooLarge`]: no heap of this type could hold it.
    /// - [`Error::Exhausted`]: no free block of this heap is large enough.
    /// - [`Error::Overrun`], [`Error::Damaged`]: the free block that would have been used was overwritten.
    ///
    /// # Complexity
    /// O(1); see [`Policy::WALK_MAX`] for the one exception.
    // On a microcontroller the code is once there; elsewhere it is in each caller, without the call.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    pub fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let (mut rare_bytes, mut rare_align) = (bytes, align);
        let below = align.wrapping_sub(1);
        if below < GRANULE && align & below == 0 && bytes.wrapping_sub(1) < Self::MOST_SEARCHED_BYTES {
            let need = Self::block_bytes(bytes);
            let least = index_to_search(need, SECOND);
            if let Some((found, block)) = self.lists.find(least) {
                let header = block.header(self.free_sealer);
                if header.is_intact_without(FREE | PREV_FREE) {
                    // SAFETY: the block heads the list it was found in, where every block has `need` bytes or more; the header is intact.
                    let payload = unsafe { self.cut(block, Some(found), header, need) };
                    // SAFETY: `cut` made it a used block with room for `bytes`.
                    return Ok(unsafe { self.finish(payload, bytes) });
                }
                // An equivalent request, which finds the same damaged block: this one need not be kept in registers until here.
                (rare_bytes, rare_align) = (need - Self::BLOCK_EXTRA, GRANULE);
            } else if need <= self.top.bytes() && self.top.is_intact(self.sealer) {
                // SAFETY: the top has `need` bytes or more, and its header is intact.
                let payload = unsafe { self.cut_top(Header::TOP, need) };
                // SAFETY: `cut_top` made it a used block with room for `bytes`.
                return Ok(unsafe { self.finish(payload, bytes) });
            }
        }
        Self::allocate_rarely(rare_bytes, rare_align, self)
    }

    /// Every other case: larger alignments, requests above half of the longest region, the last resort, and refusals. (With the parameters in this order most are in their registers
    /// already.)
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
        let (block, header) = heap.find_intact(need)?.ok_or(refused)?;
        // SAFETY: the block is free, with this intact header, and has `need` bytes or more.
        let payload = unsafe { heap.cut_found(block, header, need) };
        // SAFETY: `cut_found` made it a used block with room for `bytes`.
        Ok(unsafe { heap.finish(payload, bytes) })
    }

    /// A free block of `size` bytes or more, with its intact header: from the lists, else the top, else by the last resort.
    fn find_intact(&self, size: usize) -> Result<Option<(Block, Header)>, Error> {
        let least = index_to_search(size, SECOND);
        // For a size above the least of the last list, that would be the list behind the last.
        let is_list = least.number() < FreeLists::<FIRST, SECOND>::NUMBERS.end;
        let listed = if is_list { self.lists.find(least) } else { None };
        let found = match listed {
            Some((_, block)) => Some(block),
            None if size <= self.top.bytes() => Some(self.top.block()),
            None => self.lists.find_in_own_list(size, P::WALK_MAX, self.sealer),
        };
        let Some(block) = found else { return Ok(None) };
        let header = block.header(self.sealer);
        let is_intact = if self.top.is_at(block) {
            header == Header::TOP
        } else {
            header.is_intact_without(PREV_FREE) && header.is_free()
        };
        if is_intact { Ok(Some((block, header))) } else { Err(Self::diagnose(block.payload_address(), self)) }
    }

    /// Allocates as [`Tlsf::allocate`] does, and sets the first `bytes` bytes to zero.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate_zeroed(100, 16)?;
    /// // SAFETY: the block has 100 bytes, all zero.
    /// assert_eq!(unsafe { block.read() }, 0);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tlsf::allocate`].
    ///
    /// # Complexity
    /// O(`bytes`), for the zeros.
    #[inline]
    pub fn allocate_zeroed(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let block = self.allocate(bytes, align)?;
        // SAFETY: the block was just allocated, with at least `bytes` bytes.
        unsafe { block.write_bytes(0, bytes) };
        Ok(block)
    }

    /// Size, in bytes, of the block that a request for `bytes` needs, 1 to [`Tlsf::MOST_BYTES`].
    #[inline(always)]
    fn block_bytes(bytes: usize) -> usize {
        // Rounds up by setting the low bits: that needs no 64-bit mask.
        let below = (bytes + Self::BLOCK_EXTRA - 1) | (GRANULE - 1);
        if below < LEAST_BLOCK_BYTES { LEAST_BLOCK_BYTES } else { below + 1 }
    }

    /// Size, in bytes, of the block that a request for `bytes` needs, whatever `bytes` is.
    pub(crate) fn checked_block_bytes(bytes: usize) -> Result<usize, Error> {
        match bytes {
            0 => Err(Error::ZeroSize),
            1.. if bytes <= Self::MOST_BYTES => Ok(Self::block_bytes(bytes)),
            _ => Err(Error::TooLarge { bytes, most: Self::MOST_BYTES }),
        }
    }

    /// Makes the free block `block` a used one of `need` bytes, or of a few more: see the module's header. Returns its payload.
    ///
    /// # Safety
    /// - The block is in a list, its intact header is `header`, and it has `need` bytes or more.
    /// - If `found` is given, the block heads the list `found.index`, and its header was decoded as that of a free block: it has no flag.
    #[inline(always)]
    unsafe fn cut(&mut self, block: Block, found: Option<Found>, header: Header, need: usize) -> NonNull<u8> {
        let size = header.size();
        let rest = size - need;
        // A footer must be right behind the requested bytes, so a heap with footers cuts every block.
        let is_close_fit = !P::FOOTER && found.is_some_and(FreeLists::<FIRST, SECOND>::is_close_fit);
        match found {
            // SAFETY: the block heads the list that it was found in.
            Some(found) => unsafe { self.lists.pop(block, found.index) },
            // SAFETY: the block is in a list.
            None => unsafe { self.lists.remove(block) },
        }
        if is_close_fit || is_no_block(rest) {
            // SAFETY: the header is intact, so the next header is `size` bytes further on.
            let next = unsafe { block.after(size) };
            block.set_header(header.used(size), self.sealer);
            next.set_header(next.header(self.sealer).without(PREV_FREE), self.sealer);
        } else {
            cold_path();
            // SAFETY: `need` is less than the block's size: the place is inside the block, and its header is written below.
            let tail = unsafe { block.after(need) };
            block.set_header(header.used(need), self.sealer);
            tail.set_header(Header::new(rest, FREE), self.sealer);
            // SAFETY: the rest ends where the block ended: at the next header.
            unsafe { tail.after(rest) }.set_size_before(rest);
            // SAFETY: the tail is free, has `rest` bytes, a block's size, and is in no list yet.
            unsafe { self.lists.insert(tail, rest) };
        }
        block.payload()
    }

    /// As [`Tlsf::cut`], of a block in any list, or of the top.
    ///
    /// # Safety
    /// - The block is in a list or is the top, its intact header is `header`, and it has `need` bytes or more.
    unsafe fn cut_found(&mut self, block: Block, header: Header, need: usize) -> NonNull<u8> {
        if self.top.is_at(block) {
            // SAFETY: the top has `need` bytes or more, and this header.
            unsafe { self.cut_top(header, need) }
        } else {
            // SAFETY: the block is in a list, has this header and `need` bytes or more.
            unsafe { self.cut(block, None, header, need) }
        }
    }

    /// As [`Tlsf::cut`], of the top.
    ///
    /// # Safety
    /// - The top has `need` bytes or more; its header is `header`.
    #[inline(always)]
    unsafe fn cut_top(&mut self, header: Header, need: usize) -> NonNull<u8> {
        let block = self.top.block();
        // SAFETY: the top has `need` bytes or more.
        let size = unsafe { self.top.cut(need, self.sealer) };
        block.set_header(header.used(size), self.sealer);
        block.payload()
    }

    /// Writes the footer of the used block at `payload`, if this heap has footers; returns the payload.
    ///
    /// # Safety
    /// - The block is used, its header is intact, and it has room for `bytes` bytes and a footer.
    #[inline(always)]
    unsafe fn finish(&self, payload: NonNull<u8>, bytes: usize) -> NonNull<u8> {
        if P::FOOTER {
            // SAFETY: the payload of a used block: its header is in front of it.
            let block = unsafe { Block::of_payload(payload) };
            // SAFETY: the block is used and has the size that its header says, with room for `bytes` and the footer.
            unsafe { footer::write(block, block.header(self.sealer).size(), bytes, self.sealer) };
        }
        payload
    }

    /// Allocates at a multiple of more than the granule: finds a block with room to move in, and leaves the gap in front free.
    fn allocate_aligned(&mut self, bytes: usize, align: usize, need: usize) -> Result<NonNull<u8>, Error> {
        let refused = Error::Exhausted { bytes, align };
        let room = need.checked_add(align).and_then(|sum| sum.checked_add(LEAST_BLOCK_BYTES)).ok_or(refused)?;
        if room >= Self::MOST_REGION_BYTES {
            return Err(refused);
        }
        let (block, header) = self.find_intact(room)?.ok_or(refused)?;
        // SAFETY: the block is free and has `need + align + LEAST_BLOCK_BYTES` bytes or more, and `need` is a block's size.
        let aligned = unsafe { self.skip_to(block, header.size(), align) };
        // SAFETY: what is left of the block is free, in a list or the top, and has `need` bytes or more.
        let payload = unsafe { self.cut_found(aligned, aligned.header(self.sealer), need) };
        // SAFETY: `cut_found` made it a used block with room for `bytes`.
        Ok(unsafe { self.finish(payload, bytes) })
    }

    /// Splits a free block so that the second part's payload is at a multiple of `align`; both parts are free.
    /// Returns the second part, or the whole block if it is aligned already.
    ///
    /// # Safety
    /// - The block is in a list and has `size` bytes, or is the top.
    /// - It has `align + 2 * LEAST_BLOCK_BYTES` bytes or more.
    unsafe fn skip_to(&mut self, block: Block, size: usize, align: usize) -> Block {
        let payload = block.payload_address();
        let aligned = freestone_base::align::up(payload, align);
        let gap = match aligned - payload {
            0 => return block,
            gap if gap < LEAST_BLOCK_BYTES => freestone_base::align::up(payload + LEAST_BLOCK_BYTES, align) - payload,
            gap => gap,
        };
        // SAFETY: the gap is less than `align + LEAST_BLOCK_BYTES`, so the place is inside the block; its header is written below.
        let second = unsafe { block.after(gap) };
        second.set_size_before(gap);
        if self.top.is_at(block) {
            // SAFETY: the top is longer than the gap.
            unsafe { self.top.cut(gap, self.sealer) };
            second.set_header(Header::TOP.with(PREV_FREE), self.sealer);
        } else {
            // SAFETY: the block is in a list.
            unsafe { self.lists.remove(block) };
            second.set_header(Header::new(size - gap, FREE | PREV_FREE), self.sealer);
        }
        block.set_header(Header::new(gap, FREE), self.sealer);
        // SAFETY: the gap is a block's size or more; it is free and in no list.
        unsafe { self.lists.insert(block, gap) };
        if !self.top.is_at(second) {
            // SAFETY: the second part has `size - gap` bytes, a block's size or more; it is free and in no list.
            unsafe { self.lists.insert(second, size - gap) };
        }
        second
    }
}

/// Whether a rest is too short to be a block.
#[inline(always)]
fn is_no_block(rest: usize) -> bool {
    // Evaluated second: otherwise the processor would wait for the block's size where the index of its list is enough to decide.
    cold_path();
    rest < LEAST_BLOCK_BYTES
}

#[cfg(test)]
mod tests;
