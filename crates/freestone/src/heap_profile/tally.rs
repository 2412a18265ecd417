//! Blocks and bytes: what a sample stands for, and sums of that.

use freestone_base::sync::{AtomicU64, Ordering};

/// Parts that a block is counted in.
const BLOCK_PARTS: f64 = 65_536.0;

/// Parts that a byte is counted in: enough for a dump to give the size of blocks back exactly.
const BYTE_PARTS: f64 = 16.0;

/// What a sample stands for: so many blocks, in 65536ths, of so many bytes in all, in 16ths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Blocks, in 65536ths.
    pub(crate) blocks: u64,
    /// Bytes, in 16ths.
    pub(crate) bytes: u64,
}

impl Weight {
    /// So many blocks, of so many bytes in all.
    pub(crate) fn new(blocks: f64, bytes: f64) -> Self {
        Self { blocks: (blocks * BLOCK_PARTS + 0.5) as u64, bytes: (bytes * BYTE_PARTS + 0.5) as u64 }
    }

    /// Bytes in the unit of `bytes`.
    pub(crate) const fn parts_of(bytes: u64) -> u64 {
        bytes.saturating_mul(BYTE_PARTS as u64)
    }

    /// Blocks, and bytes.
    pub(crate) fn estimate(self) -> (f64, f64) {
        (self.blocks as f64 / BLOCK_PARTS, self.bytes as f64 / BYTE_PARTS)
    }
}

/// A sum of weights. Each of its two numbers is right by itself while threads add.
#[derive(Debug)]
pub(crate) struct Tally {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    /// Adds a weight.
    pub(crate) fn add(&self, weight: Weight) {
        self.blocks.fetch_add(weight.blocks, Ordering::Relaxed);
        self.bytes.fetch_add(weight.bytes, Ordering::Relaxed);
    }

    /// Takes off a weight that was added.
    pub(crate) fn subtract(&self, weight: Weight) {
        self.blocks.fetch_sub(weight.blocks, Ordering::Relaxed);
        self.bytes.fetch_sub(weight.bytes, Ordering::Relaxed);
    }

    /// The sum.
    pub(crate) fn sum(&self) -> Weight {
        Weight { blocks: self.blocks.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// Makes it this sum.
    pub(crate) fn set(&self, sum: Weight) {
        self.blocks.store(sum.blocks, Ordering::Relaxed);
        self.bytes.store(sum.bytes, Ordering::Relaxed);
    }
}
