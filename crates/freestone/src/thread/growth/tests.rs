use super::*;

#[test]
fn a_small_block_stays_while_the_new_size_fits_and_fills_a_quarter_of_it() {
    assert!(small_stays(1024, 1024) && small_stays(1024, 256));
    assert!(!small_stays(1024, 1025) && !small_stays(1024, 255));
}

#[test]
fn the_smallest_blocks_stay_at_any_smaller_size() {
    assert!(small_stays(16, 0) && small_stays(64, 1));
    assert!(!small_stays(80, 1), "a granule is less than a quarter of it");
}

#[test]
fn a_block_that_grows_a_little_gets_room_and_one_that_doubles_gets_the_requested_size() {
    assert_eq!(with_growth_room(64, 65), 256);
    assert_eq!(with_growth_room(64, 127), 256);
    assert_eq!(with_growth_room(64, 128), 128);
    assert_eq!(with_growth_room(8192, 8193), 4 * 8192);
    assert_eq!(with_growth_room(8193, 8194), 2 * 8193);
    assert_eq!(with_growth_room(64, 64), 64, "it does not grow");
    assert_eq!(with_growth_room(64, 10), 10);
}

#[test]
fn a_block_that_has_just_got_room_does_not_shrink_back() {
    for usable in [16, 64, 1000, 8192, 16_000] {
        let size = usable + 1;
        assert!(small_stays(with_growth_room(usable, size), size), "{usable}");
    }
}

#[test]
fn the_largest_sizes_do_not_wrap() {
    assert_eq!(with_growth_room(usize::MAX - 1, usize::MAX), usize::MAX);
    assert!(!small_stays(1024, usize::MAX));
}
