use super::*;

const MIB: usize = 1 << 20;

#[test]
fn one_sparse_block_ends_huge_pages_and_two_dense_ones_restore_them() {
    let mut density = Density::FULL;
    assert!(density.is_enough());
    density.learn(None);
    assert!(density.is_enough(), "a block without samples changes nothing");
    density.learn(Some(Density::of_samples(1)));
    assert!(!density.is_enough());
    density.learn(Some(Density::of_samples(SAMPLES)));
    density.learn(Some(Density::of_samples(SAMPLES)));
    assert!(density.is_enough());
    let mut half = Density::FULL;
    half.learn(Some(Density::of_samples(SAMPLES / 2)));
    assert!(half.is_enough(), "a block that is half written costs no more than it gains");
}

#[test]
fn after_many_sparse_blocks_two_dense_ones_are_still_enough() {
    let mut density = Density::FULL;
    (0..100).for_each(|_| density.learn(Some(Density::of_samples(0))));
    density.learn(Some(Density::FULL));
    assert!(!density.is_enough());
    density.learn(Some(Density::FULL));
    assert!(density.is_enough());
}

#[test]
fn samples_lie_in_the_middle_of_different_parts_of_the_block() {
    assert_eq!([0, 1, 2, 3].map(|sample| page_of_sample(Pages(80), sample).0), [10, 30, 50, 70]);
    for pages in [64, 65, 100, 1000, u32::MAX] {
        let at: [Pages; SAMPLES] = core::array::from_fn(|sample| page_of_sample(Pages(pages), sample));
        assert!(at.is_sorted_by(|one, next| one < next) && at[SAMPLES - 1] < Pages(pages), "{at:?} of {pages}");
        assert!(at[0] >= Pages(pages / 8) && at[SAMPLES - 1] <= Pages(pages - pages / 8), "{at:?} of {pages}");
    }
}

#[test]
fn blocks_get_huge_pages_from_two_of_them_on_and_none_where_there_are_none() {
    let pages = |mib: usize| Pages::in_bytes((mib * MIB) as u64);
    assert_eq!(huge_page_for(pages(4), 2 * MIB), Some(Pages(32)));
    assert_eq!(huge_page_for(Pages(63), 2 * MIB), None);
    assert_eq!(huge_page_for(pages(63), 32 * MIB), None);
    assert_eq!(huge_page_for(pages(64), 32 * MIB), Some(pages(32)));
    assert_eq!(huge_page_for(pages(64), 0), None);
    assert!(may_have_huge_pages(pages(4)) && !may_have_huge_pages(Pages(63)));
}

#[test]
fn blocks_are_rounded_to_whole_huge_pages_if_that_adds_little() {
    let huge = Pages(32);
    assert_eq!(rounded(Pages(64), huge), Pages(64));
    assert_eq!(rounded(Pages(9 * 16), huge), Pages(160), "9 MiB become 10");
    assert_eq!(rounded(Pages(70), huge), Pages(70), "a quarter more is too much");
    assert_eq!(rounded(Pages::MAX, huge), Pages::MAX);
}
