use super::*;
use crate::testing::{World, fill, is_filled};
use freestone_base::units::PAGE_BYTES;
use std::vec::Vec;

#[test]
fn pieces_are_zero_and_aligned_and_do_not_overlap() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    assert!(pages.open().is_some());
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
fn storage_is_committed_an_os_page_at_a_time() {
    for os_page_bytes in [4096, PAGE_BYTES] {
        let world = World::new(os_page_bytes);
        let pages = &world.shared.pages;
        assert!(pages.open().is_some());
        let before = world.os().committed_bytes();
        (0..os_page_bytes / ALIGN_BYTES).for_each(|_| assert!(pages.metadata(1).is_some()));
        assert_eq!(world.os().committed_bytes(), before + os_page_bytes);
        assert!(pages.metadata(1).is_some());
        assert_eq!(world.os().committed_bytes(), before + 2 * os_page_bytes);
    }
}

#[test]
fn without_memory_there_is_no_storage() {
    let world = World::new(4096);
    assert!(world.shared.pages.open().is_some());
    world.os().limit_committed(world.os().committed_bytes());
    assert_eq!(world.shared.pages.metadata(100), None);
}
