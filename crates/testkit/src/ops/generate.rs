//! Streams from a seed: the same seed gives the same stream on every machine and in every version.

use super::{Op, Stream};

/// Sebastiano Vigna's SplitMix64: small, fast, and good enough to choose sizes with.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next_u64()) * limit as u128) >> 64) as usize
    }
}

/// The composition of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Number of IDs: the largest number of live blocks.
    pub ids: u32,
    /// Smallest request.
    pub least_bytes: usize,
    /// Largest request.
    pub most_bytes: usize,
    /// Largest alignment; all powers of two up to it are equally likely.
    pub most_align: usize,
    /// Percentage of operations on a block in use that reallocate it; the others free it.
    pub reallocations_percent: usize,
}

/// A stream of `n_ops` operations. Each picks an ID at random: it allocates if the ID is unused, and otherwise frees or reallocates.
#[must_use]
pub fn generate(mix: Mix, region_bytes: usize, n_ops: usize, seed: u64) -> Stream {
    let mut random = SplitMix(seed);
    let mut used = vec![false; mix.ids as usize];
    let mut ops = Vec::with_capacity(n_ops);
    let n_aligns = mix.most_align.ilog2() as usize + 1;
    while ops.len() < n_ops {
        let slot = random.below(used.len());
        let id = slot as u32;
        let bytes = mix.least_bytes + random.below(mix.most_bytes - mix.least_bytes + 1);
        if !used[slot] {
            used[slot] = true;
            ops.push(Op::Allocate { id, bytes, align: 1 << random.below(n_aligns) });
        } else if random.below(100) < mix.reallocations_percent {
            ops.push(Op::Reallocate { id, bytes });
        } else {
            used[slot] = false;
            ops.push(Op::Deallocate { id });
        }
    }
    Stream { region_bytes, ops }
}
