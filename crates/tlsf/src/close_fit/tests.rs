use super::*;
use crate::mapping::{FIRST_LEVEL, ListIndex, index_of, index_to_search};

/// Whether a block in list `index` is a close fit where the search began at `least`.
fn is_close_fit<const SECOND: usize>(least: ListIndex, index: ListIndex) -> bool {
    let n_lists = n_lists::<20, SECOND>()[least.level(SECOND) - FIRST_LEVEL];
    index.number() - least.number() < usize::from(n_lists)
}

/// The most bytes by which a close fit exceeds a request for a block of `need` bytes.
fn most_slack<const SECOND: usize>(need: usize) -> usize {
    let least = index_to_search(need, SECOND);
    (need..2 * need + 64)
        .step_by(GRANULE)
        .take_while(|&size| {
            let index = index_of(size, SECOND);
            index < least || is_close_fit::<SECOND>(least, index)
        })
        .last()
        .map_or(0, |size| size - need)
}

fn slack_is_bounded<const SECOND: usize>() {
    let most = if cfg!(miri) { 1 << 10 } else { 40_000 };
    for need in (LEAST_BLOCK_BYTES..most).step_by(GRANULE) {
        let (slack, lists_apart) = (most_slack::<SECOND>(need), need.next_power_of_two() / SECOND);
        if slack >= lists_apart.max(GRANULE) {
            assert!(slack * 32 <= need * 5 && slack < 512 && need < 16 << 10, "{slack} over {need}, {SECOND} lists");
        }
    }
}

#[test]
fn a_close_fit_is_longer_by_less_than_a_sixth_and_less_than_512_bytes() {
    slack_is_bounded::<32>();
    slack_is_bounded::<16>();
    slack_is_bounded::<8>();
    slack_is_bounded::<4>();
    slack_is_bounded::<2>();
}

#[test]
fn the_number_of_lists_of_close_fits_is_as_drawn() {
    // At most four of 32 lists; from 256 bytes those of one size; from 4 KiB those of 256 bytes; from 16 KiB none.
    assert_eq!(n_lists::<14, 32>(), [4, 4, 4, 2, 4, 4, 4, 2, 1, 0, 0, 0, 0, 0]);
    assert_eq!(n_lists::<10, 2>(), [0; 10]);
}
