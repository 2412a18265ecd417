//! The order of all events: from the streams of recorders to one sequence of steps about numbered blocks.
//!
//! Sequence numbers order the events of different threads (`docs/trace-format.md`). Events with the same number are taken in an order in which each
//! block is allocated before it is freed.
//!
//! A block that was freed without a record of that (by a thread whose heap had ended, or in a part that is damaged) is freed when its address is allocated again.

use crate::trace::recording::Recording;
use freestone_trace::{Event, Kind, What};
use std::collections::HashMap;

/// The number of a block: how many were allocated before.
pub(crate) type Block = u32;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The thread begins.
    Begin,
    /// It ends.
    End,
    /// A block is allocated.
    Allocate { block: Block, size: u64, align_log2: u8, is_zeroed: bool },
    /// A block is resized, and has another number from then on. It keeps its alignment if it is one of Rust's.
    Resize { from: Block, block: Block, size: u64, align_log2: u8 },
    /// A block is freed.
    Free { block: Block },
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) thread: u32,
    pub(crate) time_us: u64,
    pub(crate) call: Call,
}

/// All steps in order.
#[derive(Default)]
pub(crate) struct Timeline {
    pub(crate) steps: Vec<Step>,
    /// Blocks.
    pub(crate) n_blocks: u32,
    /// Allocations that failed.
    pub(crate) n_failed: u64,
    /// Frees of blocks that were not recorded.
    pub(crate) n_unknown: u64,
    /// Blocks whose free was not recorded.
    pub(crate) n_implied: u64,
}

/// A timeline in the making.
#[derive(Default)]
struct Merge {
    timeline: Timeline,
    /// The blocks that are live, by address.
    live: HashMap<u64, Block>,
    /// The alignments of Rust's blocks that asked for one. In C a resized block loses its alignment.
    aligned: HashMap<Block, u8>,
}

/// A stream on its way.
struct Stream<'a> {
    events: &'a [Event],
    at: usize,
    /// The first half of the next event was taken: the block that it resizes, if it is known.
    resizes: Option<Option<Block>>,
}

/// Where an event is in the order: its sequence number, and whether it took that number.
type Place = (u64, bool);

impl Stream<'_> {
    fn next(&self) -> Option<&Event> {
        self.events.get(self.at)
    }

    fn place(&self) -> Option<Place> {
        let event = self.next()?;
        Some(match event.ticket {
            Some(ticket) if self.resizes.is_none() => (ticket, true),
            _ => (event.sequence, false),
        })
    }
}

impl Timeline {
    /// Puts the events of a trace in order.
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut merge = Merge::default();
        let mut streams: Vec<Stream<'_>> =
            recording.streams.iter().map(|events| Stream { events, at: 0, resizes: None }).collect();
        while let Some((first, bound)) = merge.choose(&streams) {
            let stream = &mut streams[first];
            merge.take(stream);
            // Most of the time the same thread goes on.
            while let Some(place) = stream.place()
                && bound.is_none_or(|bound| place < bound)
            {
                merge.take(stream);
            }
        }
        merge.timeline
    }
}

impl Merge {
    /// The stream whose event is next, and the place of the first event of the others.
    fn choose(&self, streams: &[Stream<'_>]) -> Option<(usize, Option<Place>)> {
        let places = || streams.iter().enumerate().filter_map(|(at, stream)| Some((stream.place()?, at)));
        let (lowest, first) = places().min()?;
        let can_be_next = |&(place, at): &(Place, usize)| place == lowest && self.is_ready(&streams[at]);
        let chosen = places().find(can_be_next).map_or(first, |(_, at)| at);
        let bound = places().filter(|&(_, at)| at != chosen).map(|(place, _)| place).min();
        Some((chosen, bound))
    }

    /// Whether the next event of a stream agrees with the blocks that are live.
    fn is_ready(&self, stream: &Stream<'_>) -> bool {
        let is_live = |block: &u64| self.live.contains_key(block);
        stream.next().is_some_and(|event| match event.what {
            What::Begin | What::End => true,
            What::Allocate { block, .. } => !is_live(&block),
            What::Resize { from, block, .. } => {
                (stream.resizes.is_some() || is_live(&from)) && (block == from || !is_live(&block))
            }
            What::Free { block } => is_live(&block),
        })
    }

    /// Takes the next event of a stream, or the first half of it.
    fn take(&mut self, stream: &mut Stream<'_>) {
        let Some(&event) = stream.next() else { return };
        match event.what {
            What::Begin => self.step(&event, Call::Begin),
            What::End => self.step(&event, Call::End),
            What::Allocate { block: 0, .. } => self.timeline.n_failed += 1,
            What::Allocate { kind, size, align_log2, block } => {
                let block = self.begin(&event, block);
                if align_log2 > 0 && matches!(kind, Kind::Rust | Kind::RustZeroed) {
                    self.aligned.insert(block, align_log2);
                }
                self.step(&event, Call::Allocate { block, size, align_log2, is_zeroed: kind.is_zeroed() });
            }
            What::Free { block } => match self.live.remove(&block) {
                Some(block) => self.step(&event, Call::Free { block }),
                None => self.timeline.n_unknown += 1,
            },
            What::Resize { block: 0, .. } => self.timeline.n_failed += 1,
            What::Resize { from, .. } if event.ticket.is_some() && stream.resizes.is_none() => {
                stream.resizes = Some(self.live.remove(&from));
                return;
            }
            What::Resize { from, size, block } => {
                let from = stream.resizes.take().unwrap_or_else(|| self.live.remove(&from));
                let block = self.begin(&event, block);
                match from {
                    Some(from) => {
                        let aligned = self.aligned.remove(&from);
                        self.aligned.extend(aligned.map(|align_log2| (block, align_log2)));
                        self.step(&event, Call::Resize { from, block, size, align_log2: aligned.unwrap_or(0) });
                    }
                    None => self.step(&event, Call::Allocate { block, size, align_log2: 0, is_zeroed: false }),
                }
            }
        }
        stream.at += 1;
    }

    /// Numbers the block at an address that was allocated.
    fn begin(&mut self, event: &Event, address: u64) -> Block {
        let block = self.timeline.n_blocks;
        self.timeline.n_blocks += 1;
        if let Some(before) = self.live.insert(address, block) {
            self.timeline.n_implied += 1;
            self.step(event, Call::Free { block: before });
        }
        block
    }

    fn step(&mut self, event: &Event, call: Call) {
        self.timeline.steps.push(Step { thread: event.thread, time_us: event.time_us, call });
    }
}

#[cfg(test)]
mod tests;
