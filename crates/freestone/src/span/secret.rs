//! The secret of watched heaps.

use freestone_base::sync::{AtomicBool, AtomicU64, Ordering};

/// What canaries and trailers are made of: two numbers that the program does not know. The same for all heaps that share the same parts.
#[derive(Debug)]
pub(crate) struct Secret {
    mask: AtomicU64,
    factor: AtomicU64,
    /// Whether freed blocks are cleared, not filled with a pattern.
    erases: AtomicBool,
}

impl Secret {
    /// Not drawn yet.
    pub(crate) const fn new() -> Self {
        Self { mask: AtomicU64::new(0), factor: AtomicU64::new(0), erases: AtomicBool::new(false) }
    }

    /// Makes random numbers the secret unless there is one.
    pub(crate) fn draw(&self, mut random: impl FnMut() -> u64) {
        if self.factor.load(Ordering::Relaxed) == 0 {
            self.mask.store(random(), Ordering::Relaxed);
            self.factor.store(random() | 1 << 63 | 1, Ordering::Relaxed);
        }
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

    /// The number that belongs to an address: both halves of a product, folded, so that neither factor follows from it.
    #[inline(always)]
    pub(crate) fn word(&self, address: usize) -> u64 {
        let masked = address as u64 ^ self.mask.load(Ordering::Relaxed);
        let product = u128::from(masked) * u128::from(self.factor.load(Ordering::Relaxed));
        product as u64 ^ (product >> 64) as u64
    }
}
