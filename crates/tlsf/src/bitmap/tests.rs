use super::*;

/// Every subset of a map of 2 x 8 lists, against a search bit by bit.
#[test]
fn every_map_of_sixteen_lists_answers_as_a_search_bit_by_bit() {
    let step = if cfg!(miri) { 97 } else { 1 };
    for subset in (0_u32..1 << 16).step_by(step) {
        let mut map = Bitmap::<2, 8>::new();
        (0..16).filter(|list| subset >> list & 1 == 1).for_each(|list| map.set(list));
        assert!(map.is_consistent());
        for from in 0..16 {
            let expected = (from..16).find(|list| subset >> list & 1 == 1);
            assert_eq!(map.lowest_from(from), expected, "subset {subset:#b} from {from}");
        }
        (0..16).filter(|list| subset >> list & 1 == 1 && list % 3 == 0).for_each(|list| map.clear(list));
        assert!(map.is_consistent());
        assert!((0..16).all(|list| map.is_set(list) == (subset >> list & 1 == 1 && list % 3 != 0)));
    }
}

#[test]
fn the_widest_map_reaches_its_last_list() {
    let mut map = Bitmap::<32, 32>::new();
    map.set(1023);
    assert_eq!((map.lowest_from(0), map.lowest_from(1023)), (Some(1023), Some(1023)));
    map.clear(1023);
    assert_eq!(map.lowest_from(0), None);
}
