//! Any stream of operations, on any kind of heap: no overlap, alignment and contents kept, every invariant after each step.

mod subject;

use freestone_testkit::ops::{Mix, any_stream, generate, play};
use freestone_tlsf::{Bounded, Standard, WithFooters};
use proptest::prelude::*;
use subject::Grown;

fn config() -> ProptestConfig {
    let cases = if cfg!(miri) { 1 } else { 256 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

const N_OPS: usize = if cfg!(miri) { 10 } else { 300 };

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_standard_heap_keeps_its_promises(stream in any_stream(24, N_OPS, vec![48, 256, 4096, 65536])) {
        let player = play(&stream, Grown::<Standard>::new(stream.region_bytes, 1 << 18), 1)?;
        prop_assert_eq!(player.subject.heap.stats().free_blocks, 1, "an empty region is one block");
    }

    #[test]
    fn a_heap_with_footers_keeps_its_promises(stream in any_stream(24, N_OPS, vec![256, 4096, 65536])) {
        play(&stream, Grown::<WithFooters>::new(stream.region_bytes, 1 << 18), 1)?;
    }

    #[test]
    fn a_heap_with_few_short_levels_keeps_its_promises(stream in any_stream(24, N_OPS, vec![256, 4096])) {
        play(&stream, Grown::<Bounded, 10, 4, 1>::new(stream.region_bytes, 1 << 14), 1)?;
        play(&stream, Grown::<Standard, 8, 16, 1>::new(stream.region_bytes, 1 << 12), 1)?;
        play(&stream, Grown::<Standard, 11, 2, 1>::new(stream.region_bytes, 1 << 14), 1)?;
    }

    #[test]
    fn several_regions_that_touch_never_merge(stream in any_stream(24, N_OPS, vec![0])) {
        let player = play(&stream, Grown::<Standard>::in_regions(4, 1024), 1)?;
        prop_assert_eq!(player.subject.heap.stats().free_blocks, 4);
    }
}

#[test]
fn after_a_long_stream_a_heap_is_empty_again() {
    let mix = Mix { ids: 200, least_bytes: 1, most_bytes: 3000, most_align: 512, reallocations_percent: 30 };
    let n_ops = if cfg!(miri) { 30 } else { 60_000 };
    let stream = generate(mix, 1 << 18, n_ops, 0xF5EE);
    let player = play(&stream, Grown::<Standard>::new(1 << 18, 1 << 18), 97).unwrap();
    let stats = player.subject.heap.stats();
    assert_eq!((stats.used_blocks, stats.free_blocks, stats.free_bytes), (0, 1, (1 << 18) - 16));
    assert_eq!((stats.largest_free_bytes, stats.fragmentation_permille), ((1 << 18) - 24, 0));
}
