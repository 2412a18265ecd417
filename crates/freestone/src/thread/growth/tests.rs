use super::*;
use crate::size_class::{LAST_CLASS, SMALL_MAX, block_bytes, class_of};

#[test]
fn a_small_block_stays_while_the_new_size_fits_and_fills_enough_of_it() {
    assert!(small_stays(512, 512) && small_stays(512, 224));
    assert!(!small_stays(512, 513) && !small_stays(512, 223));
    assert!(small_stays(1024, 1024) && small_stays(1024, 192));
    assert!(!small_stays(1024, 1025) && !small_stays(1024, 191));
}

#[test]
fn the_smallest_blocks_stay_at_any_smaller_size() {
    assert!(small_stays(16, 0) && small_stays(32, 1));
    assert!(!small_stays(48, 1), "a granule is less than seven sixteenths of it");
}

#[test]
fn a_block_that_grows_a_little_gets_room_and_one_that_doubles_gets_the_requested_size() {
    assert_eq!(with_growth_room(64, 65), 128);
    assert_eq!(with_growth_room(256, 511), 512);
    assert_eq!(with_growth_room(288, 289), 4 * 288);
    assert_eq!(with_growth_room(64, 128), 128);
    assert_eq!(with_growth_room(8192, 8193), 4 * 8192);
    assert_eq!(with_growth_room(8193, 8194), 2 * 8193);
    assert_eq!(with_growth_room(64, 64), 64, "it does not grow");
    assert_eq!(with_growth_room(64, 10), 10);
}

#[test]
fn a_block_that_has_just_got_room_stays_when_it_is_resized_again() {
    for usable in (0..LAST_CLASS).map(block_bytes) {
        let size = usable + 1;
        let room = with_growth_room(usable, size);
        assert!(room > SMALL_MAX || small_stays(block_bytes(class_of(room)), size), "{usable}");
    }
}

#[test]
fn the_largest_sizes_do_not_wrap() {
    assert_eq!(with_growth_room(usize::MAX - 1, usize::MAX), usize::MAX);
    assert!(!small_stays(1024, usize::MAX));
}
