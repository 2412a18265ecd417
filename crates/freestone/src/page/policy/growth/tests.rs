use super::*;
use freestone_base::units::PAGE_BYTES;

#[test]
fn the_arena_grows_by_an_eighth_between_1_and_64_mebibytes_and_never_by_less_than_is_wanted() {
    let step = |arena, wanted| arena_step(Pages(arena), Pages(wanted)).0;
    assert_eq!([step(1, 1), step(128, 1), step(160, 1), step(8192, 1), step(1 << 20, 1)], [16, 16, 20, 1024, 1024]);
    assert_eq!([step(1, 17), step(1 << 20, 5000)], [17, 5000]);
}

#[test]
fn a_gibibyte_is_reached_in_few_steps() {
    let (mut arena, mut n) = (Pages(1), 0);
    while arena < Pages(16384) {
        arena += arena_step(arena, Pages(1));
        n += 1;
    }
    assert!(n < 60, "{n} steps");
}

#[test]
fn room_to_grow_is_four_times_the_block_and_twice_if_it_is_dirty_as_far_as_numbers_go() {
    assert_eq!(with_growth_room(Pages(10)), Some(Pages(40)));
    assert_eq!(with_growth_room(Pages(1 << 30)), None);
    assert_eq!(with_dirty_growth_room(Pages(10)), Pages(20));
    assert_eq!(with_dirty_growth_room(Pages(u32::MAX)), Pages(u32::MAX));
}

#[test]
fn a_growing_block_ends_with_a_whole_huge_page_if_that_is_little_for_its_length() {
    assert!(may_end_whole(Pages(240), Pages(270)) && !may_end_whole(Pages(240), Pages(271)));
    assert!(may_end_whole(Pages(640), Pages(650)) && !may_end_whole(Pages(640), Pages(651)));
    assert!(may_end_whole(Pages(64), Pages(64)));
}

#[test]
fn a_block_that_grows_by_a_quarter_is_populated_and_one_that_doubles_is_not() {
    assert!(populates(Pages(100), Pages(25)) && !populates(Pages(100), Pages(26)));
}

#[test]
fn what_grows_by_more_than_an_eighth_to_less_than_4_mebibytes_prefers_dirty_memory() {
    let prefers = |(held, wanted)| prefers_dirty(Pages(held).to_bytes(), Bytes(wanted));
    let steep = [(1, 2 * PAGE_BYTES), (8, 9 * PAGE_BYTES), (16, 19 * PAGE_BYTES), (31, 64 * PAGE_BYTES - 1)];
    assert_eq!(steep.map(prefers), [true; 4]);
    let others = [(8, 9 * PAGE_BYTES - 1), (1, PAGE_BYTES + 100), (8, 8 * PAGE_BYTES), (8, 100), (31, 64 * PAGE_BYTES)];
    assert_eq!(others.map(prefers), [false; 5]);
}
