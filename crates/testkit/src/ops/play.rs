//! Playing a stream against an allocator, with the shadow beside it.
//!
//! # Safety
//! The player gives back only blocks that the subject handed out, once.
#![allow(unsafe_code)]

use super::{Op, Shadow, Stream, Violation};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ptr::NonNull;

/// An allocator under test.
pub trait Subject {
    /// Why it refuses.
    type Error: Debug;

    /// Hands out a block.
    ///
    /// # Errors
    /// Whatever the subject refuses with.
    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Self::Error>;

    /// Changes a block's size.
    ///
    /// # Errors
    /// Whatever the subject refuses with; the block is then as it was.
    ///
    /// # Safety
    /// The block is in use, and was asked for with `old_bytes` and `align`.
    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        old_bytes: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, Self::Error>;

    /// Takes a block back.
    ///
    /// # Errors
    /// Whatever the subject refuses with: always a failure of the test.
    ///
    /// # Safety
    /// As [`Subject::reallocate`].
    unsafe fn deallocate(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<(), Self::Error>;

    /// Adds memory at the end, if the subject can.
    fn grow(&mut self, _bytes: usize) {}

    /// Checks the subject's own invariants.
    ///
    /// # Errors
    /// What does not hold.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What became of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A block is at this address (allocation, reallocation).
    At(usize),
    /// Refused, or skipped because the ID is unused.
    Nothing,
    /// Done (free, growth).
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    block: NonNull<u8>,
    bytes: usize,
    align: usize,
}

/// Plays operations one by one and keeps what is in use.
pub struct Player<S: Subject> {
    /// The allocator under test.
    pub subject: S,
    /// What it owes.
    pub shadow: Shadow,
    held: BTreeMap<u32, Held>,
}

impl<S: Subject> Player<S> {
    /// A player with nothing in use.
    pub fn new(subject: S) -> Self {
        Self { subject, shadow: Shadow::default(), held: BTreeMap::new() }
    }

    /// Plays one operation.
    ///
    /// # Errors
    /// A promise of the allocator that was not kept.
    pub fn step(&mut self, op: Op) -> Result<Outcome, Violation> {
        match op {
            Op::Allocate { id, bytes, align } => self.allocate(id, bytes, align),
            Op::Reallocate { id, bytes } => self.reallocate(id, bytes),
            Op::Deallocate { id } => self.deallocate(id),
            Op::Grow { bytes } => {
                self.subject.grow(bytes);
                Ok(Outcome::Done)
            }
        }
    }

    fn allocate(&mut self, id: u32, bytes: usize, align: usize) -> Result<Outcome, Violation> {
        if self.held.contains_key(&id) {
            return Ok(Outcome::Nothing);
        }
        let Ok(block) = self.subject.allocate(bytes, align) else { return Ok(Outcome::Nothing) };
        self.shadow.handed_out(block, bytes, align)?;
        self.held.insert(id, Held { block, bytes, align });
        Ok(Outcome::At(block.addr().get()))
    }

    fn reallocate(&mut self, id: u32, bytes: usize) -> Result<Outcome, Violation> {
        let Some(held) = self.held.get_mut(&id) else { return Ok(Outcome::Nothing) };
        // SAFETY: the block is in use, with this size and alignment.
        let Ok(new) = (unsafe { self.subject.reallocate(held.block, held.bytes, held.align, bytes) }) else {
            return Ok(Outcome::Nothing);
        };
        self.shadow.reallocated(held.block, new, bytes, held.align)?;
        *held = Held { block: new, bytes, ..*held };
        Ok(Outcome::At(new.addr().get()))
    }

    fn deallocate(&mut self, id: u32) -> Result<Outcome, Violation> {
        let Some(held) = self.held.remove(&id) else { return Ok(Outcome::Nothing) };
        self.shadow.giving_back(held.block)?;
        // SAFETY: the block is in use, and forgotten here.
        let freed = unsafe { self.subject.deallocate(held.block, held.bytes, held.align) };
        freed.map_err(|error| Violation(format!("freeing block {id} was refused: {error:?}")))?;
        Ok(Outcome::Done)
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// A promise of the allocator that was not kept.
    pub fn drain(&mut self) -> Result<(), Violation> {
        while let Some((&id, _)) = self.held.first_key_value() {
            self.deallocate(id)?;
        }
        Ok(())
    }
}

/// Plays a whole stream, checking the subject after every `check_every`-th operation and at the end, and gives everything back.
///
/// # Errors
/// A promise of the allocator that was not kept, with the number of the operation.
pub fn play<S: Subject>(stream: &Stream, subject: S, check_every: usize) -> Result<Player<S>, Violation> {
    let mut player = Player::new(subject);
    for (number, op) in stream.ops.iter().enumerate() {
        let at = |violation: Violation| Violation(format!("operation {number}, {op:?}: {violation}"));
        player.step(*op).map_err(at)?;
        if number.is_multiple_of(check_every) {
            player.subject.check().map_err(|text| at(Violation(text)))?;
        }
    }
    player.drain()?;
    player.subject.check().map_err(Violation)?;
    Ok(player)
}

#[cfg(test)]
mod tests;
