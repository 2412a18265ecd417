//! The single steps by which an allocation becomes a guarded one, with the numbers at their borders.
use super::*;
use crate::thread::countdown::units_until;
use freestone_os::process;

const SIZE: usize = 48;

fn class() -> usize {
    class_of(SIZE)
}

/// A rate at which no countdown ends by itself here.
const RARE: u64 = 1 << 30;

fn rare_world(level: &str) -> World {
    world_with(&std::format!("{RARE}"), level)
}

/// Makes the countdown of a heap end with the `left`-th unit from now.
fn set_left(heap: Own<'_, Fake>, left: u64) {
    let random = 1 << 63;
    let countdown = heap.bins().countdown();
    let _ = countdown.pass(0, RARE, || random);
    let _ = countdown.skip(units_until(RARE, random) - left);
}

/// Whether so many units are left, and no more.
fn is_left(heap: Own<'_, Fake>, left: u64) -> bool {
    !heap.bins().countdown().skip(left) && heap.bins().countdown().skip(left - 1)
}

#[test]
fn the_countdown_is_told_of_the_blocks_that_were_handed_out_and_of_the_next_one() {
    for (n, more) in [(0, 1), (5, 1), (5, 0), (3, 4)] {
        let world = rare_world("default");
        let heap = world.heap();
        set_left(heap, 100);
        (0..n).for_each(|_| heap.bins().count_single_alloc(class()));
        count(heap, class(), RARE, more);
        assert!(is_left(heap, 100 - n - more), "{n} and {more}");
        assert_eq!(heap.bins().uncounted(class()), 0);
        heap.bins().count_moved(class(), -heap.bins().len(class()));
    }
}

#[test]
fn the_samples_that_fall_among_the_blocks_are_due() {
    let world = rare_world("default");
    let heap = world.heap();
    set_left(heap, 5);
    (0..4).for_each(|_| heap.bins().count_single_alloc(class()));
    count(heap, class(), RARE, 0);
    assert!(!heap.bins().is_due(class()));
    count(heap, class(), RARE, 1);
    assert!(heap.bins().take_due(class()) && !heap.bins().is_due(class()));
}

/// A heap with blocks in its bin, of which `n` were handed out since the countdown was told of them, and so many allocations due.
fn with_due<'a>(world: &'a World, n: u64, n_due: u32) -> Own<'a, Fake> {
    let heap = world.heap();
    let blocks: Vec<_> = (0..20).map(|_| allocate(heap, SIZE)).collect();
    blocks.iter().for_each(|&block| free(heap, block));
    let _ = heap.bins().take_uncounted(class(), 0);
    assert!(!heap.bins().is_empty(class()) && !heap.bins().has_aside(class()));
    (0..n).for_each(|_| free(heap, heap.bins().pop(class())));
    heap.bins().add_due(class(), n_due);
    heap
}

#[test]
fn blocks_are_set_aside_only_if_an_allocation_is_due_and_others_found_blocks_meanwhile() {
    for (n, n_due, expected) in [(0, 0, false), (3, 0, false), (0, 1, false), (1, 1, true), (3, 2, true)] {
        let world = rare_world("default");
        let heap = with_due(&world, n, n_due);
        after_overflow(heap, class());
        assert_eq!(heap.bins().has_aside(class()), expected, "{n} and {n_due}");
        assert_eq!((heap.bins().uncounted(class()), heap.bins().is_due(class())), (0, n_due > 0), "{n} and {n_due}");
        assert_eq!(put_back(heap, class()), expected);
        assert!(!put_back(heap, class()) && !heap.bins().has_aside(class()));
        world.check().unwrap();
    }
}

#[test]
fn what_was_set_aside_comes_back_once_none_is_due() {
    let world = rare_world("default");
    let heap = with_due(&world, 1, 1);
    after_overflow(heap, class());
    let guarded = allocate(heap, SIZE);
    assert!(is_guarded(&world, guarded) && heap.bins().has_aside(class()));
    let ordinary = allocate(heap, SIZE);
    assert!(!is_guarded(&world, ordinary) && !heap.bins().has_aside(class()) && !heap.bins().is_empty(class()));
    [guarded, ordinary].into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn a_slow_path_samples_if_guards_or_the_profile_are_on() {
    for (guards_some, profiles) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = if guards_some { world_with("5", "default") } else { World::new(4096) };
        assert!(!profiles || world.shared.profile.start(1));
        let heap = world.heap();
        assert_eq!(is_on(heap), guards_some || profiles, "{guards_some} {profiles}");
        assert_eq!((guards(heap), rate(heap)), (guards_some, guards_some.then_some(5)));
        assert_eq!(rate(world.explicit_heap().enter().own()), None);
    }
}

#[test]
fn the_hard_limit_has_room_for_a_guarded_block_and_both_pages_beside_it() {
    let world = world_with("1", "default");
    let heap = world.heap();
    free(heap, allocate(heap, 10));
    let size = 5000;
    let least = world.shared.pages.limited_bytes() + 2 * 4096 + size;
    for (limit, expected) in [(least, true), (least - 1, false), (least + 1, true)] {
        world.shared.settings().store(key::LIMIT_HARD, limit);
        assert_eq!(has_room(heap, size), expected, "{}", limit as i64 - least as i64);
    }
}

/// The heaps here are not this thread's: each time, the kernel is asked.
#[test]
fn a_guarded_block_of_a_heap_that_threads_share_names_the_thread_that_is_there() {
    let world = world_with("1", "default");
    let heap = world.heap();
    assert_eq!(thread_id(heap), process::thread_id());
    heap.heap().set_thread_id(12_345);
    assert_eq!(thread_id(heap), process::thread_id());
    assert_eq!(here(heap).thread, process::thread_id());
}
