#![allow(unsafe_code)]
use crate::testing::World;
use crate::thread::heap::own::Own;
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;
use freestone_os::fake::Fake;
use std::vec::Vec;

const MIB: usize = 1 << 20;

/// Maps the first OS page of `n_pages` pages from `page` on, as another part of the program might: for that page, and those up to the
/// next that it maps, the window's owner has no use.
fn map_as_a_stranger(world: &World, page: u32, n_pages: u32) {
    let layout = world.shared.pages.layout();
    for page in page..page + n_pages {
        // SAFETY: pages beyond the frontier are nobody's, and stay the stranger's.
        unsafe { world.os().commit(layout.page_start(page), world.os().os_page_bytes(), false) }.unwrap();
    }
}

fn allocate(heap: Own<'_, Fake>, bytes: usize) -> *mut u8 {
    heap.allocate(bytes, 1).start
}

fn frontier(world: &World) -> u32 {
    world.shared.pages.inspect(|state| state.runs.high_water().0)
}

/// Pages below the frontier that are of no use.
fn lost_pages(world: &World) -> u64 {
    world.shared.pages.stats().foreign_pages
}

#[test]
fn pages_that_others_have_mapped_are_all_that_is_lost_to_them() {
    let world = World::new(4096);
    let heap = world.heap();
    let strangers: Vec<u32> = (0..40).map(|nth| frontier(&world) + 3 + nth * 7).collect();
    strangers.iter().for_each(|&page| map_as_a_stranger(&world, page, 1));
    let blocks: Vec<_> = (0..300).map(|_| allocate(heap, PAGE_BYTES)).collect();
    assert!(blocks.iter().all(|block| !block.is_null()));
    // SAFETY: the blocks are this test's.
    unsafe { blocks.iter().for_each(|block| block.write_bytes(1, PAGE_BYTES)) };
    assert_eq!(lost_pages(&world), strangers.len() as u64);
    world.check().unwrap();
    // SAFETY: as above.
    unsafe { blocks.into_iter().for_each(|block| heap.free(block)) };
    world.check().unwrap();
}

#[test]
fn a_long_block_finds_its_place_behind_what_others_have_mapped_and_less_is_lost_than_they_have() {
    let world = World::new(4096);
    let heap = world.heap();
    let stranger_pages = 100;
    map_as_a_stranger(&world, frontier(&world) + 5, stranger_pages);
    let block = allocate(heap, 8 * MIB);
    assert!(!block.is_null());
    // SAFETY: the block is this test's.
    unsafe { block.write_bytes(1, 8 * MIB) };
    assert!((u64::from(stranger_pages)..2 * u64::from(stranger_pages)).contains(&lost_pages(&world)));
    world.check().unwrap();
}

#[test]
fn a_window_that_others_fill_to_its_end_is_used_up_to_them_and_no_further() {
    let world = World::new(4096);
    let heap = world.heap();
    let n_pages = world.shared.pages.layout().n_pages as u32;
    let free = 20;
    let before = frontier(&world);
    map_as_a_stranger(&world, before + free, n_pages - before - free);
    assert!(allocate(heap, 4 * MIB).is_null());
    world.check().unwrap();
    assert!(frontier(&world) <= n_pages);
    let blocks = (0..n_pages).take_while(|_| !allocate(heap, PAGE_BYTES).is_null()).count();
    assert!(blocks >= free as usize, "{blocks} of {free}");
    assert!(frontier(&world) <= n_pages);
    world.check().unwrap();
}

/// With a limit, all but a hundredth for metadata is handed out, and more when the limit is raised: of any size of OS pages.
#[test]
fn address_space_is_used_to_the_end_of_its_limit_and_beyond_when_that_is_raised() {
    for os_page_bytes in [4 << 10, 16 << 10, 64 << 10] {
        for piece in if cfg!(miri) { &[PAGE_BYTES][..] } else { &[PAGE_BYTES, 64, 3 * PAGE_BYTES] } {
            let piece = *piece;
            let world = World::new(os_page_bytes);
            let heap = world.heap();
            let mut got = 0;
            let limits = if cfg!(miri) { &[20][..] } else { &[20, 33, 64] };
            for limit in limits {
                world.os().limit_committed(limit * MIB);
                while !allocate(heap, piece).is_null() {
                    got += piece;
                }
                let lost = limit * MIB - got;
                assert!(lost <= limit * MIB / 90 + 5 * PAGE_BYTES + piece, "{lost} of {limit} MiB are lost");
                world.check().unwrap();
            }
        }
    }
}
