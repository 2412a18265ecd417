//! A small random number generator, the same on every machine and in every run: workloads must repeat exactly.
//!
//! Source: Marsaglia, "Xorshift RNGs" (2003), the 64-bit variant, with a multiplied output.

/// The generator.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream for `seed`; every seed gives another one.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 32 bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// A number below `bound`, which must not be 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.next()) * bound as u64) >> 32) as usize
    }

    /// A number from `low` to `high`, both included.
    #[inline]
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }
}
