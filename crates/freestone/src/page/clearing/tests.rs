#![allow(unsafe_code)]
use crate::config::key;
use crate::page::tests::MIB;
use crate::testing::{World, free};

/// Clears a block of `bytes` whose memory was written. Returns the bytes that were purged for that.
fn cleared(world: &World, bytes: usize) -> u64 {
    let heap = world.heap();
    let start = heap.allocate(bytes, 1).start;
    // SAFETY: the block has so many bytes.
    unsafe { start.write_bytes(0xa5, bytes) };
    let before = world.os().purged_bytes();
    // SAFETY: the block has so many bytes, and their contents are not needed.
    unsafe { world.shared.pages.clear(start, bytes) };
    // SAFETY: as above, and they were written just now.
    let contents = unsafe { core::slice::from_raw_parts(start, bytes) };
    assert!(contents.iter().all(|&byte| byte == 0));
    let purged = world.os().purged_bytes() - before;
    free(heap, start);
    world.check().unwrap();
    purged
}

/// A world whose kernel says that memory is `resident`.
fn world(resident: bool) -> World {
    let world = World::new(4096);
    world.os().say_resident(resident);
    world
}

#[test]
#[cfg_attr(miri, ignore = "looks at 16 MiB byte by byte")]
fn a_long_block_without_memory_is_purged_up_to_its_last_whole_os_page() {
    assert_eq!(cleared(&world(false), 8 * MIB + 100), 8 * MIB as u64);
    assert_eq!(cleared(&world(true), 8 * MIB + 100), 0);
}

#[test]
fn a_short_block_is_written() {
    assert_eq!(cleared(&world(false), MIB), 0);
}

#[test]
#[cfg_attr(miri, ignore = "looks at 16 MiB byte by byte")]
fn where_the_kernel_may_not_be_asked_a_block_is_written() {
    for (option, value) in [(key::SANDBOX, "on"), (key::PREFAULT, "touch")] {
        let world = world(false);
        world.set(option, value);
        assert_eq!(cleared(&world, 8 * MIB), 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "looks at 8 MiB byte by byte")]
fn a_block_that_cannot_be_purged_to_zero_is_written() {
    let world = world(false);
    world.os().keep_contents_on_purge();
    cleared(&world, 8 * MIB);
}
