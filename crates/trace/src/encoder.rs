//! From calls to words.
//!
//! An address is coded as the distance from the one before in the same chunk, in granules of 16 bytes: programs allocate and free near where they
//! did before. Everything a word leaves open is as in the words before it: time, sequence number, thread.

use crate::event::{Event, Kind, What};
use crate::word::{More, Op, Word};

/// Logarithm of the granule: addresses of blocks are multiples of 16 bytes.
pub(crate) const GRANULE_LOG2: u32 = 4;

/// Low bits of a size that are in the word of the allocation.
pub(crate) const SIZE_BITS: u32 = 15;

/// Bits of a distance in the word of an allocation.
const DISTANCE_BITS: u32 = crate::word::PAYLOAD_BITS - SIZE_BITS;

/// The most bytes that the words of one event have: sequence and time, address and block to be resized, size, alignment, failure, address and
/// the allocation; and, as a word is stored with eight bytes, those behind the last.
pub const EVENT_BYTES_MAX: usize = 80;

/// What words are relative to. A chunk begins with a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoder {
    /// The granule of the last address.
    last: u64,
    /// The last sequence number.
    sequence: u64,
    /// The last time, in microseconds.
    time_us: u64,
}

impl Encoder {
    /// For a chunk whose header has these.
    #[inline]
    #[must_use]
    pub const fn new(sequence: u64, time_us: u64) -> Self {
        Self { last: 0, sequence, time_us }
    }

    /// The last sequence number.
    #[inline(always)]
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The time is `time_us` from here on; earlier than before is as before.
    #[inline]
    pub fn time(&mut self, time_us: u64, mut put: impl FnMut(Word)) {
        if time_us > self.time_us {
            put(Word::new(Op::Time, time_us - self.time_us));
            self.time_us = time_us;
        }
    }

    /// The thread sees the sequence number `sequence` from here on, or, if `is_ticket`, the next event has taken it.
    #[inline]
    pub fn sequence_is(&mut self, sequence: u64, is_ticket: bool, mut put: impl FnMut(Word)) {
        put(Word::new(Op::Sequence, sequence.saturating_sub(self.sequence) << 1 | u64::from(is_ticket)));
        self.sequence = self.sequence.max(sequence);
    }

    /// Thread `number` begins or ends.
    #[inline]
    pub fn thread(&mut self, number: u32, ends: bool, mut put: impl FnMut(Word)) {
        put(Word::new(Op::Thread, u64::from(number) << 1 | u64::from(ends)));
    }

    /// `block` was allocated for less than 2^15 bytes, without an alignment.
    #[inline(always)]
    pub fn allocate_small(&mut self, kind: Kind, size: usize, block: usize, mut put: impl FnMut(Word)) {
        debug_assert!(size >> SIZE_BITS == 0);
        let distance = self.distance(block, DISTANCE_BITS, &mut put);
        put(Word::new(kind.op(), distance << SIZE_BITS | size as u64));
    }

    /// `block` was allocated for `size` bytes, aligned to 2^`align_log2`; 0 if that failed.
    #[inline]
    pub fn allocate(&mut self, kind: Kind, size: u64, align_log2: u8, block: u64, mut put: impl FnMut(Word)) {
        if size >> SIZE_BITS != 0 {
            put(Word::new(Op::Size, size >> SIZE_BITS));
        }
        if align_log2 != 0 {
            put(Word::new(Op::More, u64::from(align_log2) << 1 | More::Align as u64));
        }
        let distance = if block == 0 {
            put(Word::new(Op::More, More::Failed as u64));
            0
        } else {
            self.distance(block as usize, DISTANCE_BITS, &mut put)
        };
        put(Word::new(kind.op(), distance << SIZE_BITS | (size & ((1 << SIZE_BITS) - 1))));
    }

    /// The next allocation resizes `block`.
    #[inline]
    pub fn moved(&mut self, block: usize, mut put: impl FnMut(Word)) {
        let distance = self.distance(block, crate::word::PAYLOAD_BITS, &mut put);
        put(Word::new(Op::Moved, distance));
    }

    /// `block` was freed.
    #[inline(always)]
    pub fn free(&mut self, block: usize, mut put: impl FnMut(Word)) {
        let distance = self.distance(block, crate::word::PAYLOAD_BITS, &mut put);
        put(Word::new(Op::Free, distance));
    }

    /// A whole event, as a decoder returned it.
    pub fn event(&mut self, event: &Event, mut put: impl FnMut(Word)) {
        self.time(event.time_us, &mut put);
        if let Some(ticket) = event.ticket {
            self.sequence_is(ticket, true, &mut put);
        }
        if let What::Resize { from, .. } = event.what {
            self.moved(from as usize, &mut put);
        }
        if event.sequence > self.sequence {
            self.sequence_is(event.sequence, false, &mut put);
        }
        match event.what {
            What::Begin => self.thread(event.thread, false, put),
            What::End => self.thread(event.thread, true, put),
            What::Allocate { kind, size, align_log2, block } => self.allocate(kind, size, align_log2, block, put),
            What::Resize { size, block, .. } => self.allocate(Kind::C, size, 0, block, put),
            What::Free { block } => self.free(block as usize, put),
        }
    }

    /// The distance of `block` from the address before, with its sign in the lowest bit. If it has more than `bits` bits, a word with the address comes first.
    #[inline(always)]
    fn distance(&mut self, block: usize, bits: u32, put: &mut impl FnMut(Word)) -> u64 {
        let granule = block as u64 >> GRANULE_LOG2;
        let difference = granule.wrapping_sub(self.last) as i64;
        self.last = granule;
        let distance = ((difference << 1) ^ (difference >> 63)) as u64;
        if distance >> bits == 0 {
            return distance;
        }
        put(Word::new(Op::Address, granule));
        0
    }
}
