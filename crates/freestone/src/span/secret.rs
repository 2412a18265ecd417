//! The secret of watched heaps.

use freestone_base::sync::{AtomicBool, AtomicU64, Ordering};

/// What canaries and trailers are made of: two numbers that the program does not know. All heaps that share the same parts have the same; each
/// watched heap has a copy beside what else its paths read. A tracer reads the two numbers (`api::heap_map`).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Secret {
    mask: AtomicU64,
    factor: AtomicU64,
    /// Whether freed blocks are cleared, not filled with a pattern.
    erases: AtomicBool,
}

/// The numbers that belong to an address. Neither follows from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// What the canary is made of.
    pub(crate) canary: u64,
    /// What the trailer is mixed with.
    pub(crate) trailer: u32,
}

impl Secret {
    /// Not drawn yet.
    pub(crate) const fn new() -> Self {
        Self::of([0, 0])
    }

    /// The one with these numbers.
    pub(crate) const fn of([mask, factor]: [u64; 2]) -> Self {
        Self { mask: AtomicU64::new(mask), factor: AtomicU64::new(factor), erases: AtomicBool::new(false) }
    }

    /// Makes random numbers the secret unless there is one.
    pub(crate) fn draw(&self, mut random: impl FnMut() -> u64) {
        if !self.is_drawn() {
            self.mask.store(random(), Ordering::Relaxed);
            self.factor.store(random() | 1 << 63 | 1, Ordering::Relaxed);
        }
    }

    /// Whether it was drawn: some heap is watched, or was.
    #[inline]
    pub(crate) fn is_drawn(&self) -> bool {
        self.factor.load(Ordering::Relaxed) != 0
    }

    /// Becomes a copy of another secret, which was drawn.
    pub(crate) fn become_copy(&self, other: &Self) {
        self.mask.store(other.mask.load(Ordering::Relaxed), Ordering::Relaxed);
        self.factor.store(other.factor.load(Ordering::Relaxed), Ordering::Relaxed);
        self.erases.store(other.erases(), Ordering::Relaxed);
    }

    /// Has freed blocks cleared. Before the first of them is freed.
    pub(crate) fn begin_erasing(&self) {
        self.erases.store(true, Ordering::Relaxed);
    }

    /// Whether freed blocks are cleared, and new ones read as zero.
    #[inline]
    pub(crate) fn erases(&self) -> bool {
        self.erases.load(Ordering::Relaxed)
    }

    /// The numbers that belong to an address: both halves of a product, folded, so that neither factor follows from it; and a part of another product
    /// of that, which who knows the first does not know.
    #[inline(always)]
    pub(crate) fn words(&self, address: usize) -> Words {
        let (masked, factor) =
            (address as u64 ^ self.mask.load(Ordering::Relaxed), self.factor.load(Ordering::Relaxed));
        let product = u128::from(masked) * u128::from(factor);
        let canary = product as u64 ^ (product >> 64) as u64;
        Words { canary, trailer: (canary.wrapping_mul(factor) >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests;
