use super::*;
use crate::size_class::{LAST_CLASS, block_bytes, class_of};

#[test]
fn a_small_block_stays_while_the_new_size_fits_and_fills_enough_of_it() {
    assert!(small_stays(512, 512) && small_stays(512, 368));
    assert!(!small_stays(512, 513) && !small_stays(512, 367));
    assert!(small_stays(8192, 8192) && !small_stays(8192, 8193) && !small_stays(8192, 6000));
}

#[test]
fn a_block_stays_for_every_size_of_its_class() {
    for size in 0..=SMALL_MAX {
        assert!(small_stays(block_bytes(class_of(size)), size), "{size}");
    }
}

#[test]
fn a_block_that_grows_by_less_than_twice_grows_a_little_and_its_room_is_twice_its_size() {
    for (usable, size, expected) in
        [(64, 63, false), (64, 64, false), (64, 65, true), (64, 127, true), (64, 128, false), (64, 200, false)]
    {
        assert_eq!(grows_a_little(usable, size), expected, "{usable} to {size}");
    }
    assert_eq!((with_growth_room(64, 65), with_growth_room(256, 511)), (128, 512));
    assert_eq!(with_growth_room(SMALL_MAX - 16, SMALL_MAX), SMALL_MAX);
    assert_eq!(with_growth_room(SMALL_MAX, SMALL_MAX + 1), 2 * SMALL_MAX);
}

#[test]
fn a_block_that_has_just_got_room_keeps_it_when_it_is_resized_again() {
    for usable in (0..LAST_CLASS).map(block_bytes) {
        let size = usable + 1;
        let room = with_growth_room(usable, size);
        let got = if size > SMALL_MAX { continue } else { block_bytes(class_of(room)) };
        assert!(keeps_room(got, size) && keeps_room(got, got), "{usable}");
        assert!(!keeps_room(got, got + 1) && !keeps_room(got, got / 3), "{usable}");
    }
}

#[test]
fn the_largest_sizes_do_not_wrap() {
    assert_eq!(with_growth_room(usize::MAX - 1, usize::MAX), usize::MAX);
    assert!(!small_stays(1024, usize::MAX));
}

#[test]
fn a_block_has_grown_from_when_it_was_noted_until_others_take_its_place() {
    let (grown, addr) = (GrownBlocks::none(), 0x5000_0000);
    assert!(!grown.has(addr));
    grown.note(addr);
    assert!(grown.has(addr) && !grown.has(addr + 64));
    (1..10_000).for_each(|n| grown.note(addr + n * 64));
    assert!(!grown.has(addr));
}

#[test]
fn most_of_a_few_buffers_beside_each_other_are_remembered() {
    let mut n_remembered = 0;
    for bytes in (0..LAST_CLASS).map(block_bytes) {
        let (grown, addrs) = (GrownBlocks::none(), (0..8).map(|n| 0x7000_0000 + n * bytes));
        addrs.clone().for_each(|addr| grown.note(addr));
        n_remembered += addrs.filter(|&addr| grown.has(addr)).count();
    }
    assert!(n_remembered >= 7 * LAST_CLASS, "{n_remembered} of {}", 8 * LAST_CLASS);
}
