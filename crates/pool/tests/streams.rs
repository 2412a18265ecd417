//! Any stream of operations, on any kind of pool: no overlap, alignment and contents kept, zeroed blocks zero, each second free
//! refused, every invariant after each step.
#![allow(unsafe_code, reason = "memory that is zero is promised to the pool")]

mod subject;

use freestone_pool::{FixedPool, Shape};
use freestone_testkit::ops::{Mix, Stream, any_stream, generate, play};
use proptest::prelude::*;
use subject::{AsHeap, Magazines, Memory};

fn config() -> ProptestConfig {
    let cases = if cfg!(miri) { 2 } else { 256 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

const N_OPS: usize = if cfg!(miri) { 20 } else { 300 };

/// Miri is slow for every byte.
const MOST_BYTES: usize = if cfg!(miri) { 32 } else { 400 };

fn any_shape() -> impl Strategy<Value = Shape> {
    (1..MOST_BYTES, 1_usize..80, 0_u32..8)
        .prop_map(|(bytes, count, align)| Shape::aligned(bytes, count, 1 << align).unwrap())
}

/// Plays on a pool over memory of ones.
fn on_fixed(shape: Shape, stream: &Stream) -> Result<(), TestCaseError> {
    let memory = Memory::new(shape.region_bytes(), 0xA5);
    let player = play(stream, AsHeap::new(memory.fixed(shape)), 1)?;
    prop_assert!(player.subject.pool.close().is_ok());
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_fixed_pool_keeps_its_promises(stream in any_stream(24, N_OPS, vec![0]), shape in any_shape()) {
        on_fixed(shape, &stream)?;
    }

    #[test]
    fn a_pool_over_zeroed_memory_keeps_its_promises(stream in any_stream(24, N_OPS, vec![0]), shape in any_shape()) {
        let memory = Memory::new(shape.region_bytes(), 0);
        // SAFETY: the memory is zero, and no other code uses it.
        let pool = unsafe { FixedPool::new_zeroed_at(shape, memory.start, memory.bytes()) }.unwrap();
        play(&stream, AsHeap::new(pool), 1)?;
    }

    #[test]
    fn a_shared_pool_keeps_its_promises(stream in any_stream(24, N_OPS, vec![0]), shape in any_shape()) {
        let memory = Memory::new(shape.shared_region_bytes(), 0xA5);
        let mut pool = memory.shared(shape);
        play(&stream, AsHeap::new(Magazines::new(&pool)), 1)?;
        prop_assert_eq!(pool.check(), Ok(()));
        prop_assert!(pool.close().is_ok());
    }
}

#[test]
fn after_a_long_stream_a_pool_is_empty_again() {
    let mix = Mix { ids: 200, least_bytes: 1, most_bytes: 100, most_align: 16, reallocations_percent: 5 };
    let stream = generate(mix, 0, if cfg!(miri) { 100 } else { 60_000 }, 0xB10C);
    let shape = Shape::new(100, 150).unwrap();
    let memory = Memory::new(shape.region_bytes(), 0xA5);
    let player = play(&stream, AsHeap::new(memory.fixed(shape)), 97).unwrap();
    let stats = player.subject.pool.stats();
    assert_eq!((stats.n_used, stats.n_free + stats.n_fresh), (0, 150));
}
