//! What each thread of a replay does: a file that is read in small parts while the replay runs, so that the replay itself needs no heap.
//!
//! ```text
//!  header of 48 B │ per thread: offset, number of records │ records of thread 0 │ records of thread 1 │ …
//!  record  operation, logarithm of the alignment (1 B each), 2 B, slot (4 B), size (8 B), size before (8 B)
//! ```
//!
//! A block has a slot while it is live. A thread that passes the turn, or a block, to another is waited for: the record [`Op::Wait`] names the thread and the
//! number of its records that have to be done.

use crate::trace::timeline::{Call, Timeline};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// What a plan begins with.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"FSplan\0\x01");

/// Length of a record.
pub(crate) const RECORD_BYTES: usize = 24;

/// Length of the header.
pub(crate) const HEADER_BYTES: usize = 48;

/// What a record does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// Allocates a block into the slot.
    Allocate = 1,
    /// Allocates a block of zeros into the slot.
    AllocateZeroed = 2,
    /// Resizes the block of the slot.
    Resize = 3,
    /// Frees the block of the slot.
    Free = 4,
    /// Waits until thread `slot` has done `size` records.
    Wait = 5,
    /// Starts thread `slot`.
    Start = 6,
}

impl Op {
    /// The operation with this number.
    pub(crate) fn of(number: u8) -> Option<Self> {
        [Self::Allocate, Self::AllocateZeroed, Self::Resize, Self::Free, Self::Wait, Self::Start]
            .into_iter()
            .find(|&op| op as u8 == number)
    }
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) op: Op,
    pub(crate) align_log2: u8,
    pub(crate) slot: u32,
    pub(crate) size: u64,
    /// The size of the block before it is resized or freed.
    pub(crate) before: u64,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.op as u8;
        bytes[1] = self.align_log2;
        bytes[4..8].copy_from_slice(&self.slot.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.size.to_le_bytes());
        bytes[16..].copy_from_slice(&self.before.to_le_bytes());
        bytes
    }

    /// The record in `bytes`, if it is one.
    pub(crate) fn read(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let long = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Some(Self {
            op: Op::of(bytes[0])?,
            align_log2: bytes[1],
            slot: long(4) as u32,
            size: long(8),
            before: long(16),
        })
    }
}

/// How the threads of a replay are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// They take turns, as in the trace.
    Turns,
    /// A thread waits only for the blocks that others pass to it.
    Free,
}

/// What each thread does.
pub(crate) struct Plan {
    pub(crate) threads: Vec<Vec<Record>>,
    pub(crate) n_slots: u32,
    pub(crate) operations: u64,
}

impl Plan {
    /// The plan of a trace.
    pub(crate) fn of(timeline: &Timeline, order: Order) -> Self {
        let mut planner =
            Planner { order, blocks: vec![Slot::default(); timeline.n_blocks as usize], ..Planner::default() };
        for step in &timeline.steps {
            let thread = planner.turn_to(step.thread);
            planner.plan(thread, step.call);
        }
        Self { threads: planner.threads, n_slots: planner.n_slots, operations: planner.operations }
    }

    /// Writes the plan into a new file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, file: File) -> io::Result<()> {
        let mut file = BufWriter::new(file);
        let n_records: usize = self.threads.iter().map(Vec::len).sum();
        let header = [MAGIC, self.threads.len() as u64, self.n_slots.into(), n_records as u64, self.operations, 0];
        for number in header {
            file.write_all(&number.to_le_bytes())?;
        }
        let mut offset = (HEADER_BYTES + 16 * self.threads.len()) as u64;
        for records in &self.threads {
            file.write_all(&offset.to_le_bytes())?;
            file.write_all(&(records.len() as u64).to_le_bytes())?;
            offset += (records.len() * RECORD_BYTES) as u64;
        }
        for record in self.threads.iter().flatten() {
            file.write_all(&record.to_bytes())?;
        }
        file.flush()
    }
}

/// Where a block is, and who used it last.
#[derive(Clone, Copy, Default)]
struct Slot {
    slot: u32,
    size: u64,
    thread: usize,
    /// How many records that thread had then.
    done: u64,
}

struct Planner {
    order: Order,
    threads: Vec<Vec<Record>>,
    /// The places of the trace's threads in `threads`.
    places: HashMap<u32, usize>,
    current: usize,
    blocks: Vec<Slot>,
    /// Slots that each thread freed.
    unused: Vec<Vec<u32>>,
    n_slots: u32,
    operations: u64,
    /// How many records of another thread a thread knows to be done.
    known: HashMap<(usize, usize), u64>,
}

impl Default for Planner {
    fn default() -> Self {
        Self {
            order: Order::Turns,
            threads: Vec::new(),
            places: HashMap::new(),
            current: 0,
            blocks: Vec::new(),
            unused: Vec::new(),
            n_slots: 0,
            operations: 0,
            known: HashMap::new(),
        }
    }
}

impl Planner {
    /// The place of the thread whose turn it is, which is started if it is new.
    fn turn_to(&mut self, thread: u32) -> usize {
        let next = self.threads.len();
        let place = *self.places.entry(thread).or_insert(next);
        if place == next {
            self.threads.push(Vec::new());
            self.unused.push(Vec::new());
            if next > 0 {
                self.add(self.current, Record { op: Op::Start, align_log2: 0, slot: next as u32, size: 0, before: 0 });
            }
        }
        if place != self.current {
            if self.order == Order::Turns {
                self.wait_for(place, self.current, self.threads[self.current].len() as u64);
            }
            self.current = place;
        }
        place
    }

    /// Has `thread` wait until `other` has done its first `done` records, unless that is known.
    fn wait_for(&mut self, thread: usize, other: usize, done: u64) {
        let known = self.known.entry((thread, other)).or_default();
        if *known < done && thread != other {
            *known = done;
            self.add(thread, Record { op: Op::Wait, align_log2: 0, slot: other as u32, size: done, before: 0 });
        }
    }

    fn add(&mut self, thread: usize, record: Record) {
        self.threads[thread].push(record);
    }

    fn plan(&mut self, thread: usize, call: Call) {
        let (op, block, align_log2, from) = match call {
            Call::Begin | Call::End => return,
            Call::Allocate { block, align_log2, is_zeroed: false, .. } => (Op::Allocate, block, align_log2, None),
            Call::Allocate { block, align_log2, .. } => (Op::AllocateZeroed, block, align_log2, None),
            Call::Resize { from, block, align_log2, .. } => (Op::Resize, block, align_log2, Some(from)),
            Call::Free { block } => (Op::Free, block, 0, Some(block)),
        };
        let size = match call {
            Call::Allocate { size, .. } | Call::Resize { size, .. } => size,
            _ => 0,
        };
        let before = match from {
            Some(from) => {
                let before = self.blocks[from as usize];
                self.wait_for(thread, before.thread, before.done);
                before
            }
            None => Slot { slot: self.new_slot(thread), ..Slot::default() },
        };
        self.operations += 1;
        self.add(thread, Record { op, align_log2, slot: before.slot, size, before: before.size });
        let done = self.threads[thread].len() as u64;
        self.blocks[block as usize] = Slot { slot: before.slot, size, thread, done };
        if op == Op::Free {
            self.unused[thread].push(before.slot);
        }
    }

    fn new_slot(&mut self, thread: usize) -> u32 {
        self.unused[thread].pop().unwrap_or_else(|| {
            self.n_slots += 1;
            self.n_slots - 1
        })
    }
}

#[cfg(test)]
mod tests;
