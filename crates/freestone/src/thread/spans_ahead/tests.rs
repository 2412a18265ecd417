use super::*;
use crate::config::key;
use crate::span::Kind;
use crate::testing::{World, free};
use crate::thread::upkeep;
use proptest::prelude::*;
use std::vec::Vec;

/// A kibibyte, 64 of which fill a span.
const BLOCK: usize = 1024;

#[test]
fn a_heap_that_grows_takes_four_times_as_many_pages_as_it_has_up_to_a_bound_and_gives_back_what_it_does_not_use() {
    let world = World::new(4096);
    let heap = world.heap();
    let (mut n_rows, mut before) = (0, 0);
    let n_spans = if cfg!(miri) { 12 } else { 1000 };
    for _ in 0..n_spans * 64 {
        assert!(!heap.allocate(BLOCK, 1).start.is_null());
        let (ahead, owned) = (heap.ahead().n(), heap.spans().n_pages());
        assert!(u64::from(ahead) < AT_ONCE_MOST.min(4 * owned.max(1)), "{ahead} beside {owned}");
        n_rows += u32::from(ahead > before);
        before = ahead;
        assert_eq!(world.small_span_pages(), owned, "what is ahead is not in use");
    }
    assert!(n_rows < 50, "{n_rows} rows for {n_spans} spans");
    world.check().unwrap();
    assert!(heap.ahead().n() > 0);
    upkeep::flush_all(heap);
    assert_eq!(heap.ahead().n(), 0);
    world.check().unwrap();
}

#[test]
fn a_heap_that_ends_gives_back_what_it_took_ahead() {
    let world = World::new(4096);
    let heap = world.heap();
    let blocks: Vec<_> = (0..64 * 20).map(|_| heap.allocate(BLOCK, 1).start).collect();
    assert!(heap.ahead().n() > 0);
    blocks.into_iter().for_each(|block| free(heap, block));
    world.end(heap);
    world.check().unwrap();
    assert_eq!(world.shared.pages.inspect(|state| state.runs.counts().of(Kind::Small)), Pages::ZERO);
}

#[test]
fn neither_an_explicit_heap_nor_a_watched_one_takes_anything_ahead() {
    let world = World::new(4096);
    let explicit = world.explicit_heap();
    world.set(key::HARDEN, "checks");
    let watched = world.heap();
    for _ in 0..64 * 20 {
        for heap in [explicit.enter().own(), watched] {
            assert!(!heap.allocate(BLOCK, 1).start.is_null());
            assert_eq!(heap.ahead().n(), 0);
        }
    }
    world.check().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn at_least_one_run_is_taken_and_at_most_four_times_as_many_pages_as_the_heap_has(owned in any::<u64>(), pages in 1_u32..=32) {
        let taken = u64::from(at_once(owned, Pages(pages)) * pages);
        prop_assert!(taken >= u64::from(pages));
        prop_assert!(taken <= owned.saturating_mul(4).min(AT_ONCE_MOST).max(u64::from(pages)));
    }
}
