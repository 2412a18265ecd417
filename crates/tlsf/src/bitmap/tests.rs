use super::*;

/// Every subset of a map of 2 x 8 lists, against a search bit by bit.
#[test]
fn every_map_of_sixteen_lists_answers_as_a_search_bit_by_bit() {
    let step = if cfg!(miri) { 997 } else { 1 };
    for subset in (0_u32..1 << 16).step_by(step) {
        let mut map = Bitmap::<2, 8>::new();
        let number = |list| ListIndex::of_number(FIRST_LEVEL * 8 + list);
        (0..16).filter(|list| subset >> list & 1 == 1).for_each(|list| map.set(number(list)));
        assert!(map.is_consistent());
        for from in 0..16 {
            let expected = (from..16).find(|list| subset >> list & 1 == 1);
            assert_eq!(map.lowest_from(number(from)), expected.map(number), "subset {subset:#b} from {from}");
        }
        (0..16)
            .filter(|list| subset >> list & 1 == 1 && list % 3 == 0)
            .for_each(|list| map.clear_if(true, number(list)));
        assert!(map.is_consistent());
        assert!((0..16).all(|list| map.is_set(number(list)) == (subset >> list & 1 == 1 && list % 3 != 0)));
    }
}

#[test]
fn the_widest_map_reaches_its_last_list() {
    const LEVELS: usize = if usize::BITS == 64 { MOST_LEVELS } else { 32 };
    let mut map = Bitmap::<LEVELS, 32>::new();
    let [first, last] = [FIRST_LEVEL * 32, (FIRST_LEVEL + LEVELS) * 32 - 1].map(ListIndex::of_number);
    map.set(last);
    assert_eq!((map.lowest_from(first), map.lowest_from(last)), (Some(last), Some(last)));
    map.clear_if(true, last);
    assert_eq!(map.lowest_from(first), None);
}

#[test]
fn a_first_level_that_disagrees_with_the_second_is_noticed() {
    let mut map = Bitmap::<2, 8>::new();
    map.set(ListIndex::of_number(FIRST_LEVEL * 8 + 3));
    assert!(map.is_consistent());
    for bit in 0..2 {
        map.first ^= 1 << bit;
        assert!(!map.is_consistent());
        map.first ^= 1 << bit;
    }
    map.second[1] |= 1;
    assert!(!map.is_consistent());
}
