//! One thread's calls, as words in a chunk.
#![allow(unsafe_code)]
//!
//! ```text
//!  chunk   header │ word word word … │ zero                                  │ room for one event more │
//!                                    ▲ cursor        ▲ look                  ▲ limit
//! ```
//!
//! An event needs one comparison: does the cursor lie before `look`? There the clock is read, and, at the limit, the next chunk begun. How far `look` lies
//! from the cursor adapts to the thread: one that calls often reads the clock once in [`STRIDE_MAX`] bytes, one that calls seldom at every call.
//!
//! The chunk stays mapped. When it is full, a copy of it is added to the file, and the next one begins in its place: a page that is written costs a tenth of one
//! that is mapped and faulted in. Between the two steps the file has the chunk twice, and a reader takes one.
//!
//! Invariants: behind `limit`, and so behind the cursor wherever `cursor < look`, there is room for an event; what lies behind the cursor is zero.
//! Cost: two dozen instructions an event; seven system calls a chunk.
//!
//! # Safety
//! The chunk is mapped from [`TraceFile::next_chunk`] to [`Recorder::leave`], and written by the recorder's thread only. A thread is not interrupted by its own events:
//! while it records, signal handlers' calls are not recorded (`thread::recorded`).

use crate::config::path_value::PathValue;
use crate::record::trace_file::{MappedChunk, TraceFile};
use core::cell::Cell;
use core::ptr;
use freestone_os::growing_file;
use freestone_trace::chunk::{self, Header};
use freestone_trace::encoder::{EVENT_BYTES_MAX, GRANULE_BYTES};
use freestone_trace::word::Word;
use freestone_trace::{Encoder, Kind};

/// Length of a chunk: an event costs little of the system calls that a chunk needs, and a thousand threads do not fill a disk.
const CHUNK_BYTES: usize = 64 << 10;

/// Most bytes of events between two looks at the clock.
const STRIDE_MAX: usize = 512;

/// Looks at the clock should be about this many microseconds apart: then they cost less than a hundredth.
const LOOK_US: u64 = 10;

/// See the module header.
pub(crate) struct Recorder {
    cursor: Cell<*mut u8>,
    /// Where the clock is read next.
    look: Cell<*const u8>,
    encoder: Encoder,
    /// Where the chunk has no room for an event any more.
    limit: Cell<*const u8>,
    chunk: Cell<MappedChunk>,
    /// Bytes between two looks at the clock.
    stride: Cell<usize>,
    looked_us: Cell<u64>,
    number: Cell<u32>,
    /// Chunks before the next one.
    place: Cell<u64>,
    thread: Cell<u32>,
}

/// No chunk.
const NO_CHUNK: MappedChunk = MappedChunk { start: ptr::null_mut(), bytes: 0 };

/// What a program asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) size: usize,
    /// A power of two; 1 if nothing was asked for.
    pub(crate) align: usize,
}

/// A block that a program passed to be resized.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resized {
    pub(crate) block: *mut u8,
    /// The sequence number that the call took, if it took one.
    pub(crate) ticket: Option<u64>,
}

impl Recorder {
    /// Without a chunk.
    pub(crate) const fn new() -> Self {
        Self {
            cursor: Cell::new(ptr::null_mut()),
            look: Cell::new(ptr::null()),
            encoder: Encoder::new(0, 0),
            limit: Cell::new(ptr::null()),
            chunk: Cell::new(NO_CHUNK),
            stride: Cell::new(0),
            looked_us: Cell::new(0),
            number: Cell::new(0),
            place: Cell::new(0),
            thread: Cell::new(0),
        }
    }

    /// Gives a new recorder its number.
    pub(crate) fn begin(&self, trace: &TraceFile) {
        self.number.set(trace.number_recorder());
    }

    /// Records that `block` was allocated for less than 2^15 bytes, without an alignment, if that takes one word. Else nothing has changed.
    #[inline(always)]
    pub(crate) fn allocated_in_a_word(&self, trace: &TraceFile, kind: Kind, size: usize, block: *mut u8) -> bool {
        self.is_ready(trace) && self.put_if(self.encoder.small_in_a_word(kind, size, block.addr()))
    }

    /// Records that `block` was allocated, or, if it is null, was not. `false` if there is no trace any more.
    pub(crate) fn allocated(&self, to: Destination<'_>, kind: Kind, what: Asked, block: *mut u8) -> bool {
        self.resized_or_allocated(to, kind, None, what, block)
    }

    /// Records that `block` is freed by a call that took no ticket, if that takes one word. Else nothing has changed.
    #[inline(always)]
    pub(crate) fn freed_in_a_word(&self, trace: &TraceFile, block: *mut u8) -> bool {
        self.is_ready(trace) && self.put_if(self.encoder.free_in_a_word(block.addr()))
    }

    /// Records that `block` is freed by a call that took `ticket`, if it took one. `false` if there is no trace any more.
    pub(crate) fn freed(&self, to: Destination<'_>, ticket: Option<u64>, block: *mut u8) -> bool {
        if !self.has_room(to) {
            return to.trace.is_on();
        }
        match ticket {
            None => self.see(to.trace.sequence()),
            Some(ticket) => self.took(ticket),
        }
        self.encoder.free(block.addr(), |word| self.put(word));
        true
    }

    /// Records that `from` was resized by a call that took `ticket`, if it took one, to what is `block` now, or, if that is null, was not. `false` if
    /// there is no trace any more.
    pub(crate) fn resized(&self, to: Destination<'_>, from: Resized, what: Asked, block: *mut u8) -> bool {
        self.resized_or_allocated(to, Kind::C, Some(from), what, block)
    }

    /// Records that a thread begins, or that it ends.
    pub(crate) fn thread(&self, to: Destination<'_>, number: u32, ends: bool) {
        self.thread.set(number);
        if self.has_room(to) {
            self.took(to.trace.take_sequence());
            self.encoder.thread(number, ends, |word| self.put(word));
        }
    }

    /// What is recorded from now on is thread `number`'s, without an event that says so.
    pub(crate) fn thread_is(&self, number: u32) {
        self.thread.set(number);
    }

    /// Leaves the chunk as it is, in a forked child: the parent goes on in it.
    pub(crate) fn leave(&self, to: Destination<'_>) {
        let MappedChunk { start, bytes } = self.chunk.replace(NO_CHUNK);
        if !start.is_null() {
            // SAFETY: the chunk was mapped with this length, and the recorder has no other pointer to it after the next lines.
            unsafe { growing_file::unmap(start, bytes) };
        }
        self.close();
        self.place.set(0);
        self.number.set(to.trace.number_recorder());
    }

    #[cold]
    #[inline(never)]
    fn resized_or_allocated(
        &self,
        to: Destination<'_>,
        kind: Kind,
        from: Option<Resized>,
        what: Asked,
        block: *mut u8,
    ) -> bool {
        if !self.has_room(to) {
            return to.trace.is_on();
        }
        if let Some(Resized { block, ticket }) = from {
            if let Some(ticket) = ticket {
                self.took(ticket);
            }
            self.encoder.moved(block.addr(), |word| self.put(word));
        }
        self.see(to.trace.sequence());
        let align_log2 = if what.align > GRANULE_BYTES { what.align.trailing_zeros() as u8 } else { 0 };
        let (size, block) = (what.size as u64, block.addr() as u64);
        self.encoder.allocate(kind, size, align_log2, block, |word| self.put(word));
        true
    }

    /// Whether the chunk has room for an event: now, if not before. `false` if there is none.
    #[inline(always)]
    fn has_room(&self, to: Destination<'_>) -> bool {
        self.cursor.get().cast_const() < self.look.get() || self.look(to)
    }

    /// Notes that the sequence number has changed, if it has.
    fn see(&self, sequence: u64) {
        if sequence != self.encoder.sequence() {
            self.encoder.sequence_is(sequence, false, |word| self.put(word));
        }
    }

    /// Notes that the event took a sequence number.
    fn took(&self, ticket: u64) {
        self.encoder.sequence_is(ticket, true, |word| self.put(word));
    }

    /// Whether an event can be one word: there is room, the clock need not be read, and the sequence number is that of the event before.
    #[inline(always)]
    fn is_ready(&self, trace: &TraceFile) -> bool {
        self.cursor.get().cast_const() < self.look.get() && trace.sequence() == self.encoder.sequence()
    }

    /// Adds a word, if there is one.
    #[inline(always)]
    fn put_if(&self, word: Option<Word>) -> bool {
        word.map(|word| self.put(word)).is_some()
    }

    /// Adds a word.
    #[inline(always)]
    fn put(&self, word: Word) {
        let cursor = self.cursor.get();
        // SAFETY: the cursor lay before `look` at the start of this event, so the chunk has room for all of the event's words.
        unsafe { cursor.cast::<[u8; 8]>().write(word.bits.to_le_bytes()) };
        self.cursor.set(cursor.wrapping_add(word.len));
    }

    /// Reads the clock, and goes on to the next chunk if this one is full. `false` if there is none.
    #[cold]
    #[inline(never)]
    fn look(&self, to: Destination<'_>) -> bool {
        let now_us = to.trace.now_us();
        let is_full = self.cursor.get().cast_const() >= self.limit.get();
        if is_full && !self.next_chunk(to, now_us) {
            return false;
        }
        self.encoder.time(now_us, |word| self.put(word));
        let passed = now_us - self.looked_us.replace(now_us).min(now_us);
        let stride = match self.stride.get() {
            stride if passed > 4 * LOOK_US => stride / 4,
            stride if passed < LOOK_US => (stride * 2).clamp(8, STRIDE_MAX),
            stride => stride,
        };
        self.stride.set(stride);
        self.look.set(self.cursor.get().wrapping_add(stride.max(1)).cast_const().min(self.limit.get()));
        true
    }

    /// Begins the next chunk: in the place of the one that is full, if there is one. `false` if there is no trace any more.
    #[cold]
    #[inline(never)]
    fn next_chunk(&self, to: Destination<'_>, now_us: u64) -> bool {
        let place = self.place.get();
        let header = Header {
            len: CHUNK_BYTES as u32,
            recorder: self.number.get(),
            thread: self.thread.get(),
            place,
            time_us: now_us,
            sequence: to.trace.sequence(),
        };
        if self.chunk.get().start.is_null() {
            let Some(chunk) = to.trace.next_chunk(to.path, CHUNK_BYTES) else { return false };
            self.chunk.set(chunk);
        } else if !to.trace.is_on() || !self.empty(to) {
            return false;
        }
        let MappedChunk { start, bytes } = self.chunk.get();
        // SAFETY: the chunk is mapped, longer than a header, and this recorder's alone.
        unsafe { start.cast::<[u8; chunk::HEADER_BYTES]>().write(header.to_bytes()) };
        self.place.set(place + 1);
        self.cursor.set(start.wrapping_add(chunk::HEADER_BYTES));
        self.limit.set(start.wrapping_add(bytes - 2 * EVENT_BYTES_MAX));
        self.encoder.restart(header.sequence, now_us);
        true
    }

    /// Seals the chunk, adds a copy of it to the file, and makes its words zero. `false`, and they stay, if the file cannot grow.
    fn empty(&self, to: Destination<'_>) -> bool {
        let MappedChunk { start, bytes } = self.chunk.get();
        let len = self.cursor.get().addr() - start.addr();
        self.close();
        // SAFETY: the chunk is mapped, with this length, and this recorder's alone.
        let whole = unsafe { core::slice::from_raw_parts_mut(start, bytes) };
        chunk::seal(whole, len);
        if !to.trace.append(whole) {
            return false;
        }
        // Before the header changes: a process that is killed in between leaves the copy, and here what is known for a part of it.
        whole.iter_mut().skip(chunk::HEADER_BYTES).for_each(|byte| *byte = 0);
        true
    }

    /// Adds nothing to the chunk any more.
    fn close(&self) {
        self.cursor.set(ptr::null_mut());
        self.look.set(ptr::null());
        self.limit.set(ptr::null());
    }
}

/// Where a recorder's events go.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    /// The file.
    pub(crate) trace: &'a TraceFile,
    /// Its name, as the option has it.
    pub(crate) path: &'a PathValue,
}

#[cfg(test)]
mod tests;
