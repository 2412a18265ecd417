use super::*;
use crate::testing::World;
use std::vec::Vec;

#[test]
fn a_bit_is_set_once_and_the_next_set_one_is_found_across_words() {
    let mut words = [0; 5];
    let world = World::new(4096);
    let _heap = world.heap();
    let layout = world.shared.pages.layout();
    let mut bits = Bits::new(&mut words, layout);
    let address = |granule: usize| layout.base.addr() + granule * GRANULE_BYTES;
    for granule in [0, 63, 64, 200] {
        assert!(bits.set(address(granule)) && !bits.set(address(granule)) && bits.is_set(address(granule)));
    }
    assert!(!bits.set(address(256)) && !bits.is_set(address(256)) && !bits.is_set(address(1)));
    let found: Vec<_> = [0, 1, 63, 64, 65, 200, 201, 256].map(|from| bits.next(from)).to_vec();
    assert_eq!(found, [Some(0), Some(63), Some(63), Some(64), Some(200), Some(200), None, None]);
}

#[test]
fn bits_that_lie_far_apart_are_found_beyond_groups_without_any() {
    let world = World::new(4096);
    let _heap = world.heap();
    let layout = world.shared.pages.layout();
    let pages = 70_000;
    let mut words = std::vec![0; Bits::n_words(pages)];
    let mut bits = Bits::new(&mut words, layout);
    let last = pages * (PAGE_BYTES / GRANULE_BYTES) - 1;
    let group = 64 * GROUP;
    let set = [5, group - 1, group, 3 * group + 7, 64 * group, 64 * group + 1, 100 * group - 1, last];
    for granule in set {
        assert!(bits.set(layout.base.addr() + granule * GRANULE_BYTES));
    }
    let mut found = Vec::new();
    while let Some(granule) = bits.next(found.last().map_or(0, |last| last + 1)) {
        found.push(granule);
    }
    assert_eq!(found, set);
}

#[test]
fn every_granule_of_the_pages_has_a_bit_and_none_beyond_them() {
    let world = World::new(4096);
    let _heap = world.heap();
    let layout = world.shared.pages.layout();
    for pages in [0, 1, 511, 512, 513, 1024, 70_000] {
        let mut words = std::vec![0; Bits::n_words(pages)];
        let mut bits = Bits::new(&mut words, layout);
        let end = layout.base.addr() + pages * PAGE_BYTES;
        assert!(pages == 0 || bits.set(end - GRANULE_BYTES), "{pages} pages");
        assert!(!bits.set(end), "{pages} pages");
    }
}
