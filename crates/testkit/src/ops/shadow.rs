//! The shadow: a model of what a correct allocator owes its user, kept beside the real one.
//!
//! Invariants it checks: blocks do not overlap, are aligned as asked, and keep every byte written to them until they are given back;
//! contents survive reallocation up to the smaller size. Each block is filled with bytes derived from its own number.
//!
//! # Safety
//! Blocks are written and read through the pointers the allocator under test handed out, for the sizes it was asked
//! for: if it is wrong, the test process is, which is what a shadow is for.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// A block in use.
#[derive(Clone, Copy, Debug)]
struct Live {
    bytes: usize,
    number: u64,
}

/// The blocks in use, by address.
#[derive(Debug, Default)]
pub struct Shadow {
    live: BTreeMap<usize, Live>,
    numbers: u64,
    /// Bytes in use now.
    live_bytes: usize,
}

impl Shadow {
    /// Blocks in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no block is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Bytes in use, as asked for.
    #[must_use]
    pub fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// A block was handed out: checks alignment and overlap, and fills it.
    ///
    /// # Errors
    /// Misaligned, or overlapping a block in use.
    pub fn handed_out(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<(), Violation> {
        let start = block.addr().get();
        if !start.is_multiple_of(align) {
            return Err(Violation(format!("block {start:#x} of {bytes} bytes is not aligned to {align}")));
        }
        let end = start + bytes;
        if let Some((&other, live)) = self.live.range(..end).next_back()
            && other + live.bytes > start
        {
            let other_bytes = live.bytes;
            return Err(Violation(format!(
                "block {start:#x} of {bytes} bytes overlaps block {other:#x} of {other_bytes} bytes"
            )));
        }
        self.numbers += 1;
        let live = Live { bytes, number: self.numbers };
        for offset in offsets(bytes) {
            // SAFETY: inside the block, which was just handed out.
            unsafe { block.byte_add(offset).write(pattern(live.number, offset)) };
        }
        self.live.insert(start, live);
        self.live_bytes += bytes;
        Ok(())
    }

    /// A block is about to be given back: checks its contents and forgets it.
    ///
    /// # Errors
    /// The block is not in use, or lost a byte.
    pub fn giving_back(&mut self, block: NonNull<u8>) -> Result<(), Violation> {
        let start = block.addr().get();
        let live = self.live.remove(&start).ok_or_else(|| Violation(format!("block {start:#x} is not in use")))?;
        self.live_bytes -= live.bytes;
        compare(block, live.bytes, live.number)
    }

    /// A block was reallocated: checks that the contents survived, then its new place as a new block's.
    ///
    /// # Errors
    /// As the two above.
    pub fn reallocated(
        &mut self,
        old: NonNull<u8>,
        new: NonNull<u8>,
        bytes: usize,
        align: usize,
    ) -> Result<(), Violation> {
        let start = old.addr().get();
        let live = self.live.remove(&start).ok_or_else(|| Violation(format!("block {start:#x} is not in use")))?;
        self.live_bytes -= live.bytes;
        compare(new, live.bytes.min(bytes), live.number)?;
        self.handed_out(new, bytes, align)
    }
}

fn compare(block: NonNull<u8>, bytes: usize, number: u64) -> Result<(), Violation> {
    for offset in offsets(bytes) {
        // SAFETY: inside a block in use, which the shadow filled.
        let found = unsafe { block.byte_add(offset).read() };
        let expected = pattern(number, offset);
        if found != expected {
            return Err(Violation(format!(
                "byte {offset} of {bytes} of block {:#x} is {found:#04x}, but {expected:#04x} was written",
                block.addr()
            )));
        }
    }
    Ok(())
}

/// Where a block is filled and read: everywhere. Miri, which takes a microsecond for each byte, and the model under schedules, which plays
/// many thousand scenarios, skip most of what lies behind the first 256; the offsets of a smaller size are always among those of a larger.
fn offsets(bytes: usize) -> impl Iterator<Item = usize> {
    let whole = if cfg!(any(miri, shuttle)) { bytes.min(256) } else { bytes };
    (0..whole).chain((whole..bytes).step_by(if cfg!(shuttle) { 1021 } else { 127 }))
}

fn pattern(number: u64, offset: usize) -> u8 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ (offset as u8).wrapping_mul(31)
}

#[cfg(test)]
mod tests;
