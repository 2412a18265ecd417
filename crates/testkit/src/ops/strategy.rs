//! Streams for property tests; proptest shrinks a failing one to a short one that still fails.

use super::{Op, Stream};
use proptest::prelude::*;

/// Any stream of fewer than `most_ops` operations on `ids` IDs, over one of the given regions. Most sizes are small; others are near a power
/// of two, 0, or absurd.
pub fn any_stream(ids: u32, most_ops: usize, regions: Vec<usize>) -> impl Strategy<Value = Stream> {
    let op = (0..ids, any_bytes(), 0_u32..14, 0_u32..16).prop_map(|(id, bytes, align_log2, choice)| match choice {
        0..6 => Op::Allocate { id, bytes, align: 1 << if choice < 4 { align_log2 % 5 } else { align_log2 } },
        6..9 => Op::Reallocate { id, bytes },
        9..15 => Op::Deallocate { id },
        _ => Op::Grow { bytes: bytes % 4096 / 16 * 16 },
    });
    (proptest::sample::select(regions), proptest::collection::vec(op, 0..most_ops))
        .prop_map(|(region_bytes, ops)| Stream { region_bytes, ops })
}

fn any_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 1_usize..300,
        4 => 1_usize..5000,
        2 => (0_u32..20, 0_usize..48).prop_map(|(log2, around)| (1_usize << log2).saturating_add(around).saturating_sub(24)),
        1 => Just(0),
        1 => (0_usize..4096).prop_map(|below| usize::MAX - below),
        1 => Just(isize::MAX as usize),
    ]
}
