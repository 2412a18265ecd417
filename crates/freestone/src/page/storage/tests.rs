use super::*;
use crate::page::tests::MIB;
use crate::testing::{World, fill, free, is_filled};
use std::vec::Vec;

#[test]
fn pieces_are_zero_and_aligned_and_do_not_overlap() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    // The page of the storage was written before.
    let heap = world.heap();
    let before = heap.allocate(MIB, 1).start;
    fill(before, 0xA5, MIB);
    free(heap, before);
    let sizes = [1, 64, 65, 5000, PAGE_BYTES, 40_000, 40_000];
    let pieces: Vec<(*mut u8, usize)> =
        sizes.iter().map(|&bytes| (pages.metadata(bytes).expect("memory").cast(), bytes)).collect();
    for &(start, bytes) in &pieces {
        assert!(start.addr().is_multiple_of(ALIGN_BYTES) && is_filled(start, 0, bytes), "{bytes} bytes at {start:?}");
        fill(start, 1, bytes);
    }
    let mut places: Vec<_> = pieces.iter().map(|&(start, bytes)| (start.addr(), bytes)).collect();
    places.sort_unstable();
    assert!(places.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "{places:x?}");
    world.check().unwrap();
}

#[test]
fn small_pieces_share_a_page_and_storage_counts_as_metadata() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    assert!(pages.open().is_some());
    let metadata_pages = || pages.stats().metadata_pages;
    let before = metadata_pages();
    (0..PAGE_BYTES / ALIGN_BYTES).for_each(|_| assert!(pages.metadata(1).is_some()));
    assert_eq!(metadata_pages(), before + 1);
    assert!(pages.metadata(1).is_some());
    assert_eq!(metadata_pages(), before + 2);
}

#[test]
fn without_memory_there_is_no_storage() {
    let world = World::new(4096);
    assert!(world.shared.pages.open().is_some());
    world.os().limit_committed(world.os().committed_bytes());
    assert_eq!(world.shared.pages.metadata(100), None);
}
