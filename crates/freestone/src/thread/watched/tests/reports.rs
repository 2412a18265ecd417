//! What a report says of a block: its bytes, the size that was asked for, and the offset of what was written.
use super::*;
use crate::config::Harden;

/// Bytes of the class of a block for 40 bytes, and what is left of it without the trailer.
const BYTES: usize = 48;
const CAPACITY: usize = BYTES - TRAILER_BYTES;

/// Writes zeros to the trailer of a block whose class has as many bytes.
fn clear_trailer(block: *mut u8, block_bytes: usize) {
    (block_bytes - TRAILER_BYTES..block_bytes).for_each(|at| write(block, at as isize, 0));
}

/// Frees a block of `size` bytes that Rust's functions allocated aligned to 64 bytes, as a block of `claim`.
fn free_as(heap: Own<'_, Fake>, size: usize, claim: Claim) -> Vec<Misuse> {
    let block = heap.allocate_for(Request::new(size, 64, Family::Rust)).start;
    // SAFETY: the heap and the block are this test's.
    unsafe { heap.free_as(block, claim) };
    crimes()
}

#[test]
fn a_report_of_a_live_block_has_its_bytes_and_the_offset() {
    let world = watched();
    let heap = world.heap();
    let block = allocate(heap, 40);
    write(block, 41, 0x41);
    free(heap, block);
    assert_eq!(crimes(), [Misuse::Overflow { block_bytes: BYTES, size: Some(40), offset: 41 }]);
    let block = allocate(heap, 40);
    clear_trailer(block, BYTES);
    free(heap, block);
    assert_eq!(crimes(), [Misuse::Overflow { block_bytes: BYTES, size: None, offset: CAPACITY }]);
}

#[test]
fn a_report_of_a_second_free_has_the_blocks_bytes_wherever_the_block_is() {
    let world = watched();
    let (heap, other) = (world.heap(), world.heap());
    let (block, kept) = (allocate(heap, 40), allocate(heap, 40));
    free(heap, block);
    free(heap, block);
    free(other, block);
    upkeep::flush_all(heap);
    free(heap, block);
    assert_eq!(crimes(), [Misuse::DoubleFree { block_bytes: BYTES }; 3]);
    free(heap, kept);
}

#[test]
fn a_report_of_a_wrong_claim_has_what_was_asked_for_and_what_is_claimed() {
    let world = watched();
    let heap = world.heap();
    assert_eq!(free_as(heap, 40, Claim::layout(40, 128)), [Misuse::WrongAlign { size: 40, align: 64, claimed: 128 }]);
    assert_eq!(free_as(heap, 40, Claim::layout(41, 64)), [Misuse::WrongSize { size: 40, claimed: 41 }]);
    assert_eq!(free_as(heap, 40, Claim::of(Family::C)), [Misuse::WrongFamily { size: 40 }]);
    assert_eq!(free_as(heap, 40, Claim::NOTHING.sized(41)), [Misuse::WrongSize { size: 40, claimed: 41 }]);
}

#[test]
fn a_report_of_a_large_block_has_the_offset_of_what_was_written_behind_what_was_asked_for() {
    for behind in [0, 3] {
        let world = watched();
        let heap = world.heap();
        let (block, at) = (allocate(heap, 300_000), 300_000 + behind);
        // SAFETY: the run of the block is longer.
        let canary = unsafe { block.wrapping_add(at).read() };
        write(block, at as isize, !canary);
        free(heap, block);
        assert_eq!(crimes(), [Misuse::Overflow { block_bytes: 5 << 16, size: Some(300_000), offset: at }]);
    }
}

#[test]
fn a_report_of_a_write_to_a_freed_block_has_its_bytes_and_the_offset() {
    let world = watched();
    let heap = world.heap();
    let block = allocate(heap, 1000);
    free(heap, block);
    write(block, 17, 0x41);
    upkeep::flush_all(heap);
    let seen = crimes();
    let [Misuse::WriteAfterFree { block_bytes, size, offset }] = seen[..] else { panic!("{seen:?}") };
    assert_eq!((block_bytes, size, offset / 8), (block_bytes_of(1000), Some(1000), 17 / 8));
    let block = allocate(heap, 1000);
    free(heap, block);
    clear_trailer(block, block_bytes);
    upkeep::flush_all(heap);
    assert_eq!(crimes(), [Misuse::WriteAfterFree { block_bytes, size: None, offset: block_bytes - TRAILER_BYTES }]);
}

/// Bytes of the class of a block for `size` bytes.
fn block_bytes_of(size: usize) -> usize {
    block_bytes(class_of(size + TRAILER_BYTES))
}

/// Two blocks of `size` bytes, of which the second begins where the first ends, and every other block that had to be allocated for that.
fn neighbours(heap: Own<'_, Fake>, size: usize) -> (*mut u8, *mut u8, Vec<*mut u8>) {
    let mut blocks: Vec<_> = (0..12).map(|_| allocate(heap, size)).collect();
    blocks.sort_unstable();
    let is_pair = |pair: &[*mut u8]| pair[1].addr() - pair[0].addr() == block_bytes_of(size);
    let at = blocks.windows(2).position(is_pair).expect("some of many in one span touch");
    let (left, right) = (blocks.remove(at), blocks.remove(at));
    (left, right, blocks)
}

#[test]
fn a_free_left_neighbour_is_reported_once_if_its_trailer_was_written_over() {
    for size in [58, 1000, 5000] {
        let world = watched();
        let heap = world.heap();
        let (left, right, others) = neighbours(heap, size);
        free(heap, left);
        upkeep::flush_all(heap);
        assert_eq!(crimes(), []);
        let block_bytes = block_bytes_of(size);
        (1..=TRAILER_BYTES).for_each(|at| write(left, (block_bytes - at) as isize, 0x41));
        free(heap, right);
        let (size, offset) = (None, block_bytes - TRAILER_BYTES);
        assert_eq!(seen::take(), [(Misuse::WriteAfterFree { block_bytes, size, offset }, left.addr())]);
        others.into_iter().for_each(|block| free(heap, block));
        upkeep::flush_all(heap);
        assert_eq!(crimes(), []);
        world.check().unwrap();
    }
}

/// Blocks longer than an OS page lose their trailers when the memory of their span goes back while others stay.
#[test]
fn a_block_whose_memory_was_purged_is_neither_reported_nor_taken_for_a_live_one() {
    for size in [5000, 20_000] {
        let world = watched();
        world.set(key::DIRTY_MAX, "0");
        let heap = world.heap();
        let blocks: Vec<_> = (0..64).map(|_| allocate(heap, size)).collect();
        blocks.iter().for_each(|&block| (0..size).step_by(512).for_each(|at| write(block, at as isize, 7)));
        let (kept, gone): (Vec<_>, Vec<_>) = blocks.into_iter().enumerate().partition(|(at, _)| at % 8 == 0);
        let before = world.os().purged_bytes();
        gone.iter().for_each(|&(_, block)| free(heap, block));
        upkeep::flush_all(heap);
        assert!(world.os().purged_bytes() > before, "nothing was purged");
        let again: Vec<_> = (0..32).map(|_| allocate(heap, size)).collect();
        assert_eq!(crimes(), [], "a purged block is reported");
        kept.iter().map(|&(_, block)| block).chain(again).for_each(|block| free(heap, block));
        upkeep::flush_all(heap);
        assert_eq!(crimes(), []);
        world.check().unwrap();
    }
}

#[test]
fn a_write_to_a_block_on_its_way_to_a_hardened_heap_is_seen_though_the_process_is_not_hardened() {
    let world = World::hardened(4096, "off").ignoring_misuse();
    // SAFETY: the heap and its blocks are this test's, and the world outlives them.
    let heap = unsafe { world.threads.create_explicit(&world.shared, Harden::Checks) }.unwrap();
    let new_block = || allocate(heap.enter().own(), 40);
    let (freed, live) = (new_block(), new_block());
    free(world.heap(), freed);
    // SAFETY: as in `write`.
    unsafe { freed.cast::<*mut u8>().write(live) };
    upkeep::flush_all(heap.enter().own());
    assert_eq!(crimes(), [Misuse::link_written(48)]);
    assert_eq!(heap.enter().own().usable_bytes(live), Some(40), "it is not taken for a freed block");
}

#[test]
fn a_hardened_heap_sends_others_their_blocks_in_a_process_that_is_not_hardened() {
    let world = World::hardened(4096, "off").ignoring_misuse();
    let other = world.heap();
    // SAFETY: the heap and its blocks are this test's, and the world outlives them.
    let heap = unsafe { world.threads.create_explicit(&world.shared, Harden::Checks) }.unwrap();
    for _ in 0..100 {
        let block = other.allocate(40, 1).start;
        free(heap.enter().own(), block);
    }
    upkeep::flush_all(heap.enter().own());
    upkeep::flush_all(other);
    assert_eq!(crimes(), []);
    assert_eq!(world.check(), Ok(()));
    assert_eq!(other.spans().of(class_of(40)).n_out(), 0, "all are back");
}
