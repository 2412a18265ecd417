//! Resizing a small block of a watched span where it is.
use super::*;
use crate::span::canary;
use crate::thread::growth::small_stays;
use crate::thread::watched::examine::{Examined, examine};
use crate::thread::watched::resize::stays;

fn examined(world: &World, heap: Own<'_, Fake>, block: *mut u8) -> Examined {
    let view = world.shared.pages.view();
    let (entry, page) = (view.entry(block.addr()).unwrap(), view.page_of(block.addr()).unwrap());
    examine(heap, (block, entry, entry.class().unwrap()), page, Claim::NOTHING).expect("the block is whole")
}

#[test]
fn a_block_stays_if_it_fits_and_one_of_another_heap_unless_its_neighbour_would_see_that() {
    let world = watched();
    let (heap, other) = (world.heap(), world.heap());
    let kept: Vec<_> = (0..10).map(|_| allocate(heap, 100)).collect();
    let capacity = block_bytes(class_of(104)) - TRAILER_BYTES;
    let reaches = |size| canary::range(size, capacity).end == capacity;
    let pairs = (20..=capacity).step_by(3).flat_map(|held| (0..capacity + 5).map(move |size| (held, size)));
    for (held, size) in pairs.step_by(if cfg!(miri) { 41 } else { 1 }) {
        let block = kept[3];
        // The heap's own block stays whenever it fits, so it can be made as long as it should be.
        let held = held.max((0..).find(|&size| small_stays(capacity, size)).expect("some size stays"));
        assert!(stays(heap.grown(), &examined(&world, heap, block), held));
        for (caller, is_own) in [(other, false), (heap, true)] {
            let is_same_for_neighbour = size <= held && reaches(size) == reaches(held);
            let expected = small_stays(capacity, size) && (is_own || is_same_for_neighbour);
            assert_eq!(
                stays(caller.grown(), &examined(&world, caller, block), size),
                expected,
                "{held} to {size}, {is_own}"
            );
            assert_eq!(heap.usable_bytes(block), Some(if expected { size } else { held }));
            if expected && size < capacity {
                assert!(stays(heap.grown(), &examined(&world, heap, block), held), "its canary is whole");
            }
            if expected {
                assert!(stays(heap.grown(), &examined(&world, heap, block), held));
            }
        }
    }
    assert_eq!(crimes(), []);
    kept.into_iter().for_each(|block| free(heap, block));
    assert_eq!(crimes(), []);
}
