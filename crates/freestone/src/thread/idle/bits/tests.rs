use super::*;
use crate::testing::World;
use std::vec::Vec;

#[test]
fn a_bit_is_set_once_and_the_next_set_one_is_found_across_words() {
    let mut words = [0; 4];
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
