//! The shadow: a model of a correct allocator, kept beside the one under test.
//!
//! It checks that blocks do not overlap, are aligned as requested, and keep every byte written to them until they are freed; and that
//! reallocation keeps the contents up to the smaller size. Each block is filled with bytes derived from its own number.
//!
//! # Safety
//! Blocks are written and read through the pointers that the allocator under test returned, for the sizes that were requested. If the
//! allocator returned memory that is not its own, the test process is damaged; overlaps with other live blocks are found before that.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;

/// A rule that the allocator broke.
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
struct LiveBlock {
    bytes: usize,
    number: u64,
}

/// The blocks in use, by address.
#[derive(Debug, Default)]
pub struct Shadow {
    live: BTreeMap<usize, LiveBlock>,
    numbers: u64,
    /// Bytes in use now.
    live_bytes: usize,
}

impl Shadow {
    /// Number of blocks in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no block is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Bytes in use, as requested.
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
        let live = LiveBlock { bytes, number: self.numbers };
        for offset in offsets(bytes) {
            // SAFETY: the offset is below the size that the allocator just granted.
            let byte = unsafe { block.byte_add(offset) };
            // SAFETY: the byte is in the block, and no other block in use overlaps it.
            unsafe { byte.write(pattern(live.number, offset)) };
        }
        self.live.insert(start, live);
        self.live_bytes += bytes;
        Ok(())
    }

    /// A block is about to be freed: checks its contents and forgets it.
    ///
    /// # Errors
    /// The block is not in use, or lost a byte.
    pub fn giving_back(&mut self, block: NonNull<u8>) -> Result<(), Violation> {
        let start = block.addr().get();
        let live = self.live.remove(&start).ok_or_else(|| Violation(format!("block {start:#x} is not in use")))?;
        self.live_bytes -= live.bytes;
        compare(block, live.bytes, live.number)
    }

    /// A block was reallocated: checks that it kept its contents, and then its new place as that of a new block.
    ///
    /// # Errors
    /// The old block is not in use, its contents changed, or the new block is misaligned or overlaps another.
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
        // SAFETY: the offset is below the size of the block.
        let byte = unsafe { block.byte_add(offset) };
        // SAFETY: the shadow initialised this byte when the block was handed out.
        let found = unsafe { byte.read() };
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

/// The offsets at which a block is filled and read: all of them. Miri takes a microsecond and more per byte, and the model under schedules plays many
/// thousand scenarios, so both skip most offsets after the first ones. The offsets of a smaller size are always among those of a larger one.
fn offsets(bytes: usize) -> impl Iterator<Item = usize> {
    let (first, step) = match (cfg!(miri), cfg!(shuttle)) {
        (true, _) => (64, 4093),
        (_, true) => (256, 1021),
        _ => (bytes, 1),
    };
    let whole = bytes.min(first);
    (0..whole).chain((whole..bytes).step_by(step))
}

fn pattern(number: u64, offset: usize) -> u8 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ (offset as u8).wrapping_mul(31)
}

#[cfg(test)]
mod tests;
