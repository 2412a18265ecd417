use super::*;
use crate::testing::World;
use crate::thread::heap::ThreadHeap;
use freestone_os::fake::Fake;
use std::vec::Vec;

fn taken(spare: &mut SpareHeaps<ThreadHeap<Fake>>) -> Option<u32> {
    spare.take().map(ThreadHeap::number)
}

#[test]
fn the_newest_is_taken_first_and_the_oldest_expire() {
    let world = World::new(4096);
    let heaps = [world.heap(), world.heap(), world.heap()].map(|own| own.heap());
    let mut spare = SpareHeaps::<ThreadHeap<Fake>>::new();
    for (heap, now_ms) in heaps.iter().zip([100, 200, 300]) {
        assert!(spare.put(heap, 10, now_ms));
    }
    let expired =
        |spare: &mut SpareHeaps<ThreadHeap<Fake>>, now_ms| spare.take_expired(now_ms, 50).map(ThreadHeap::number);
    assert_eq!(expired(&mut spare, 149), None);
    assert_eq!(expired(&mut spare, 150), Some(heaps[0].number()));
    assert_eq!(expired(&mut spare, 150), None);
    assert_eq!((taken(&mut spare), spare.n()), (Some(heaps[2].number()), 1));
    assert_eq!((taken(&mut spare), spare.n()), (Some(heaps[1].number()), 0));
    assert_eq!(taken(&mut spare), None);
}

#[test]
fn few_bytes_and_few_heaps_are_kept() {
    let world = World::new(4096);
    let heaps: Vec<_> = (0..=HEAPS_MOST).map(|_| world.heap().heap()).collect();
    let mut spare = SpareHeaps::<ThreadHeap<Fake>>::new();
    assert!(!spare.put(heaps[0], BYTES_OF_ALL + 1, 0));
    assert!(spare.put(heaps[0], BYTES_OF_ALL, 0));
    assert!(!spare.put(heaps[1], 1, 0));
    assert!(spare.put(heaps[1], 0, 0), "it holds nothing");
    assert!(taken(&mut spare).is_some() && taken(&mut spare).is_some());
    for (i, heap) in heaps.iter().enumerate() {
        assert_eq!(spare.put(heap, BYTES_OF_ALL / HEAPS_MOST as usize, 0), i < HEAPS_MOST as usize);
    }
}
