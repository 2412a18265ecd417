//! From words to events.

use crate::encoder::{GRANULE_LOG2, SIZE_BITS};
use crate::event::{Damage, Event, Kind, What};
use crate::word::{Op, Word};

/// The events of a chunk, in the order of their thread. Ends at a zero byte, and after an error.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    bytes: &'a [u8],
    /// What the words so far have set.
    now: Event,
    /// The granule of the last address.
    last: u64,
    next: Parts,
}

/// What words have said of the next event.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    from: Option<u64>,
    size: u64,
    align_log2: u8,
    failed: bool,
    any: bool,
}

impl<'a> Events<'a> {
    /// The events in `bytes`, of `thread`, from a time and a sequence number on.
    #[must_use]
    pub fn new(bytes: &'a [u8], thread: u32, time_us: u64, sequence: u64) -> Self {
        let now = Event { thread, time_us, sequence, ticket: None, what: What::Begin };
        Self { bytes, now, last: 0, next: Parts::default() }
    }

    /// Takes one word; the event, if the word completes one.
    fn take(&mut self, op: Op, payload: u64) -> Result<Option<Event>, Damage> {
        let kind = match op {
            Op::C => Kind::C,
            Op::CZeroed => Kind::CZeroed,
            Op::Rust => Kind::Rust,
            Op::RustZeroed => Kind::RustZeroed,
            Op::New => Kind::New,
            Op::NewArray => Kind::NewArray,
            Op::Free => {
                if self.next.any || self.next.from.is_some() {
                    return Err(Damage::Order);
                }
                let block = self.address(payload);
                return Ok(Some(self.complete(What::Free { block })));
            }
            Op::Thread => {
                self.now.thread = u32::try_from(payload >> 1).map_err(|_| Damage::Word)?;
                return Ok(Some(self.complete(if payload & 1 == 0 { What::Begin } else { What::End })));
            }
            _ => return self.prepare(op, payload).map(|()| None),
        };
        Ok(Some(self.allocation(kind, payload)))
    }

    fn allocation(&mut self, kind: Kind, payload: u64) -> Event {
        let Parts { from, size, align_log2, failed, .. } = self.next;
        let size = size << SIZE_BITS | payload & ((1 << SIZE_BITS) - 1);
        let block = if failed { 0 } else { self.address(payload >> SIZE_BITS) };
        self.complete(match from {
            Some(from) => What::Resize { from, size, block },
            None => What::Allocate { kind, size, align_log2, block },
        })
    }

    /// Takes a word that says something of what follows.
    fn prepare(&mut self, op: Op, payload: u64) -> Result<(), Damage> {
        match op {
            Op::Moved if self.next.from.is_none() => self.next.from = Some(self.address(payload)),
            Op::Size if payload >> (64 - SIZE_BITS) == 0 => {
                self.next.size = payload;
                self.next.any = true;
            }
            Op::More => {
                self.next.any = true;
                match payload & 1 {
                    0 if payload >> 1 < 64 => self.next.align_log2 = (payload >> 1) as u8,
                    1 => self.next.failed = true,
                    _ => return Err(Damage::Word),
                }
            }
            Op::Stack => {}
            Op::Address => self.last = payload,
            Op::Sequence => {
                self.now.sequence = self.now.sequence.saturating_add(payload >> 1);
                if payload & 1 == 1 {
                    self.now.ticket = Some(self.now.sequence);
                }
            }
            Op::Time => self.now.time_us = self.now.time_us.saturating_add(payload),
            _ => return Err(Damage::Order),
        }
        Ok(())
    }

    fn address(&mut self, distance: u64) -> u64 {
        let difference = (distance >> 1) ^ (distance & 1).wrapping_neg();
        self.last = self.last.wrapping_add(difference);
        self.last << GRANULE_LOG2
    }

    fn complete(&mut self, what: What) -> Event {
        let event = Event { what, ..self.now };
        self.now.ticket = None;
        self.next = Parts::default();
        event
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.bytes.first().is_none_or(|&byte| byte == 0) {
                return None;
            }
            let word = Word::read(self.bytes).ok_or(Damage::Word);
            let taken = word.and_then(|(op, payload, len)| {
                self.bytes = self.bytes.get(len..).unwrap_or_default();
                self.take(op, payload)
            });
            match taken {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(damage) => {
                    self.bytes = &[];
                    return Some(Err(damage));
                }
            }
        }
    }
}
