//! From calls to words.
//!
//! An address is coded as the distance from the one before in the same chunk, in granules of 16 bytes: programs allocate and free near where they
//! did before. Everything a word leaves open is as in the words before it: time, sequence number, thread.

use crate::event::{Event, Kind, What};
use crate::word::{More, Op, Word};
use core::cell::Cell;

/// Logarithm of the granule: addresses of blocks are multiples of 16 bytes.
pub(crate) const GRANULE_LOG2: u32 = 4;

/// Low bits of a size that are in the word of the allocation.
pub(crate) const SIZE_BITS: u32 = 15;

/// Sizes below this are whole in the word of the allocation.
pub const SMALL_BOUND: usize = 1 << SIZE_BITS;

/// Addresses of blocks are multiples of this, so an alignment up to it is not recorded.
pub const GRANULE_BYTES: usize = 1 << GRANULE_LOG2;

/// Bits of a distance in the word of an allocation.
const DISTANCE_BITS: u32 = crate::word::PAYLOAD_BITS - SIZE_BITS;

/// The most bytes that the words of one event have: sequence and time, address and block to be resized, size, alignment, failure, address and
/// the allocation; and, as a word is stored with eight bytes, those behind the last.
pub const EVENT_BYTES_MAX: usize = 80;

/// What words are relative to. A chunk begins with a new one. For one thread at a time.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    /// The granule of the last address.
    last: Cell<u64>,
    /// The last sequence number.
    sequence: Cell<u64>,
    /// The last time, in microseconds.
    time_us: Cell<u64>,
}

impl Encoder {
    /// For a chunk whose header has these.
    #[must_use]
    pub const fn new(sequence: u64, time_us: u64) -> Self {
        Self { last: Cell::new(0), sequence: Cell::new(sequence), time_us: Cell::new(time_us) }
    }

    /// Goes on to a chunk whose header has these.
    pub fn restart(&self, sequence: u64, time_us: u64) {
        self.last.set(0);
        self.sequence.set(sequence);
        self.time_us.set(time_us);
    }

    /// The last sequence number.
    #[inline(always)]
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// The time is `time_us` from here on; earlier than before is as before.
    #[inline]
    pub fn time(&self, time_us: u64, mut put: impl FnMut(Word)) {
        let before = self.time_us.get();
        if time_us > before {
            put(Word::new(Op::Time, time_us - before));
            self.time_us.set(time_us);
        }
    }

    /// The thread sees the sequence number `sequence` from here on, or, if `is_ticket`, the next event has taken it.
    #[inline]
    pub fn sequence_is(&self, sequence: u64, is_ticket: bool, mut put: impl FnMut(Word)) {
        let before = self.sequence.get();
        put(Word::new(Op::Sequence, sequence.saturating_sub(before) << 1 | u64::from(is_ticket)));
        self.sequence.set(before.max(sequence));
    }

    /// Thread `number` begins or ends.
    #[inline]
    pub fn thread(&self, number: u32, ends: bool, mut put: impl FnMut(Word)) {
        put(Word::new(Op::Thread, u64::from(number) << 1 | u64::from(ends)));
    }

    /// `block` was allocated for less than [`SMALL_BOUND`] bytes, without an alignment: the word that says so, if one is enough. Else nothing has
    /// changed.
    #[inline(always)]
    #[must_use]
    pub fn small_in_a_word(&self, kind: Kind, size: usize, block: usize) -> Option<Word> {
        debug_assert!(size >> SIZE_BITS == 0);
        let distance = self.near(block, DISTANCE_BITS)?;
        Some(Word::new(kind.op(), distance << SIZE_BITS | size as u64))
    }

    /// `block` was freed: the word that says so, if one is enough. Else nothing has changed.
    #[inline(always)]
    #[must_use]
    pub fn free_in_a_word(&self, block: usize) -> Option<Word> {
        Some(Word::new(Op::Free, self.near(block, crate::word::PAYLOAD_BITS)?))
    }

    /// `block` was allocated for `size` bytes, aligned to 2^`align_log2`; 0 if that failed.
    #[inline]
    pub fn allocate(&self, kind: Kind, size: u64, align_log2: u8, block: u64, mut put: impl FnMut(Word)) {
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
    pub fn moved(&self, block: usize, mut put: impl FnMut(Word)) {
        let distance = self.distance(block, crate::word::PAYLOAD_BITS, &mut put);
        put(Word::new(Op::Moved, distance));
    }

    /// `block` was freed.
    #[inline]
    pub fn free(&self, block: usize, mut put: impl FnMut(Word)) {
        let distance = self.distance(block, crate::word::PAYLOAD_BITS, &mut put);
        put(Word::new(Op::Free, distance));
    }

    /// A whole event, as a decoder returned it.
    pub fn event(&self, event: &Event, mut put: impl FnMut(Word)) {
        self.time(event.time_us, &mut put);
        if let Some(ticket) = event.ticket {
            self.sequence_is(ticket, true, &mut put);
        }
        if let What::Resize { from, .. } = event.what {
            self.moved(from as usize, &mut put);
        }
        if event.sequence > self.sequence.get() {
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

    /// The distance of `block` from the address before, with its sign in the lowest bit. If it has more than `bits` bits, a word with the address comes
    /// first.
    #[inline]
    fn distance(&self, block: usize, bits: u32, put: &mut impl FnMut(Word)) -> u64 {
        self.near(block, bits).unwrap_or_else(|| {
            let granule = block as u64 >> GRANULE_LOG2;
            self.last.set(granule);
            put(Word::new(Op::Address, granule));
            0
        })
    }

    /// The distance of `block` from the address before, if it has no more than `bits` bits. Else nothing has changed.
    #[inline(always)]
    fn near(&self, block: usize, bits: u32) -> Option<u64> {
        let granule = block as u64 >> GRANULE_LOG2;
        let difference = granule.wrapping_sub(self.last.get()) as i64;
        let distance = ((difference << 1) ^ (difference >> 63)) as u64;
        if distance >> bits != 0 {
            return None;
        }
        self.last.set(granule);
        Some(distance)
    }
}
