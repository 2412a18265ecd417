//! The numbers at the borders.
use super::*;

#[test]
fn there_is_room_for_a_block_as_long_as_some_is_left_behind_it() {
    let waiting = quarantine();
    waiting.share(1);
    let bound = (UNITS_MOST + UNITS_MOST / 2) as usize;
    assert!(!waiting.push(block(1), (bound - 1) * UNIT_BYTES, 0) && !waiting.is_over());
    assert_eq!(waiting.room(), 1, "one unit is left, which is used up next");
    assert!(waiting.push(block(2), 1, 0) && waiting.is_over());
}

#[test]
fn large_blocks_are_counted_with_their_pages_until_they_leave() {
    let waiting = quarantine();
    waiting.count_large(Pages(3));
    waiting.count_large(Pages(5));
    assert_eq!(waiting.large(), (2, 8));
    waiting.discount_large(Pages(3));
    assert_eq!(waiting.large(), (1, 5));
}

#[test]
fn a_block_has_waited_when_as_much_came_behind_it_as_must_wait_its_own_bytes_included() {
    let waiting = quarantine();
    waiting.share(1);
    waiting.push(block(1), UNIT_BYTES, 3);
    assert!(waiting.waited(4).is_none());
    waiting.push(block(2), (UNITS_MOST as usize - 2) * UNIT_BYTES, 4);
    assert!(waiting.waited(3).is_none() && waiting.pop(3, false).is_none());
    waiting.push(block(3), 1, 5);
    assert_eq!((waiting.waited(3), waiting.waited(4)), (Some(block(1)), None));
    assert_eq!((waiting.pop(3, false), waiting.pop(3, true)), (Some(block(1)), None));
}

#[test]
fn a_smaller_share_and_a_larger_one_change_the_room_by_the_difference() {
    let waiting = quarantine();
    for n_heaps in [1, 64, 8, 1 << 20, 0, 1] {
        waiting.share(n_heaps);
        let share = BYTES_OF_ALL / n_heaps.max(1) as usize;
        let bound = BYTES_MOST.min(share) / UNIT_BYTES + SLACK_MOST.min(share / 4) / UNIT_BYTES;
        assert_eq!((waiting.room(), waiting.bound.get()), (bound as i32, bound as u32), "{n_heaps}");
        assert_eq!(waiting.most.get() as usize, BYTES_MOST.min(share) / UNIT_BYTES);
    }
}
