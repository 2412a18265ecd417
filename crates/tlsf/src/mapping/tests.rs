use super::*;
use crate::block_size::GRANULE;

/// The definition, spelled out as in the paper: first level by powers of two, second by equal steps.
fn by_definition(size: usize, second: usize) -> usize {
    let power = size.ilog2() as usize;
    let step = ((size as u64) << second.ilog2() >> power) as usize & (second - 1);
    (FIRST_LEVEL + power - LEAST_BLOCK_BYTES.ilog2() as usize) * second + step
}

/// Smallest multiple of the granule that belongs to list `index` or one above it.
fn least_of(index: usize, second: usize) -> u64 {
    let (first, step) = (index / second - FIRST_LEVEL, index % second);
    let bytes = (second + step) as u64 * ((LEAST_BLOCK_BYTES as u64) << first);
    bytes.div_ceil(second as u64).next_multiple_of(GRANULE as u64)
}

fn seconds() -> impl Iterator<Item = usize> {
    [2, 4, 8, 16, 32].into_iter()
}

/// Checks both directions of `size`: where it is put, and from where on everything fits it.
fn check(size: usize, second: usize) {
    let own = by_definition(size, second);
    assert_eq!(index_of(size, second).number(), own, "size {size}, {second} lists");
    let is_least = least_of(own, second) == size as u64;
    assert_eq!(index_to_search(size, second).number(), own + usize::from(!is_least), "size {size}, {second} lists");
}

#[test]
fn every_size_to_two_mebibytes_is_where_the_definition_puts_it_and_is_searched_for_where_all_fit() {
    let most = if cfg!(miri) { 1 << 10 } else { 2 << 20 };
    for second in seconds() {
        (LEAST_BLOCK_BYTES..most).step_by(GRANULE).for_each(|size| check(size, second));
    }
}

#[test]
fn around_every_power_of_two_to_the_limit_both_agree_with_the_definition() {
    let limit = size_limit(MOST_LEVELS);
    for second in seconds() {
        for power in (6..limit.ilog2()).step_by(if cfg!(miri) { 7 } else { 1 }) {
            for steps in 0..8 {
                let size = (1_usize << power) + steps * GRANULE - 4 * GRANULE.min(1 << (power - 3));
                check((size & !(GRANULE - 1)).max(LEAST_BLOCK_BYTES), second);
            }
        }
    }
}

#[test]
fn the_limit_is_the_first_size_beyond_the_last_list() {
    for second in seconds() {
        for first in 1..=32 {
            let (limit, end) = (size_limit(first), (FIRST_LEVEL + first) * second);
            assert!(index_of(limit - GRANULE, second).number() < end);
            if limit < 1 << (usize::BITS - 1) {
                assert_eq!(index_of(limit, second).number(), end);
            }
        }
    }
}
