//! The fast ways of a watched heap: what they do, the slow ways would do as well.
use super::*;
use crate::size_class::GRANULE_BYTES;
use crate::span::marked_block::Kind;
use crate::thread::watched::allocate::{at_hand, cleared_at_hand};
use crate::thread::watched::examine::{examine_own, if_whole};
use crate::thread::watched::magazine::least;

/// Whether the fast way of a free takes the block at an address, and what the slow way finds to be wrong with it.
fn both(heap: Own<'_, Fake>, start: *mut u8, claim: Claim) -> (bool, bool, Vec<Misuse>) {
    let watch = heap.watch().expect("the heap is watched");
    let (page, class) = heap.lookup().own_page_and_class(start.addr()).expect("it is in a span of this heap");
    let is_fast =
        if_whole(watch, (page, (start, class)), claim, Kind::of(block_bytes(class), watch.secret())).is_some();
    let is_slow = examine_own(heap, (start, class), claim).is_some();
    (is_fast, is_slow, crimes())
}

/// Whether the fast way takes a block. It does so exactly if the slow way takes it and has nothing to report.
fn is_taken(heap: Own<'_, Fake>, start: *mut u8, claim: Claim) -> bool {
    let (is_fast, is_slow, crimes) = both(heap, start, claim);
    assert_eq!(is_fast, is_slow && crimes.is_empty(), "{start:?} {claim:?}: {is_slow} {crimes:?}");
    is_fast
}

/// Sizes of small blocks: with a canary of every length, and none.
const SMALL: [usize; 12] = [1, 8, 12, 13, 27, 28, 44, 60, 100, 1000, 5000, 20_000];

#[test]
fn the_fast_way_of_a_free_takes_a_whole_block_that_is_out_and_nothing_else() {
    for level in ["checks", "full"] {
        let world = World::hardened(4096, level).ignoring_misuse();
        let heap = world.heap();
        let of_c = Claim::of(Family::C);
        for size in SMALL.into_iter().step_by(if cfg!(miri) { 4 } else { 1 }) {
            let blocks: Vec<_> = (0..20).map(|_| allocate(heap, size)).collect();
            assert!(blocks.iter().all(|&block| is_taken(heap, block, of_c)), "{level} {size}");
            for (claim, expected) in [
                (of_c.sized(size), true),
                (of_c.sized(size + 1), false),
                (of_c.aligned(1), true),
                (of_c.aligned(GRANULE_BYTES), true),
                (of_c.aligned(2 * GRANULE_BYTES), false),
                (of_c.sized(size + 1).aligned(1), false),
                (of_c.sized(size).aligned(64), false),
                (Claim::of(Family::New), false),
            ] {
                assert_eq!(is_taken(heap, blocks[3], claim), expected, "{level} {size} {claim:?}");
            }
            if size > 2 * GRANULE_BYTES {
                assert!(!is_taken(heap, blocks[3].wrapping_add(GRANULE_BYTES), of_c), "{level} {size}");
            }
            free(heap, blocks[5]);
            assert!(!is_taken(heap, blocks[5], of_c), "{level} {size}");
            blocks.iter().filter(|&&block| block != blocks[5]).for_each(|&block| free(heap, block));
            assert_eq!(crimes(), []);
        }
        world.check().unwrap();
    }
}

#[test]
fn the_fast_way_of_a_free_takes_no_block_beside_or_with_damage() {
    for size in SMALL {
        // Each byte from the end of what was asked for to that of the block, in turn.
        let bytes = block_bytes(class_of((size + TRAILER_BYTES).max(LEAST_BLOCK_BYTES)));
        let ends = (size..bytes).take(20).chain(bytes.saturating_sub(16).max(size)..bytes);
        for at in ends.step_by(if cfg!(miri) { 9 } else { 1 }) {
            let world = watched();
            let heap = world.heap();
            let blocks: Vec<_> = (0..20).map(|_| allocate(heap, size)).collect();
            let (left, other) = (blocks[0], blocks[1]);
            // SAFETY: the byte is one of a block of this heap.
            let before = unsafe { left.wrapping_add(at).read() };
            write(left, at as isize, !before);
            let right = left.wrapping_add(bytes);
            let _ = is_taken(heap, left, Claim::of(Family::C));
            write(left, at as isize, !before);
            if blocks.contains(&right) {
                let _ = is_taken(heap, right, Claim::of(Family::C));
            }
            let far = if other == right { blocks[2] } else { other };
            assert!(is_taken(heap, far, Claim::of(Family::C)), "{size}");
        }
    }
}

#[test]
fn the_fast_way_of_a_free_takes_no_address_where_no_block_was_carved() {
    for size in [28, 1000, 20_000] {
        let world = watched();
        let heap = world.heap();
        let blocks: Vec<_> = (0..3).map(|_| allocate(heap, size)).collect();
        let (page, class) = heap.lookup().own_page_and_class(blocks[0].addr()).expect("it is this heap's");
        let bytes = block_bytes(class);
        let span = crate::testing::span_of(&world, blocks[0]);
        let (start, span_bytes) = (span.start(), span.n_pages().to_bytes().0);
        assert!(page.0 >= span.page().0);
        // Behind the span's last block there may be some bytes.
        for at in (0..span_bytes).step_by(bytes) {
            let block = start.wrapping_add(at);
            let is_out = blocks.contains(&block);
            assert_eq!(is_taken(heap, block, Claim::of(Family::C)), is_out, "{size}, {at}");
        }
    }
}

/// Allocates and frees blocks until some for `size` bytes are at hand.
fn bring(heap: Own<'_, Fake>, size: usize) {
    let class = class_of((size + TRAILER_BYTES).max(LEAST_BLOCK_BYTES));
    let watch = heap.watch().expect("the heap is watched");
    while watch.magazine(class).len() <= least(class) {
        free(heap, allocate(heap, size));
    }
}

#[test]
fn a_block_is_at_hand_if_its_magazine_has_enough() {
    let world = watched();
    let heap = world.heap();
    let watch = heap.watch().expect("the heap is watched");
    for (size, expected) in [
        (40, true),
        (0, true),
        (12, true),
        (28, true),
        (1000, true),
        (SMALL_MAX - TRAILER_BYTES, false),
        (SMALL_MAX - TRAILER_BYTES + 1, false),
        (SMALL_MAX, false),
        (1 << 20, false),
        (usize::MAX, false),
    ] {
        if expected {
            bring(heap, size);
        }
        let block = at_hand(heap, watch, (size, Family::C), Kind::FILLED);
        assert_eq!(!block.is_null(), expected, "{size}");
        if expected {
            assert_eq!(heap.usable_bytes(block), Some(size));
            let class = heap.lookup().own_class(block.addr()).expect("it is this heap's");
            assert_eq!(class, class_of((size + TRAILER_BYTES).max(LEAST_BLOCK_BYTES)));
            free(heap, block);
        }
    }
    assert_eq!(crimes(), []);
    world.check().unwrap();
}

#[test]
fn a_watched_heap_has_blocks_at_hand_for_calls_that_have_no_proof_that_it_is_alive() {
    for level in ["default", "checks", "full"] {
        for guards_some in [false, true] {
            let world = World::hardened(4096, level);
            let heap = world.heap();
            if heap.watch().is_some() {
                bring(heap, 40);
            }
            if guards_some {
                world.set(key::GUARD_SAMPLE, "1000000");
            }
            // SAFETY: the heap is this test's.
            let current = unsafe { heap.heap().as_current() };
            let (filled, cleared) = (current.at_hand(40, Family::C), current.cleared_at_hand(40, Family::C));
            assert!(filled.is_null() || cleared.is_null());
            let block = if level == "full" { cleared } else { filled };
            assert_eq!(!block.is_null(), level != "default" && !guards_some, "{level} {guards_some}");
            if !block.is_null() {
                free(heap, block);
            }
        }
    }
}

#[test]
fn a_block_of_no_bytes_is_never_at_hand_where_it_is_another_kind_of_block() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    let watch = heap.watch().expect("the heap is watched");
    for (size, expected) in [(0, false), (1, true), (40, true)] {
        bring(heap, size.max(1));
        let block = cleared_at_hand(heap, watch, (size, Family::C));
        assert_eq!(!block.is_null(), expected, "{size}");
        if expected {
            free(heap, block);
        }
    }
    world.check().unwrap();
}

#[test]
fn a_magazine_gives_blocks_until_it_has_few_and_all_that_have_waited() {
    let world = watched();
    let heap = world.heap();
    let watch = heap.watch().expect("the heap is watched");
    let class = class_of(64);
    let (magazine, waiting, least) = (watch.magazine(class), watch.quarantine(), least(class));
    assert!(magazine.len() == 0 && least > 1);
    let block = |number: usize| core::ptr::without_provenance_mut::<u8>(number * 64);
    (1..=least + 1).for_each(|at| assert!(magazine.put(class, block(at))));
    for n_left in [least, least - 1] {
        let chosen = watch.choose(class).expect("it has enough");
        assert!(magazine.len() == n_left && magazine.iter().all(|other| other != chosen));
    }
    assert!(watch.choose(class).is_none(), "it has few");
    waiting.share(1);
    waiting.push(block(100), 64, class);
    assert!(watch.choose(class).is_none(), "it has not waited");
    waiting.push(block(101), 128 << 10, class);
    let chosen = watch.choose(class).expect("one has waited");
    assert!(chosen != block(100) && magazine.len() == least - 1);
    assert!(magazine.iter().any(|other| other == block(100)), "it took the place of the one that was chosen");
    assert_eq!(waiting.iter().collect::<Vec<_>>(), [block(101)]);
    while magazine.take(class, 0).is_some() {}
    assert!(waiting.pop(class, true).is_some() && watch.choose(class).is_none());
    waiting.push(block(102), 64, class);
    waiting.push(block(103), 128 << 10, crate::thread::watched::quarantine::OTHERS);
    assert!(watch.choose(class).is_none(), "an empty magazine has none to give for the one that has waited");
    while waiting.pop(class, true).is_some() || waiting.pop(crate::thread::watched::quarantine::OTHERS, true).is_some()
    {
    }
}

#[test]
fn a_record_whose_heap_was_watched_may_be_that_of_one_that_is_not() {
    let world = watched();
    let first = world.heap();
    let record: *const _ = first.heap();
    free(first, allocate(first, 40));
    assert!(first.watch().is_some());
    world.end(first);
    world.set(key::HARDEN, "default");
    let second = world.heap();
    assert!(core::ptr::eq(second.heap(), record) && second.watch().is_none());
    let block = allocate(second, 40);
    assert_eq!(second.usable_bytes(block), Some(block_bytes(class_of(40))));
    free(second, block);
    world.check().unwrap();
}
