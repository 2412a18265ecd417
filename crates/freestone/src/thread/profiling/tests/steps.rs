//! The single steps by which the hot paths are kept from passing a sample, each with the numbers at its borders. The tests of whole profiles take longer.
use super::*;
use crate::size_class::class_of;
use crate::testing::{freed, span_at};
use crate::thread::upkeep;
use core::cell::Cell;

const SIZE: usize = 48;

/// An interval so long that no countdown ends but those that a test sets.
const FAR: u64 = 1 << 50;

fn class() -> usize {
    class_of(SIZE)
}

/// Lets so many allocations of the class come before the next sampled one.
fn set_left(heap: Own<'_, Fake>, left: u64) {
    let countdowns = heap.heap().profile_countdowns();
    countdowns.session.set(heap.shared().profile.session());
    let before = if heap.watch().is_some() { 0 } else { heap.bins().allocs(class()) };
    countdowns.at[class()].set(before + left + 1);
}

fn withdrawn(heap: Own<'_, Fake>) -> &Cell<i64> {
    &heap.heap().profile_countdowns().withdrawn[class()]
}

/// Makes a bin have so many blocks and so much room, and nothing beside it.
fn set_bin(heap: Own<'_, Fake>, len: usize, room: i64) {
    upkeep::flush_all(heap);
    let blocks: Vec<_> = (0..len).map(|_| allocate(heap, SIZE)).collect();
    upkeep::flush_all(heap);
    heap.bins().grant(class(), room + len as i64);
    blocks.into_iter().for_each(|block| assert!(!heap.bins().push(freed(block, class()))));
    withdrawn(heap).set(0);
    assert_eq!((heap.bins().len_with_aside(class()), heap.bins().room(class())), (len as i64, room));
}

/// Whether a small block is a sampled one.
fn is_of_samples(world: &World, heap: Own<'_, Fake>, block: *mut u8) -> bool {
    let entry = world.shared.pages.view().entry(block.addr()).expect("the block is of this world");
    is_sampled(heap, entry.generation())
}

#[test]
fn few_blocks_stay_in_a_bin_and_half_of_what_is_left_if_it_ran_empty() {
    let of = |ran_empty| [0, 1, 2, 3, 10, 16, 17, 100, 1000].map(|left| share(left, ran_empty));
    assert_eq!(of(false), [0, 1, 1, 1, 5, 8, 8, 8, 62]);
    assert_eq!(of(true), [0, 1, 1, 1, 5, 8, 8, 50, 500]);
    assert_eq!([0, 7, 8, 16, 100].map(most_kept), [0, 7, 7, 14, 88]);
}

#[test]
fn blocks_and_room_together_are_no_more_than_is_left_and_the_rest_waits() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    for (len, room) in [(0, 0), (0, 9), (1, 3), (7, 0), (8, 8), (9, 0), (20, 7), (40, 1)] {
        for (left, ran_empty) in (0..60).flat_map(|left| [(left, false), (left, true)]) {
            set_bin(heap, len, room);
            settle(heap, class(), left as u64, ran_empty);
            let (len, stays) = (len as i64, heap.bins().len(class()));
            let (granted, waits) = (heap.bins().room(class()), withdrawn(heap).get());
            let case = std::format!("{len} and {room} of {left}, {ran_empty}: {stays} and {granted}");
            let is_cut = len + room > left && len > most_kept(left) && share(left, ran_empty) < len;
            assert_eq!(stays, if is_cut { share(left, ran_empty) } else { len }, "{case}");
            assert_eq!(heap.bins().len_with_aside(class()), len, "{case}");
            assert_eq!((granted, waits), (room.min(left - stays), (room + stays - left).max(0)), "{case}");
            // What was withdrawn comes back once there is more left.
            settle(heap, class(), u64::MAX, ran_empty);
            assert_eq!((heap.bins().room(class()), withdrawn(heap).get()), (room, 0), "{case}");
        }
    }
    upkeep::flush_all(heap);
}

#[test]
fn where_frees_of_rusts_allocator_are_noticed_the_hot_paths_get_no_room() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    world.shared.profile.expect_rust();
    for (left, expected) in [(3, 3), (u64::MAX, 5)] {
        set_bin(heap, 0, 5);
        assert!(world.shared.profile.meet_rust());
        settle(heap, class(), left, false);
        assert_eq!((heap.bins().room(class()), heap.bins().room_or_withheld(class())), (0, expected));
    }
}

#[test]
fn a_bin_whose_room_ran_out_gets_more_only_if_some_was_withdrawn_and_nothing_else_is_due() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    let again = |heap: Own<'_, Fake>, waits, left| {
        set_bin(heap, 3, 0);
        set_left(heap, left);
        withdrawn(heap).set(waits);
        (settle_again(heap, class()), heap.bins().room(class()), withdrawn(heap).get())
    };
    assert_eq!(again(heap, 0, 10), (false, 0, 0));
    assert_eq!(again(heap, 1, 10), (true, 1, 0));
    assert_eq!(again(heap, 5, 10), (true, 5, 0));
    assert_eq!(again(heap, 5, 4), (true, 1, 4));
    // The free of the last block has to be noticed.
    assert_eq!(heap.burst().await_last(class(), 1, 5), Some(0));
    assert_eq!(again(heap, 5, 10), (false, 0, 5));
    assert!(heap.burst().was_last(class(), 0));
    // What was withdrawn in another session was given back.
    set_bin(heap, 3, 0);
    set_left(heap, 10);
    withdrawn(heap).set(5);
    heap.heap().profile_countdowns().session.set(0);
    assert!(!settle_again(heap, class()));
    note_granted(heap, class());
    withdrawn(heap).set(5);
    note_granted(heap, class());
    assert_eq!(withdrawn(heap).get(), 0);
}

#[test]
fn a_sample_is_far_if_the_hot_paths_cannot_reach_it_in_this_session() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    set_bin(heap, 3, 5);
    let is_far_with = |left| {
        set_left(heap, left);
        is_far(heap, class())
    };
    assert_eq!([6, 7, 8, 9, 100].map(is_far_with), [false, false, true, true, true]);
    heap.heap().profile_countdowns().session.set(world.shared.profile.session() + 1);
    assert!(!is_far(heap, class()));
    assert!(is_far_with(100));
    world.shared.profile.expect_rust();
    assert!(world.shared.profile.meet_rust() && !is_far_with(100));
}

#[test]
fn an_empty_bin_gets_no_more_blocks_than_it_can_keep() {
    for level in LEVELS {
        let world = world(FAR, level, 1);
        let heap = world.heap();
        for (left, n, expected) in
            [(0, 20, 1), (1, 20, 1), (9, 20, 8), (16, 20, 14), (100, 20, 20), (9, 3, 3), (FAR, 100, 100)]
        {
            set_left(heap, left);
            assert_eq!(batch(heap, class(), n), if level == "checks" { n } else { expected }, "{level}: {n} of {left}");
        }
        set_left(heap, 0);
        world.shared.profile.stop();
        assert_eq!(batch(heap, class(), 20), 20);
    }
}

#[test]
fn the_allocation_that_a_countdown_ends_with_is_the_one_that_is_sampled() {
    for level in LEVELS {
        for n_left in [0, 1, 2, 7, 9, 40, 200] {
            let world = world(FAR, level, 1);
            let heap = world.heap();
            let kept: Vec<_> = (0..30).map(|_| allocate(heap, SIZE)).collect();
            kept[10..].iter().for_each(|&block| free(heap, block));
            set_left(heap, n_left as u64);
            if heap.watch().is_none() {
                settle(heap, class(), n_left as u64, false);
            }
            for at in 0..n_left + 40 {
                let block = allocate_hot(heap, SIZE);
                assert_eq!(is_of_samples(&world, heap, block), at == n_left, "{level}: {at} of {n_left}");
                if at % 3 == 0 {
                    free(heap, block);
                }
            }
            world.check().unwrap();
        }
    }
}

#[test]
fn blocks_of_rusts_allocator_are_sampled_where_their_frees_are_noticed() {
    for (level, is_expected, family, sampled) in [
        ("default", false, Family::Rust, false),
        ("default", false, Family::C, true),
        ("default", true, Family::C, true),
        ("default", true, Family::Rust, true),
        ("checks", false, Family::Rust, true),
        ("checks", false, Family::C, true),
    ] {
        let world = world(1, level, 1);
        if is_expected {
            world.shared.profile.expect_rust();
        }
        let heap = world.heap();
        free(heap, allocate(heap, 10_000));
        let block = heap.allocate_for(Request::new(SIZE, 1, family)).start;
        assert_eq!(is_of_samples(&world, heap, block), sampled, "{level} {is_expected} {family:?}");
        assert_eq!(world.shared.profile.notices_rust(), is_expected && family == Family::Rust);
        if !sampled {
            assert_eq!(left(heap, class()), Some(0), "it was not the one that the next countdown chose");
        }
        free(heap, block);
        world.check().unwrap();
    }
}

#[test]
fn a_countdown_begins_with_the_allocations_that_were_counted_already() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    (0..7).for_each(|_| free(heap, allocate(heap, SIZE)));
    world.shared.profile.stop();
    assert!(left(heap, class()).is_none() && is_asked(heap) == world.shared.profile.notices_rust());
    assert!(world.shared.profile.start(1));
    let (allocs, at) = (heap.bins().allocs(class()), &heap.heap().profile_countdowns().at[class()]);
    assert!(allocs > 1 && is_asked(heap));
    assert_eq!((left(heap, class()), at.get()), (Some(0), allocs + 1), "one in one is sampled");
    for n in [1, 2, 10] {
        set_left(heap, n);
        assert_eq!(left(heap, class()), Some(n));
    }
    let explicit = world.explicit_heap();
    assert!(left(explicit.enter().own(), class()).is_none());
}

#[test]
fn a_session_forgets_what_was_drawn_in_the_one_before() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    set_left(heap, 5);
    let countdowns = heap.heap().profile_countdowns();
    withdrawn(heap).set(3);
    countdowns.large.set(7);
    assert!(world.shared.profile.start(FAR));
    assert!(left(heap, class()).is_some_and(|left| left > 1000));
    assert_eq!((withdrawn(heap).get(), countdowns.session.get()), (0, world.shared.profile.session()));
    assert!(countdowns.large.get() > 1 << 30);
    set_left(heap, 5);
    assert_eq!(left(heap, class()), Some(5), "it stays as it is in this one");
}

/// Bytes of a large block of whole pages.
const LARGE: usize = 2 << 16;

#[test]
fn the_large_block_in_which_the_countdown_ends_is_sampled_and_no_other() {
    for (before, sampled) in [(LARGE, false), (LARGE - 1, true), (0, true), (5 * LARGE, false)] {
        let world = world(FAR, "default", 1);
        let heap = world.heap();
        set_left(heap, 5);
        let countdown = &heap.heap().profile_countdowns().large;
        countdown.set(before as i64);
        let block = allocate(heap, LARGE);
        let page = world.shared.pages.view().page_of(block.addr()).expect("the block is of this world");
        assert_eq!(span_at(&world, page).is_sampled.get(), sampled, "{before}");
        assert_eq!(estimates(&world).0 > 0.0, sampled, "{before}");
        assert_eq!(countdown.get() == before as i64 - LARGE as i64, !sampled, "{before}");
        assert!(!sampled || countdown.get() > 1 << 30, "{before}: the next is drawn");
        free(heap, block);
        assert_eq!(estimates(&world).0, 0.0);
    }
}

#[test]
fn a_free_of_rusts_allocator_uses_the_room_that_is_withheld_unless_the_block_was_sampled() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    let blocks: Vec<_> = (0..5).map(|_| allocate(heap, SIZE)).collect();
    set_left(heap, 0);
    let sampled = allocate(heap, SIZE);
    assert!(is_of_samples(&world, heap, sampled));
    heap.bins().withhold(class(), 2);
    assert!(free_of_rust(heap, freed(blocks[0], class())).is_err(), "they are not noticed yet");
    world.shared.profile.expect_rust();
    assert!(world.shared.profile.meet_rust());
    assert!(free_of_rust(heap, freed(sampled, class())).is_err());
    let before = heap.bins().len(class());
    assert!(free_of_rust(heap, freed(blocks[0], class())).is_ok());
    assert!(free_of_rust(heap, freed(blocks[1], class())).is_ok());
    assert!(free_of_rust(heap, freed(blocks[2], class())).is_err(), "there was room for two");
    assert_eq!(heap.bins().len(class()), before + 2);
}

#[test]
fn only_the_heap_of_sampled_blocks_has_sampled_ones() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    set_left(heap, 0);
    let explicit = world.explicit_heap();
    let of_explicit = allocate(explicit.enter().own(), SIZE);
    let [sampled, ordinary] = [(); 2].map(|()| allocate(heap, SIZE));
    assert_eq!([sampled, ordinary, of_explicit].map(|block| is_of_samples(&world, heap, block)), [true, false, false]);
}
