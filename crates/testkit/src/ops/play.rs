//! Plays a stream against an allocator and checks every step with the shadow model.
//!
//! # Safety
//! The player remembers each block with its size and alignment from the moment the subject hands it out, and forgets it when it frees it.
#![allow(unsafe_code)]

use super::{Op, Shadow, Stream, Violation};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ptr::NonNull;

/// An allocator under test.
pub trait Subject {
    /// The reason for a refusal.
    type Error: Debug;

    /// Allocates a block.
    ///
    /// # Errors
    /// The subject refuses.
    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Self::Error>;

    /// Changes the size of a block.
    ///
    /// # Errors
    /// The subject refuses; the block is then unchanged.
    ///
    /// # Safety
    /// This subject allocated the block with `old_bytes` and `align`, and it is still in use.
    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        old_bytes: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, Self::Error>;

    /// Frees a block.
    ///
    /// # Errors
    /// The subject refuses, which always fails the test.
    ///
    /// # Safety
    /// This subject allocated the block with `bytes` and `align`, and it is still in use.
    unsafe fn deallocate(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<(), Self::Error>;

    /// Lengthens the region by `bytes` at its end, if the subject can.
    fn grow(&mut self, _bytes: usize) {}

    /// Checks the subject's own invariants.
    ///
    /// # Errors
    /// An invariant does not hold; the text says which.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The result of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The address of the block (allocation, reallocation).
    At(usize),
    /// Refused, or skipped because of its ID.
    Nothing,
    /// Done (free, growth).
    Done,
}

/// A block in use, and the request that it was allocated with.
#[derive(Clone, Copy, Debug)]
struct HeldBlock {
    block: NonNull<u8>,
    bytes: usize,
    align: usize,
}

/// Plays operations one by one and remembers the blocks in use.
pub struct Player<S: Subject> {
    /// The allocator under test.
    pub subject: S,
    /// The model of what a correct allocator does.
    pub shadow: Shadow,
    held: BTreeMap<u32, HeldBlock>,
}

impl<S: Subject> Player<S> {
    /// A player without blocks.
    pub fn new(subject: S) -> Self {
        Self { subject, shadow: Shadow::default(), held: BTreeMap::new() }
    }

    /// Plays one operation.
    ///
    /// # Errors
    /// The allocator broke a rule.
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
        self.held.insert(id, HeldBlock { block, bytes, align });
        Ok(Outcome::At(block.addr().get()))
    }

    fn reallocate(&mut self, id: u32, bytes: usize) -> Result<Outcome, Violation> {
        let Some(held) = self.held.get_mut(&id) else { return Ok(Outcome::Nothing) };
        // SAFETY: `held` records what the subject handed out last under this ID, with its size and alignment; it has not been freed.
        let Ok(new) = (unsafe { self.subject.reallocate(held.block, held.bytes, held.align, bytes) }) else {
            return Ok(Outcome::Nothing);
        };
        self.shadow.reallocated(held.block, new, bytes, held.align)?;
        *held = HeldBlock { block: new, bytes, ..*held };
        Ok(Outcome::At(new.addr().get()))
    }

    fn deallocate(&mut self, id: u32) -> Result<Outcome, Violation> {
        let Some(held) = self.held.remove(&id) else { return Ok(Outcome::Nothing) };
        self.shadow.giving_back(held.block)?;
        // SAFETY: `held` records what the subject handed out last under this ID; it was removed above, so it is freed once.
        let freed = unsafe { self.subject.deallocate(held.block, held.bytes, held.align) };
        freed.map_err(|error| Violation(format!("freeing block {id} was refused: {error:?}")))?;
        Ok(Outcome::Done)
    }

    /// Frees all blocks.
    ///
    /// # Errors
    /// The allocator broke a rule.
    pub fn drain(&mut self) -> Result<(), Violation> {
        while let Some((&id, _)) = self.held.first_key_value() {
            self.deallocate(id)?;
        }
        Ok(())
    }
}

/// Plays a whole stream and frees all blocks. Checks the subject's invariants at every `check_every`-th operation and at the end.
///
/// # Errors
/// The allocator broke a rule; the message names the operation.
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
