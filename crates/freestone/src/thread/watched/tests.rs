//! Long because: each crime that a watched heap sees has a test here.
#![allow(unsafe_code)]
use crate::config::key;
use crate::misuse::{Misuse, seen};
use crate::page::PageStats;
use crate::size_class::{LAST_CLASS, N_CLASSES, SMALL_MAX, block_bytes, class_of};
use crate::span::family::Family;
use crate::span::trailer::{LEAST_BLOCK_BYTES, TRAILER_BYTES};
use crate::testing::World;
use crate::thread::drain::drain;
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Own;
use crate::thread::upkeep;
use crate::thread::watched::homecoming;
use crate::thread::watched::request::{Claim, Request};
use freestone_os::fake::Fake;
use std::collections::VecDeque;
use std::vec::Vec;

mod choices;
mod erasing;
mod explicit_heaps;
mod fast_ways;
mod purged;
mod reports;
mod resizing;
mod streams;

/// A world of watched heaps that go on after a crime, without a word.
pub(super) fn watched() -> World {
    World::hardened(4096, "checks").ignoring_misuse()
}

/// What the crimes were that have been seen since this was last asked.
fn crimes() -> Vec<Misuse> {
    seen::take().into_iter().map(|(what, _)| what).collect()
}

fn allocate(heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    let block = heap.allocate(size, 1).start;
    assert!(!block.is_null());
    block
}

fn free(heap: Own<'_, Fake>, block: *mut u8) {
    // SAFETY: the heap is this test's; what is wrong with the block is what the test is about.
    unsafe { heap.free(block) }
}

fn write(block: *mut u8, at: isize, byte: u8) {
    // SAFETY: the tests write to mapped memory of the world's heaps.
    unsafe { block.wrapping_offset(at).write(byte) }
}

/// Sizes of each kind of block: small, filled in parts, of several OS pages, large.
const SIZES: [usize; 11] = [0, 1, 8, 28, 100, 1000, 4096, 20_000, 32_764, 32_768, 262_144];

#[test]
fn no_hot_path_of_a_watched_heap_succeeds() {
    let world = watched();
    let heap = world.heap();
    let blocks: Vec<_> = (1..100).map(|n| allocate(heap, n * 50)).collect();
    // SAFETY: the heap is this test's.
    let current = unsafe { heap.heap().as_current() };
    for &block in &blocks {
        assert!(current.own_class(block.addr()).is_none() && current.small_class(block.addr()).is_none());
    }
    // SAFETY: the block is given back as it was.
    assert!(current.try_push(unsafe { FreeBlock::new(blocks[0], 1) }).is_err());
    blocks.into_iter().for_each(|block| free(heap, block));
    assert!((0..N_CLASSES).all(|class| current.pop(class).is_null()));
    assert_eq!(crimes(), []);
    world.check().unwrap();
}

#[test]
fn the_usable_size_is_what_was_asked_for_and_a_resize_changes_it() {
    let world = watched();
    let heap = world.heap();
    for size in SIZES {
        let mut block = allocate(heap, size);
        assert_eq!(heap.usable_bytes(block), Some(size));
        for next in [size + 1, size / 2, 3 * size, 200_000, 10] {
            // SAFETY: the block is this test's.
            block = unsafe { heap.reallocate(block, next, 1) };
            assert_eq!(heap.usable_bytes(block), Some(next), "{size}");
        }
        free(heap, block);
    }
    assert_eq!(crimes(), []);
}

#[test]
fn a_second_free_is_seen_whether_the_block_waits_or_is_back_or_was_freed_by_another() {
    let world = watched();
    let (heap, other) = (world.heap(), world.heap());
    for size in SIZES {
        for second in [heap, other] {
            for releases in [false, true] {
                let (block, _neighbour) = (allocate(heap, size), allocate(heap, size));
                free(heap, block);
                // Large blocks go back to the page heap then, and are in no list of this heap.
                if releases && size < 30_000 {
                    upkeep::flush_all(heap);
                }
                assert_eq!(crimes(), []);
                free(second, block);
                assert!(matches!(crimes()[..], [Misuse::DoubleFree { .. }]), "{size}, {releases}");
            }
        }
    }
    world.check().unwrap();
}

#[test]
fn an_address_inside_a_block_is_seen_and_one_that_was_never_handed_out() {
    let world = watched();
    let (heap, other) = (world.heap(), world.heap());
    for size in [28, 100, 1000, 20_000, 262_144] {
        let block = allocate(heap, size);
        for caller in [heap, other] {
            free(caller, block.wrapping_add(16));
            assert!(matches!(crimes()[..], [Misuse::Interior { offset: 16, .. }]), "{size}");
        }
        free(heap, block);
    }
    let block = allocate(heap, 20_000);
    free(heap, block.wrapping_add(3 * 20_480));
    free(heap, core::ptr::without_provenance_mut(0x1000));
    assert_eq!(crimes(), [Misuse::Foreign, Misuse::Foreign]);
    world.check().unwrap();
}

#[test]
fn a_byte_written_behind_the_end_is_seen_by_the_free() {
    let world = watched();
    let heap = world.heap();
    for size in (0..200).step_by(if cfg!(miri) { 23 } else { 1 }).chain(SIZES) {
        // What is written to the trailer is noticed but for chance.
        let n = canary_bytes(size).min(4);
        if n == 0 {
            continue;
        }
        let seen = overflow(heap, size, n);
        assert!(!seen.is_empty() && seen.iter().all(is_overflow), "{size}: {seen:?}");
    }
}

#[test]
fn a_block_of_32_kib_is_a_small_one_of_the_last_class() {
    let world = watched();
    let heap = world.heap();
    for size in [SMALL_MAX - TRAILER_BYTES + 1, SMALL_MAX] {
        let block = allocate(heap, size);
        assert_eq!(heap.lookup().own_class(block.addr()), Some(LAST_CLASS), "{size}");
        assert_eq!(heap.usable_bytes(block), Some(size));
        free(heap, block);
    }
    world.check().unwrap();
}

/// Bytes of canary that a block for `size` bytes has at least. If it has none, its trailer is right behind the end.
fn canary_bytes(size: usize) -> usize {
    let bytes = size + TRAILER_BYTES;
    if bytes > SMALL_MAX { 16 } else { block_bytes(class_of(bytes.max(LEAST_BLOCK_BYTES))) - bytes }
}

/// What is reported of a block with `n` bytes written behind its end. A block whose trailer is gone stays as it is, and its right neighbour's free
/// reports it again.
fn overflow(heap: Own<'_, Fake>, size: usize, n: usize) -> Vec<Misuse> {
    let block = allocate(heap, size);
    for offset in 0..n {
        write(block, (size + offset) as isize, 0x41);
    }
    free(heap, block);
    crimes()
}

fn is_overflow(what: &Misuse) -> bool {
    matches!(what, Misuse::Overflow { .. })
}

/// A trailer has ten bits of check: one of a thousand that are written over is not noticed.
#[test]
fn a_trailer_written_over_is_seen_but_for_chance() {
    let world = watched();
    let heap = world.heap();
    let seen: Vec<_> = (0..200).map(|_| overflow(heap, 60, 4)).collect();
    assert!(seen.iter().filter(|seen| !seen.is_empty() && seen.iter().all(is_overflow)).count() > 180);
}

#[test]
fn what_was_written_behind_the_left_neighbour_is_seen_too() {
    let world = watched();
    let heap = world.heap();
    let mut blocks: Vec<_> = (0..8).map(|_| allocate(heap, 58)).collect();
    blocks.sort_unstable();
    let right = blocks.windows(2).find(|pair| pair[1].addr() - pair[0].addr() == 64).expect("eight random of 64 touch");
    // The last of what lies between the two.
    write(right[1], -5, 0x41);
    write(right[1], -1, 0x41);
    free(heap, right[1]);
    let seen = seen::take();
    assert!(matches!(seen[..], [(Misuse::Overflow { .. }, left)] if left == right[0].addr()), "{seen:?}");
}

#[test]
fn a_write_after_free_is_seen_when_the_block_leaves_the_quarantine_and_when_it_is_handed_out() {
    let world = watched();
    let heap = world.heap();
    for size in SIZES.into_iter().filter(|&size| size > 0) {
        for releases in [false, true] {
            let (block, _kept) = (allocate(heap, size), allocate(heap, size));
            free(heap, block);
            if releases {
                if size > 30_000 {
                    continue;
                }
                upkeep::flush_all(heap);
            }
            write(block, size as isize / 2 % 64, 1);
            if releases {
                while allocate(heap, size) != block {}
            } else {
                upkeep::flush_all(heap);
            }
            let seen = crimes();
            assert!(matches!(seen[..], [Misuse::WriteAfterFree { .. }]), "{size}, {releases}: {seen:?}");
        }
    }
}

#[test]
fn a_wrong_size_alignment_or_family_is_seen() {
    let world = watched();
    let heap = world.heap();
    let rust = |size, align| heap.allocate_for(Request::new(size, align, Family::Rust)).start;
    for size in [8, 4096, 262_144] {
        for (claim, is_right) in [
            (Claim::of(Family::C), false),
            (Claim::layout(size, 64), true),
            (Claim::layout(size + 1, 64), false),
            (Claim::layout(size, 128), false),
            (Claim::of(Family::C).sized(size).aligned(64), false),
            (Claim::NOTHING, true),
        ] {
            // SAFETY: the heap and the block are this test's.
            unsafe { heap.free_as(rust(size, 64), claim) };
            assert_eq!(crimes().is_empty(), is_right, "{size}: {claim:?}");
        }
        for (claim, is_right) in [
            (Claim::of(Family::C), true),
            (Claim::of(Family::C).sized(size), true),
            (Claim::of(Family::C).sized(size - 1), false),
            (Claim::of(Family::C).sized(size).aligned(16), true),
        ] {
            // SAFETY: as above.
            unsafe { heap.free_as(allocate(heap, size), claim) };
            assert_eq!(crimes().is_empty(), is_right, "{size}: {claim:?}");
        }
    }
}

#[test]
fn a_freed_block_waits_while_others_come_and_go() {
    let world = watched();
    let heap = world.heap();
    let first = allocate(heap, 100);
    free(heap, first);
    for _ in 0..500 {
        let block = allocate(heap, 100);
        assert_ne!(block, first);
        free(heap, block);
    }
}

#[test]
fn a_thread_that_exits_leaves_nothing_in_its_quarantine() {
    let world = watched();
    let (heap, other) = (world.heap(), world.heap());
    let theirs: Vec<_> = (0..100).map(|n| allocate(other, n * 7)).collect();
    let large = allocate(heap, 100_000);
    (0..100).for_each(|n| free(heap, allocate(heap, n * 7)));
    theirs.into_iter().for_each(|block| free(heap, block));
    free(heap, large);
    world.end(heap);
    world.end(other);
    world.check().unwrap();
    let PageStats { small_pages, large_pages, .. } = world.shared.pages.stats();
    assert_eq!((small_pages, large_pages), (0, 0), "everything came home");
    assert_eq!(crimes(), []);
}

#[test]
fn the_quarantine_gives_way_before_an_allocation_fails() {
    let world = watched();
    world.set(key::LIMIT_HARD, "2m");
    let heap = world.heap();
    // Nearly all memory is freed, and waits; then all of it is asked for again.
    for _ in 0..if cfg!(miri) { 3 } else { 20 } {
        let blocks: Vec<_> =
            (0..).map(|_| heap.allocate(30_000, 1).start).take_while(|block| !block.is_null()).collect();
        assert!(blocks.len() > 16, "{} blocks", blocks.len());
        blocks.into_iter().for_each(|block| free(heap, block));
    }
    assert_eq!(crimes(), []);
    world.check().unwrap();
}

/// A freed large block waits, or is held back: it does not come to the page heap.
#[test]
fn a_program_that_only_frees_large_blocks_gives_back_what_has_expired() {
    for level in ["checks", "full"] {
        let world = World::hardened(4096, level);
        world.set(key::DECAY_MS, "1000");
        world.set(key::DIRTY_MAX, "64m");
        let heap = world.heap();
        // So many blocks stay that no burst ends.
        let _live: Vec<_> = (0..3000).map(|_| allocate(heap, 48)).collect();
        let large = [(); 2].map(|()| allocate(heap, 100_000));
        let small: Vec<_> = (0..3000).map(|_| allocate(heap, 1000)).collect();
        small.into_iter().for_each(|block| free(heap, block));
        upkeep::flush_all(heap);
        assert!(world.shared.pages.stats().dirty_pages > 10, "{level}");
        for block in large {
            world.os().advance_ms(2000);
            free(heap, block);
        }
        assert_eq!(world.shared.pages.stats().dirty_pages, 0, "{level}");
    }
}

#[test]
fn after_a_burst_nothing_stays_behind() {
    let world = watched();
    let heap = world.heap();
    let n = if cfg!(miri) { 1200 } else { 5000 };
    let blocks: Vec<_> = (0..n).map(|n| allocate(heap, n % 3000)).collect();
    let kept = allocate(heap, 10);
    blocks.into_iter().for_each(|block| free(heap, block));
    free(heap, kept);
    assert_eq!(world.small_span_pages(), 0);
}

#[test]
fn a_block_of_a_watched_explicit_heap_is_checked_by_a_thread_that_is_not_watched() {
    let world = World::new(4096).ignoring_misuse();
    let heap = world.heap();
    // SAFETY: what the heaps share is boxed and outlives the heap.
    let explicit = unsafe { world.threads.create_explicit(&world.shared, crate::config::Harden::Checks) }.unwrap();
    for size in [24, 1000, 100_000] {
        let [whole, broken, twice] = [0; 3].map(|_| explicit.enter().own().allocate(size, 1).start);
        assert_eq!(heap.usable_bytes(whole), Some(size));
        free(heap, whole);
        assert_eq!(crimes(), []);
        write(broken, size as isize, 1);
        free(heap, broken);
        assert!(matches!(crimes()[..], [Misuse::Overflow { .. }]));
        if size < 30_000 {
            free(heap, twice);
            free(heap, twice);
            assert!(matches!(crimes()[..], [Misuse::DoubleFree { .. }]));
        }
    }
    world.check().unwrap();
    // SAFETY: the heap and its blocks are not used afterwards.
    unsafe { world.threads.destroy(explicit) };
    world.check().unwrap();
    assert_eq!(crimes(), []);
}

#[test]
fn a_freed_block_of_a_watched_explicit_heap_waits_as_long_as_another() {
    let world = World::new(4096).ignoring_misuse();
    let heap = world.heap();
    // SAFETY: what the heaps share is boxed and outlives the heap.
    let explicit = unsafe { world.threads.create_explicit(&world.shared, crate::config::Harden::Checks) }.unwrap();
    let allocate = || explicit.enter().own().allocate(1000, 1).start;
    for _ in 0..20 {
        let (freed, written) = (allocate(), allocate());
        free(heap, freed);
        free(heap, written);
        write(written, 24, 1);
        for pair in 0..100 {
            let other = allocate();
            assert!(other != freed && other != written, "after {pair} pairs");
            free(heap, other);
        }
    }
    (0..2000).for_each(|_| free(heap, allocate()));
    assert_eq!(crimes().len(), 20, "each write to a freed block is reported");
    world.check().unwrap();
    // SAFETY: the heap and its blocks are not used afterwards.
    unsafe { world.threads.destroy(explicit) };
    world.check().unwrap();
}

#[test]
fn orphaned_blocks_are_handed_out_again_in_a_forked_child() {
    let world = watched();
    let (own, parent) = (world.heap(), world.heap());
    let n = if cfg!(miri) { 300 } else { 2000 };
    let blocks: Vec<_> = (0..n).map(|_| allocate(parent, 96)).collect();
    // SAFETY: there is one thread.
    unsafe { world.threads.orphan_others(Some(own)) };
    blocks.iter().for_each(|&block| free(own, block));
    upkeep::flush_all(own);
    let pages = world.small_span_pages();
    let again: Vec<_> = (0..n).map(|_| allocate(own, 96)).collect();
    assert!(blocks.iter().filter(|block| again.contains(block)).count() * 10 > n * 9);
    assert!(world.small_span_pages() <= pages + 2);
    again.into_iter().for_each(|block| free(own, block));
    assert_eq!(crimes(), []);
}

#[test]
fn a_link_that_was_written_to_a_block_freed_without_a_heap_is_no_overflow() {
    let world = watched();
    let (heap, other) = (world.heap(), world.heap());
    for size in (0..20).chain([100, 100_000]) {
        for freeing in [heap, other] {
            let block = allocate(heap, size);
            // SAFETY: the block is the test's, and has room for a link.
            unsafe { block.cast::<usize>().write(usize::MAX) };
            homecoming::mend_canary(&world.shared, block);
            free(freeing, block);
            assert_eq!(crimes(), [], "{size}");
        }
    }
}

/// A thread that frees two blocks of another for each that it allocates, which others free, has a full quarantine all the time.
#[test]
fn a_thread_that_frees_more_than_it_allocates_keeps_its_quarantine() {
    let world = World::hardened(4096, "checks");
    let (other, heap) = (world.heap(), world.heap());
    let blocks_of = |heap: Own<'_, Fake>| (0..500).map(|_| heap.allocate(100, 1).start).collect::<VecDeque<_>>();
    let (mut from_other, mut from_heap) = (blocks_of(other), blocks_of(heap));
    let mut least = usize::MAX;
    for round in 0..20_000 {
        for _ in 0..2 {
            from_other.push_back(other.allocate(100, 1).start);
            free(heap, from_other.pop_front().unwrap());
        }
        from_heap.push_back(heap.allocate(100, 1).start);
        free(other, from_heap.pop_front().unwrap());
        if round > 1000 {
            least = least.min(heap.watch().unwrap().quarantine().iter().count());
        }
    }
    assert!(least > 400, "{least} blocks were left in the quarantine");
    from_other.into_iter().for_each(|block| free(other, block));
    from_heap.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

/// Idle explicit heaps take nothing of what the quarantines of threads may hold together.
#[test]
fn explicit_heaps_leave_a_threads_quarantine_as_long_as_it_was() {
    let held = |n_heaps: usize| {
        let world = World::hardened(4096, "checks");
        let heap = world.heap();
        for _ in 0..n_heaps {
            world.explicit_heap();
        }
        for _ in 0..3000 {
            free(heap, heap.allocate(100, 1).start);
        }
        heap.watch().unwrap().quarantine().iter().count()
    };
    assert_eq!(held(0), held(200));
}
