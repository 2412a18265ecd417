//! Free blocks, and what of them lies in OS pages that were purged.
use super::*;
use crate::span::blocks::{is_free, n_blocks};
use crate::span::marked_block::MarkedBlock;
use crate::testing::{self, span_at};
use crate::thread::returns;
use freestone_testkit::ops::SplitMix;

const OS_PAGE_BYTES: usize = 4096;

/// Sizes of blocks some of which straddle OS pages: many in an OS page, few, and less than one.
const STRADDLING: [usize; 5] = [40, 700, 1300, 5000, 18_000];

/// The bytes of the blocks for so many.
fn bytes_for(size: usize) -> usize {
    block_bytes(class_of(size + TRAILER_BYTES))
}

/// A world whose heaps go on after a crime, and purge whenever they are asked to.
fn world(level: &str) -> World {
    let world = World::hardened(OS_PAGE_BYTES, level).ignoring_misuse();
    world.set(key::DECAY_MS, "0");
    world
}

/// Gives what a heap holds back to its spans, and the OS pages in which no block is out to the kernel.
fn purge(heap: Own<'_, Fake>) {
    upkeep::flush_all(heap);
    returns::sweep(heap);
}

/// The free blocks for `size` bytes whose trailers were purged.
fn without_trailer(world: &World, heap: Own<'_, Fake>, size: usize) -> Vec<*mut u8> {
    let (mut found, bytes) = (Vec::new(), bytes_for(size));
    heap.spans().of(class_of(bytes)).for_each(heap.layout(), |page, _| {
        let span = span_at(world, page);
        let free = (0..n_blocks(&span)).filter(|&index| is_free(&span, index));
        let starts = free.map(|index| span.start().wrapping_add(index * bytes));
        // SAFETY: the blocks are free ones of a watched span.
        found.extend(starts.filter(|&start| unsafe { MarkedBlock::at(start, bytes, &world.shared.secret) }.is_blank()));
    });
    found
}

/// Allocates `n` blocks for `size` bytes, frees most of them, and purges. Returns those that are left, and the free blocks whose trailers are gone.
fn leave_some(world: &World, heap: Own<'_, Fake>, (size, n): (usize, usize)) -> (Vec<*mut u8>, Vec<*mut u8>) {
    let mut random = SplitMix(1);
    let blocks: Vec<_> = (0..n).map(|_| allocate(heap, size)).collect();
    // One in so many stays that few OS pages have none.
    let one_in = 2 * (OS_PAGE_BYTES / size).max(1);
    let (left, given_up): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|_| random.below(one_in) == 0);
    given_up.into_iter().for_each(|block| free(heap, block));
    purge(heap);
    (left, without_trailer(world, heap, size))
}

/// The neighbour is in a magazine: it came out of its span for an allocation that took another block.
#[test]
fn a_block_may_be_freed_beside_one_whose_trailer_was_purged() {
    for (level, size) in ["checks", "full"].into_iter().flat_map(|level| [40, 300, 700].map(|size| (level, size))) {
        let world = world(level);
        let heap = world.heap();
        let mut n_cases = 0;
        for _ in 0..if cfg!(miri) { 1 } else { 50 } {
            let mut live: Vec<_> = (0..3 * OS_PAGE_BYTES / size).map(|_| allocate(heap, size)).collect();
            live.sort_unstable();
            let page_end = (live[0].addr() + 1).next_multiple_of(OS_PAGE_BYTES);
            let given_up = live.split_off(live.partition_point(|block| block.addr() + bytes_for(size) <= page_end));
            given_up.into_iter().for_each(|block| free(heap, block));
            purge(heap);
            let purged = without_trailer(&world, heap, size);
            // Some others are free, too: of them and that one a magazine keeps a few.
            live.split_off(live.len().saturating_sub(2)).into_iter().for_each(|block| free(heap, block));
            upkeep::flush_all(heap);
            for _ in 0..16 {
                let block = allocate(heap, size);
                let left = block.wrapping_sub(bytes_for(size));
                if purged.contains(&left) && !live.contains(&left) {
                    n_cases += 1;
                    free(heap, block);
                } else {
                    live.push(block);
                }
                assert_eq!(crimes(), [], "{level} {size}");
            }
            world.check().unwrap();
            live.into_iter().for_each(|block| free(heap, block));
            upkeep::flush_all(heap);
            assert_eq!(crimes(), [], "{level} {size}");
        }
        assert!(cfg!(miri) || n_cases > 3, "{level} {size}: {n_cases}");
    }
}

#[test]
fn a_write_after_free_to_what_is_left_of_a_purged_block_is_seen_when_it_leaves_its_span() {
    let n_os_pages = if cfg!(miri) { 10 } else { 40 };
    for (level, size) in ["checks", "full"].into_iter().flat_map(|level| STRADDLING.map(|size| (level, size))) {
        let world = world(level);
        let heap = world.heap();
        let (_live, mut purged) = leave_some(&world, heap, (size, (n_os_pages * OS_PAGE_BYTES / size).max(60)));
        assert!(!purged.is_empty());
        let in_first_page = |block: *mut u8| (OS_PAGE_BYTES - block.addr() % OS_PAGE_BYTES).min(size);
        let at = |block| if level == "full" { in_first_page(block) - 1 } else { 15 };
        purged.iter().for_each(|&block| write(block, at(block) as isize, 0x41));
        while !purged.is_empty() {
            allocate(heap, size);
            for (what, address) in seen::take() {
                let is_one = |block: &*mut u8| block.addr() == address;
                let block =
                    purged.swap_remove(purged.iter().position(is_one).expect("it was written, and reported once"));
                let expected = Misuse::WriteAfterFree { block_bytes: bytes_for(size), size: None, offset: at(block) };
                assert_eq!(what, expected, "{level}");
            }
        }
        world.check().unwrap();
    }
}

/// Some of the blocks were in a magazine and never handed out, so nobody has cleared them.
#[test]
fn a_block_whose_trailer_was_purged_is_zero_at_full_whatever_its_memory_was_before() {
    let step = if cfg!(miri) { 44 } else { 4 };
    for (size, n) in [100, 300, 700, 1300].into_iter().flat_map(|size| (10..90).step_by(step).map(move |n| (size, n))) {
        let world = world("full");
        let heap = world.heap();
        let first = allocate(heap, size);
        let span = testing::span_of(&world, first);
        // One OS page is carved, and the last block in it may end in the next one.
        let from = 2 * OS_PAGE_BYTES;
        testing::fill(span.start().wrapping_add(from), 0x5a, span.n_pages().to_bytes().0 - from);
        let (_live, mut purged) = leave_some(&world, heap, (size, n));
        while !purged.is_empty() {
            let block = heap.allocate(size, 1);
            assert!(block.zero && testing::is_filled(block.start, 0, size), "{size} {n}");
            purged.retain(|&other| other != block.start);
        }
        assert_eq!(crimes(), []);
    }
}

#[test]
fn the_check_of_all_invariants_sees_a_write_to_a_free_block() {
    for level in ["checks", "full"] {
        let world = World::hardened(OS_PAGE_BYTES, level);
        let heap = world.heap();
        let blocks: Vec<_> = (0..20).map(|_| allocate(heap, 100)).collect();
        let kept = allocate(heap, 100);
        blocks.iter().for_each(|&block| free(heap, block));
        upkeep::flush_all(heap);
        assert_eq!(world.check(), Ok(()), "{level}");
        let before = first_byte(blocks[7]);
        write(blocks[7], 0, !before);
        assert!(world.check().is_err(), "{level}");
        write(blocks[7], 0, before);
        assert_eq!(world.check(), Ok(()), "{level}");
        free(heap, kept);
    }
}

/// The first byte of a block.
fn first_byte(block: *mut u8) -> u8 {
    // SAFETY: the block is in a span of the test's world.
    unsafe { block.read() }
}
