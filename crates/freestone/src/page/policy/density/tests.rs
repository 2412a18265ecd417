use super::*;

const MIB: usize = 1 << 20;

#[test]
fn one_sparse_block_ends_huge_pages_and_two_dense_ones_restore_them() {
    let mut density = Density::FULL;
    assert!(density.is_enough(Pages(64)));
    density.learn(None);
    assert!(density.is_enough(Pages(64)), "a block without samples changes nothing");
    density.learn(Some(Density::of_samples(1)));
    assert!(!density.is_enough(Pages(64)));
    density.learn(Some(Density::of_samples(SAMPLES)));
    density.learn(Some(Density::of_samples(SAMPLES)));
    assert!(density.is_enough(Pages(64)));
    let mut half = Density::FULL;
    half.learn(Some(Density::of_samples(SAMPLES / 2)));
    assert!(half.is_enough(Pages(64)), "a block that is half written costs no more than it gains");
}

#[test]
fn after_many_sparse_blocks_two_dense_ones_are_still_enough() {
    let mut density = Density::FULL;
    (0..100).for_each(|_| density.learn(Some(Density::of_samples(0))));
    density.learn(Some(Density::FULL));
    assert!(!density.is_enough(Pages(64)));
    density.learn(Some(Density::FULL));
    assert!(density.is_enough(Pages(64)));
}

#[test]
fn samples_lie_in_the_middle_of_different_parts_of_the_block() {
    for (os_page_bytes, pages) in
        [4096, 16384, 65536].into_iter().flat_map(|os| [64, 65, 1000, u32::MAX].map(|n| (os, n)))
    {
        let at: [usize; SAMPLES] = core::array::from_fn(|sample| offset_of_sample(Pages(pages), sample, os_page_bytes));
        let in_pages = at.map(|offset| offset / PAGE_BYTES);
        let middles = [1, 3, 5, 7].map(|eighths| eighths * pages as usize / 8);
        assert_eq!(in_pages, middles, "{pages} pages");
        assert!(at.iter().all(|offset| offset % os_page_bytes == 0), "{at:?}");
    }
    let in_page = |sample| offset_of_sample(Pages(80), sample, 4096) % PAGE_BYTES / 4096;
    assert_eq!([0, 1, 2, 3].map(in_page), [3, 5, 7, 9]);
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

#[test]
fn before_any_block_was_sampled_long_ones_get_huge_pages() {
    let mut density = Density::UNKNOWN;
    assert!(density.is_enough(Pages(1024)) && !density.is_enough(Pages(1023)));
    density.learn(Some(Density::FULL));
    assert!(density.is_enough(Pages(64)), "one dense block is enough");
    for resident in 0..SAMPLES / 2 {
        let mut density = Density::UNKNOWN;
        density.learn(Some(Density::of_samples(resident)));
        assert!(!density.is_enough(Pages(1 << 20)), "{resident} samples of {SAMPLES} have memory");
    }
}
