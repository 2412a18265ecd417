//! What a block of a watched span says about itself: its last four bytes.
//!
//! ```text
//!  start                     size                    bytes - 4     bytes
//!  │ what the program asked for │ canary (`canary`)        │ trailer  │
//!
//!  trailer   31         17 16    13 12   10 9         0    xored with 32 bits made of the secret and the block's address
//!           │ size        │ align  │ state │ 0         │    align: logarithm
//! ```
//!
//! Every block of a watched span has a trailer from the moment its OS page is carved: an overflow that reaches it is seen, and a block that is
//! free, or waits in a quarantine, is told from one that is out.
//!
//! Whoever writes over a trailer and does not know the number that it is mixed with passes for its author once in a thousand times: ten bits are
//! zero. They are in the bytes that an overflow reaches first: else one that stops there would make up a size without a canary.
//!
//! The sizes that blocks of the last class serve are just above what the size has room for. In these blocks it counts from a *base* ([`base_of`]).

use crate::size_class::{GRANULE_BYTES, SMALL_MAX};
use crate::span::family::Family;
use crate::span::secret::Secret;
use crate::span::{canary, fill};

/// Bytes of a trailer.
pub(crate) const TRAILER_BYTES: usize = size_of::<u32>();

/// The smallest block of a watched span: two links and a trailer do not overlap.
pub(crate) const LEAST_BLOCK_BYTES: usize = 2 * GRANULE_BYTES;

const _: () = assert!(SMALL_MAX <= 1 << 15);

/// What the sizes in trailers of blocks of `bytes` count from.
pub(crate) fn base_of(bytes: usize) -> usize {
    if bytes > SMALL_MAX { GRANULE_BYTES } else { 0 }
}

const _: () = assert!(LEAST_BLOCK_BYTES - TRAILER_BYTES >= canary::MOST_BYTES);
const _: () = assert!(LEAST_BLOCK_BYTES - TRAILER_BYTES >= fill::LEAST_BYTES);

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
}

/// A trailer as a number, for those who look at a part of it, and what its size counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    bits: u32,
    base: usize,
}

/// The states that no family has, as a trailer has them.
const FRESH: u32 = 0;
const FREED: u32 = 1;

/// Where the fields begin.
const STATE_AT: u32 = 10;
const ALIGN_AT: u32 = 13;
/// See [`STATE_AT`].
const SIZE_AT: u32 = 17;

const ZERO: u32 = (1 << STATE_AT) - 1;
const STATE: u32 = 7 << STATE_AT;
const ALIGN: u32 = 15 << ALIGN_AT;
const SIZE: u32 = u32::MAX << SIZE_AT;

impl Fields {
    /// Those of [`Trailer::FRESH`].
    pub(super) const FRESH: Self = Self { bits: 0, base: 0 };

    /// Those of a trailer whose size counts from 0.
    #[inline(always)]
    pub(crate) fn of(trailer: Trailer) -> Self {
        Self::with_base(trailer, 0)
    }

    /// Those of a trailer whose size counts from a base.
    #[inline(always)]
    pub(crate) fn with_base(trailer: Trailer, base: usize) -> Self {
        let state = match trailer.state {
            State::Fresh => FRESH,
            State::Freed => FREED,
            State::Live(family) => family as u32,
        };
        // Nothing was asked for of a block that is fresh, whatever its base.
        let size = trailer.size.saturating_sub(base) as u32;
        Self { bits: size << SIZE_AT | state << STATE_AT | trailer.align_log2 << ALIGN_AT, base }
    }

    /// The same number, with a size that counts from a base.
    #[inline(always)]
    pub(super) fn counting_from(self, base: usize) -> Self {
        Self { base, ..self }
    }

    /// Those of a live block for whose alignment nothing was asked.
    #[inline(always)]
    pub(crate) fn live(family: Family, size: usize) -> Self {
        Self::of(Trailer { state: State::Live(family), size, align_log2: 0 })
    }

    /// As they are stored in a block whose trailer is mixed with `word`.
    #[inline(always)]
    pub(super) fn encode(self, word: u32) -> u32 {
        self.bits ^ word
    }

    /// The trailer that has these; `None` if its state is none.
    #[inline(always)]
    pub(crate) fn trailer(self) -> Option<Trailer> {
        let state = match self.state() {
            FRESH => State::Fresh,
            FREED => State::Freed,
            family => State::Live(Family::of(family)?),
        };
        let size = if state == State::Fresh { self.size() - self.base } else { self.size() };
        Some(Trailer { state, size, align_log2: self.align_log2() })
    }

    /// Which functions free the block, if the program has it.
    pub(crate) fn family(self) -> Option<Family> {
        Family::of(self.state())
    }

    /// What is stored in a block whose trailer is mixed with `word`; `None` if it was written over.
    #[inline(always)]
    pub(super) fn decode(stored: u32, word: u32) -> Option<Self> {
        let fields = stored ^ word;
        (fields & ZERO == 0).then_some(Self { bits: fields, base: 0 })
    }

    /// As [`Fields::decode`], of a block that functions of `family` allocated.
    #[inline(always)]
    pub(super) fn decode_live(stored: u32, word: u32, family: u32) -> Option<Self> {
        let fields = stored ^ word;
        (fields & !(SIZE | ALIGN) == family << STATE_AT && family > FREED).then_some(Self { bits: fields, base: 0 })
    }

    /// As [`Fields::decode`], of a block that is free: nothing else is known of one that was never handed out.
    #[inline(always)]
    pub(super) fn decode_free(stored: u32, word: u32) -> Option<Self> {
        let fields = stored ^ word;
        if fields == Self::FRESH.bits {
            return Some(Self::FRESH);
        }
        (fields & (ZERO | STATE) == FREED << STATE_AT).then_some(Self { bits: fields, base: 0 })
    }

    /// As it is stored if the block is freed, which is a live one of the family with this number.
    #[inline(always)]
    pub(super) fn encode_freed(self, family: u32, word: u32) -> u32 {
        debug_assert!(self.state() == family);
        self.bits ^ (family ^ FREED) << STATE_AT ^ word
    }

    /// The state, as trailers have it: the number of the family, if the program has the block.
    #[inline(always)]
    pub(crate) fn state(self) -> u32 {
        (self.bits & STATE) >> STATE_AT
    }

    /// Whether the block was never handed out.
    #[inline(always)]
    pub(super) fn is_fresh(self) -> bool {
        self.state() == FRESH
    }

    /// Whether the block was freed.
    #[inline(always)]
    pub(super) fn is_freed(self) -> bool {
        self.state() == FREED
    }

    /// Bytes that the program asked for.
    #[inline(always)]
    pub(crate) fn size(self) -> usize {
        self.base + (self.bits >> SIZE_AT) as usize
    }

    /// Logarithm of the alignment that the program asked for.
    #[inline(always)]
    pub(crate) fn align_log2(self) -> u32 {
        (self.bits & ALIGN) >> ALIGN_AT
    }
}

/// Whether the trailer of a block of another process says that it is free: the secret there, the block's address there, and its contents.
#[must_use]
pub fn is_free_by_trailer(secret: [u64; 2], start: u64, contents: &[u8]) -> bool {
    let word = Secret::of(secret).words(start as usize).trailer;
    contents.last_chunk().is_some_and(|trailer| Fields::decode_free(u32::from_ne_bytes(*trailer), word).is_some())
}

#[cfg(test)]
mod tests;
