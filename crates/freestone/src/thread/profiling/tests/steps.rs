//! The single steps by which blocks are chosen, each with the numbers at its borders. The tests of whole profiles take longer.
use super::*;
use crate::size_class::class_of;
use crate::testing::{freed, span_at};
use crate::thread::upkeep;

const SIZE: usize = 48;

/// How far apart the numbers are that a test goes through.
const STEP: usize = if cfg!(miri) { 6 } else { 1 };

/// An interval so long that no countdown ends but those that a test sets.
const FAR: u64 = 1 << 50;

/// Bytes of a large block of whole pages.
const LARGE: usize = 2 << 16;

fn class() -> usize {
    class_of(SIZE)
}

/// Lets the `left`th block that comes into the class's bin be the one that is chosen.
fn set_left(heap: Own<'_, Fake>, left: u64) {
    let countdowns = heap.heap().profile_countdowns();
    countdowns.session.set(heap.shared().profile.session());
    let before = if heap.watch().is_some() { 0 } else { heap.bins().frees(class()) };
    countdowns.at[class()].set(before + left);
}

/// Chooses the block that the next allocation of the class would take.
fn choose_next(heap: Own<'_, Fake>) {
    set_left(heap, FAR);
    free(heap, allocate(heap, SIZE));
    heap.bins().choose_first(class());
}

fn withdrawn(heap: Own<'_, Fake>) -> i64 {
    heap.heap().profile_countdowns().withdrawn(class())
}

/// Makes a bin have so many blocks and so much room.
fn set_bin(heap: Own<'_, Fake>, len: usize, room: i64) {
    set_left(heap, FAR);
    upkeep::flush_all(heap);
    let blocks: Vec<_> = (0..len).map(|_| allocate(heap, SIZE)).collect();
    upkeep::flush_all(heap);
    grant(heap, class(), room + len as i64);
    blocks.into_iter().for_each(|block| assert!(!heap.bins().push(freed(block, class()))));
    assert_eq!((heap.bins().len(class()), heap.bins().room(class())), (len as i64, room));
}

/// Makes a bin have so many blocks and so much room, and settles it with the `left`th block that comes as the one that is chosen.
fn settle_bin(heap: Own<'_, Fake>, len: usize, room: i64, left: u64) {
    set_bin(heap, len, room);
    set_left(heap, left);
    settle(heap, class());
}

/// Whether a small block is a sampled one.
fn is_of_samples(world: &World, heap: Own<'_, Fake>, block: *mut u8) -> bool {
    let entry = world.shared.pages.view().entry(block.addr()).expect("the block is of this world");
    is_sampled(heap, entry.generation())
}

#[test]
fn the_room_of_a_bin_ends_with_the_block_that_is_chosen_and_the_rest_waits() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    for (len, room) in [(0, 0), (0, 9), (1, 3), (7, 0), (20, 7)] {
        for left in (1..20).step_by(STEP) {
            settle_bin(heap, len, room, left);
            let granted = room.min(left as i64 - 1);
            let case = std::format!("{room} of {left}");
            assert_eq!((heap.bins().room(class()), withdrawn(heap)), (granted, room - granted), "{case}");
            assert_eq!(ends_at_chosen(heap, class()), left as i64 <= room + 1, "{case}");
            assert_eq!((whole_room(heap, class()), heap.bins().len(class())), (room, len as i64), "{case}");
            set_left(heap, FAR);
            settle(heap, class());
            assert_eq!((heap.bins().room(class()), withdrawn(heap)), (room, 0), "{case}");
            assert!(!ends_at_chosen(heap, class()), "{case}");
        }
    }
    upkeep::flush_all(heap);
}

#[test]
fn where_frees_of_rusts_allocator_are_noticed_the_hot_paths_get_no_room() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    world.shared.profile.expect_rust();
    for (left, expected) in [(4, 3), (FAR, 5)] {
        set_bin(heap, 0, 5);
        assert!(world.shared.profile.meet_rust());
        set_left(heap, left);
        settle(heap, class());
        assert_eq!((heap.bins().room(class()), heap.bins().room_or_withheld(class())), (0, expected));
        assert!(ends_at_chosen(heap, class()), "what is withheld ends there, or is not seen");
    }
}

#[test]
fn a_block_that_comes_beside_the_frees_brings_the_chosen_one_nearer_by_one() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    for (len, room) in [(1, 0), (3, 1), (1, 9), (20, 7)] {
        for left_before in (1..20).step_by(STEP) {
            settle_bin(heap, len, room, left_before);
            count_put(heap, class());
            let case = std::format!("{len} {room} of {left_before}");
            let is_chosen = heap.bins().seems_first_chosen(class());
            assert_eq!(is_chosen, left_before == 1, "{case}");
            let now = left(heap, class()).expect("it is on");
            assert!(if is_chosen { now > 1000 } else { now == left_before - 1 }, "{case}: {now}");
            assert_eq!(heap.bins().room(class()), room.min(now as i64 - 1), "{case}");
            assert_eq!(
                (whole_room(heap, class()), ends_at_chosen(heap, class())),
                (room, now as i64 <= room + 1),
                "{case}"
            );
            if is_chosen {
                heap.bins().unchoose_first(class());
            }
        }
    }
    upkeep::flush_all(heap);
    world.check().unwrap();
}

#[test]
fn the_free_that_ends_the_room_chooses_its_block_if_it_is_the_one_and_goes_on_with_what_is_left() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    for (room, left_before) in [(9, 1), (9, 5), (9, 9), (9, 10), (9, 11), (0, 1), (0, 2)] {
        let blocks: Vec<_> = (0..30).map(|_| allocate(heap, SIZE)).collect();
        settle_bin(heap, 1, room, left_before);
        let mut n = 0;
        while !heap.bins().push(freed(blocks[n], class())) {
            n += 1;
        }
        let case = std::format!("{room} {left_before}");
        assert_eq!(n as i64 + 1, (left_before as i64).min(room + 1), "{case}");
        assert_eq!(ends_at_chosen(heap, class()), left_before as i64 <= room + 1, "{case}");
        let has_more = room_ended(heap, class());
        assert_eq!(heap.bins().seems_first_chosen(class()), left_before as i64 <= room + 1, "{case}");
        assert_eq!(has_more, (left_before as i64) < room + 1, "{case}");
        assert_eq!(whole_room(heap, class()), room - n as i64 - 1, "{case}");
        crate::thread::flush::look_at_full(heap, class());
        blocks.into_iter().skip(n + 1).for_each(|block| free(heap, block));
    }
    upkeep::flush_all(heap);
    world.check().unwrap();
}

#[test]
fn a_chosen_block_is_far_if_the_hot_paths_cannot_bring_it_in_this_session() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    set_bin(heap, 3, 5);
    let is_far_with = |left| {
        set_left(heap, left);
        is_far(heap, class(), 0)
    };
    let first = (1..20).find(|&left| is_far_with(left)).expect("a block that comes late is far");
    let reach = heap.bins().frees_within_reach(class()) - heap.bins().frees(class());
    assert_eq!(first, reach + 2, "the free that uses up the room brings one more");
    set_left(heap, 30);
    assert_eq!((0..40).find(|&further| !is_far(heap, class(), further)), Some(30 - reach - 1));
    assert!(is_far_with(100));
    heap.heap().profile_countdowns().session.set(world.shared.profile.session() + 1);
    assert!(!is_far(heap, class(), 0));
    assert!(is_far_with(100));
    world.shared.profile.expect_rust();
    assert!(world.shared.profile.meet_rust() && !is_far_with(100));
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
        free(heap, block);
        world.check().unwrap();
    }
}

#[test]
fn a_free_that_brings_no_block_is_kept_out_of_a_countdown_that_was_drawn() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    set_left(heap, 5);
    count_free_beside(heap, class());
    assert_eq!(left(heap, class()), Some(6));
    let at = &heap.heap().profile_countdowns().at[class()];
    at.set(0);
    count_free_beside(heap, class());
    assert_eq!(at.get(), 0);
}

#[test]
fn another_heap_in_the_record_begins_with_no_session() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    set_left(heap, 5);
    heap.heap().profile_countdowns().begin();
    assert_eq!(heap.heap().profile_countdowns().session.get(), 0);
}

#[test]
fn a_session_forgets_what_was_drawn_in_the_one_before() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    set_left(heap, 5);
    let countdowns = heap.heap().profile_countdowns();
    countdowns.cut[class()].set(4);
    countdowns.large.set(7);
    assert!(world.shared.profile.start(FAR));
    assert!(left(heap, class()).is_some_and(|left| left > 1000));
    assert_eq!((withdrawn(heap), countdowns.session.get()), (0, world.shared.profile.session()));
    assert!(!ends_at_chosen(heap, class()));
    assert!(countdowns.large.get() > 1 << 30);
    set_left(heap, 5);
    assert_eq!(left(heap, class()), Some(5), "it stays as it is in this one");
}

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
    choose_next(heap);
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
fn where_no_first_block_is_chosen_or_allocations_are_guarded_the_short_way_leaves_all_as_it_is() {
    use crate::config::key;
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    let request = Request::new(SIZE, 1, Family::C);
    set_bin(heap, 2, 5);
    set_left(heap, FAR);
    assert!(heap.allocate_sampled(&request).is_null());
    heap.bins().choose_first(class());
    let block = heap.allocate_sampled(&request);
    assert!(is_of_samples(&world, heap, block));
    assert_eq!((heap.bins().len(class()), heap.bins().seems_first_chosen(class())), (2, false));
    heap.bins().choose_first(class());
    world.set(key::GUARD_SAMPLE, "1000000");
    assert!(heap.allocate_sampled(&request).is_null() && heap.bins().seems_first_chosen(class()));
    heap.bins().unchoose_first(class());
    free(heap, block);
    upkeep::flush_all(heap);
    world.check().unwrap();
}

#[test]
fn only_the_heap_of_sampled_blocks_has_sampled_ones() {
    let world = world(FAR, "default", 1);
    let heap = world.heap();
    choose_next(heap);
    let explicit = world.explicit_heap();
    let of_explicit = allocate(explicit.enter().own(), SIZE);
    let [sampled, ordinary] = [(); 2].map(|()| allocate(heap, SIZE));
    assert_eq!([sampled, ordinary, of_explicit].map(|block| is_of_samples(&world, heap, block)), [true, false, false]);
}

/// Memory that moves takes its sample along; where it does not move, each block keeps its own.
#[test]
fn a_resized_large_block_has_one_sample_whether_its_memory_moves_or_not() {
    for refuses in [false, true] {
        let world = world(1, "off", 7);
        let heap = world.heap();
        let mib = 1 << 20;
        let (block, wall) = (allocate(heap, mib), allocate(heap, mib));
        let room = allocate(heap, 10 * mib);
        let since = estimates(&world).1;
        free(heap, room);
        world.shared.pages.purge();
        if refuses {
            world.set(crate::config::key::SANDBOX, "on");
        }
        let moved = reallocate(heap, block, 3 * mib);
        assert_ne!(moved, block);
        let (live, since_now) = estimates(&world);
        assert!(live >= (4 * mib) as f64, "{live} bytes are live, refuses: {refuses}");
        let new = since_now - since;
        assert!((3 * mib..5 * mib).contains(&(new as usize)), "{new} bytes were allocated, refuses: {refuses}");
        [moved, wall].into_iter().for_each(|block| free(heap, block));
        assert_eq!(estimates(&world).0, 0.0, "refuses: {refuses}");
    }
}
