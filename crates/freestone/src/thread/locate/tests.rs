#![allow(unsafe_code)]
use super::*;
use crate::size_class::class_of;
use crate::testing::World;

#[test]
fn every_aligned_address_of_a_small_span_is_small_and_has_its_class() {
    let world = World::new(4096);
    let block = world.heap().allocate(100, 1).start;
    for at in [block, block.wrapping_add(16)] {
        assert!(matches!(locate(&world.shared, at), Place::Small { class, .. } if class == class_of(100)));
    }
    for offset in [1, 7, 111] {
        let Place::Wrong(what) = locate(&world.shared, block.wrapping_add(offset)) else { panic!("{offset}") };
        assert_eq!(what, Misuse::Interior { block_bytes: 112, offset }, "no block starts there");
    }
}

#[test]
fn the_start_of_a_large_block_is_large_and_an_address_inside_is_reported_as_interior() {
    let world = World::new(4096);
    let heap = world.heap();
    let bytes = 3 * 65536;
    let block = heap.allocate(bytes, 1).start;
    assert!(matches!(locate(&world.shared, block), Place::Large { .. }));
    for offset in [1, 65536, bytes - 1] {
        let Place::Wrong(what) = locate(&world.shared, block.wrapping_add(offset)) else { panic!("{offset}") };
        assert_eq!(what, Misuse::Interior { block_bytes: bytes, offset });
    }
    assert!(matches!(locate(&world.shared, block.wrapping_add(bytes)), Place::Wrong(Misuse::Foreign)));
}

#[test]
fn a_free_of_a_cached_large_block_is_a_double_free() {
    let world = World::new(4096);
    let heap = world.heap();
    let bytes = 2 * 65536;
    let mut block = core::ptr::null_mut();
    for _ in 0..20 {
        block = heap.allocate(bytes, 1).start;
        // SAFETY: the block is this test's, and not used any more.
        unsafe { heap.free(block) };
    }
    assert!(heap.cache().cached_pages() > 0, "the run is cached");
    assert!(
        matches!(locate(&world.shared, block), Place::Wrong(Misuse::DoubleFree { block_bytes }) if block_bytes == bytes)
    );
    // An address inside it was never a block.
    for offset in [1, 16, 65536, bytes - 1] {
        assert!(matches!(locate(&world.shared, block.wrapping_add(offset)), Place::Wrong(Misuse::Foreign)), "{offset}");
    }
}

#[test]
fn addresses_outside_are_foreign() {
    let world = World::new(4096);
    let _heap = world.heap();
    let mut own = 7u64;
    for address in [core::ptr::null_mut(), (&raw mut own).cast(), core::ptr::without_provenance_mut(usize::MAX)] {
        assert!(matches!(locate(&world.shared, address), Place::Wrong(Misuse::Foreign)), "{address:?}");
    }
}
