use super::*;

/// The definition, spelled out as in the paper, with the small sizes apart.
fn by_definition(size: usize, second: usize) -> (usize, usize) {
    let edge = second * GRANULE;
    if size < edge {
        return (0, size / GRANULE);
    }
    let power = size.ilog2() as usize;
    let second_log2 = second.ilog2() as usize;
    (power - edge.ilog2() as usize + 1, (size >> (power - second_log2)) & (second - 1))
}

/// Smallest size of a list.
fn least_of(index: usize, second: usize) -> usize {
    let (first, step) = (index / second, index % second);
    if first == 0 { step * GRANULE } else { ((second + step) * GRANULE) << (first - 1) }
}

fn seconds() -> impl Iterator<Item = usize> {
    [2, 4, 8, 16, 32].into_iter()
}

#[test]
fn every_size_to_two_mebibytes_is_in_the_list_the_definition_names() {
    let most = if cfg!(miri) { 1 << 14 } else { 2 << 20 };
    for second in seconds() {
        for size in (0..most).step_by(GRANULE) {
            let (first, step) = by_definition(size, second);
            assert_eq!(index_of(size, second), first * second + step, "size {size}, {second} lists");
        }
    }
}

#[test]
fn a_search_for_any_size_to_two_mebibytes_finds_the_first_list_whose_least_block_fits() {
    let most = if cfg!(miri) { 1 << 14 } else { 2 << 20 };
    for second in seconds() {
        for size in (GRANULE..most).step_by(GRANULE) {
            let index = index_to_search(size, second);
            assert!(least_of(index, second) >= size, "size {size}: a block of list {index} could be too small");
            assert!(least_of(index - 1, second) < size, "size {size}: list {} would do", index - 1);
        }
    }
}

#[test]
fn around_every_power_of_two_to_the_limit_both_agree_with_the_definition() {
    for second in seconds() {
        let limit = size_limit(32, second);
        for power in 4..limit.ilog2() {
            for around in
                (0..8_usize).map(|step| (1_usize << power) + step * GRANULE - 4 * GRANULE.min(1 << (power - 2)))
            {
                let size = (around & !(GRANULE - 1)).max(GRANULE);
                let (first, step) = by_definition(size, second);
                assert_eq!(index_of(size, second), first * second + step);
                let search = index_to_search(size, second);
                assert!(least_of(search, second) >= size && (search == 0 || least_of(search - 1, second) < size));
            }
        }
    }
}

#[test]
fn the_limit_is_the_first_size_beyond_the_last_list() {
    for second in seconds() {
        for first in 1..=32 {
            let limit = size_limit(first, second);
            assert!(index_of(limit - GRANULE, second) < first * second);
            if limit < 1 << (usize::BITS - 1) {
                assert_eq!(index_of(limit, second), first * second);
            }
        }
    }
}
