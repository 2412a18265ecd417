use super::*;
use proptest::prelude::*;
use std::string::ToString;

#[test]
fn page_0_is_none_and_every_other_is_itself() {
    assert_eq!((PageIndex::NONE.some(), PageIndex::default()), (None, PageIndex::NONE));
    for page in [1, 2, u32::MAX].map(PageIndex) {
        assert_eq!(page.some(), Some(page));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_distance_between_two_pages_leads_from_one_to_the_other(first in 1..1_u32 << 31, distance in 0..1_u32 << 31) {
        let (first, distance) = (PageIndex(first), Pages(distance));
        let last = first + distance;
        prop_assert_eq!((last - first, last - distance), (distance, first));
        prop_assert!(last >= first);
        prop_assert_eq!(last.to_string(), last.0.to_string());
    }
}
