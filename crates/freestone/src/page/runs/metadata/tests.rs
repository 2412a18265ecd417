use super::*;
use crate::testing::RANGE_BYTES;
use freestone_os::fake::Fake;

const OS_PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

fn begin(os: &Fake) -> MetadataArrays {
    let base = os.propose_range(RANGE_BYTES, 0).unwrap();
    MetadataArrays::begin(os, Layout::new(base, RANGE_BYTES, os.os_page_bytes(), 0).unwrap()).unwrap()
}

/// After `extend`, the metadata of each page can be written; it takes 580 bytes a page, rounded up to OS pages.
#[test]
fn metadata_is_committed_for_every_page_and_no_farther() {
    for os_page_bytes in OS_PAGES {
        let os = Fake::new(os_page_bytes, RANGE_BYTES);
        let mut arrays = begin(&os);
        let n_all = arrays.layout().n_pages;
        for n_pages in (1..n_all).step_by(if cfg!(miri) { 211 } else { 1 }).chain([n_all]) {
            arrays.extend(&os, n_pages).unwrap();
            assert!(arrays.pages() >= n_pages && arrays.reach() >= n_pages);
            let bytes = os.committed_bytes();
            assert_eq!(bytes, arrays.bytes());
            let rounding = 3 * os_page_bytes;
            assert!(bytes <= n_pages.max(PAGES_FIRST) * 580 + rounding, "{bytes} bytes for {n_pages} pages");
        }
        assert_eq!(arrays.reach(), n_all);
        assert_eq!(arrays.extend(&os, n_all + 1), Err(Errno::NOMEM));
    }
}

#[test]
fn metadata_that_the_kernel_refuses_can_be_committed_later() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut arrays = begin(&os);
    os.limit_committed(os.committed_bytes() + 9 * 4096);
    // 64 pages more: 8 OS pages of bitmaps, one of records.
    assert_eq!(arrays.extend(&os, 2 * PAGES_FIRST), Ok(()));
    assert_eq!(arrays.extend(&os, 2 * PAGES_FIRST + 1), Err(Errno::NOMEM));
    os.limit_committed(usize::MAX);
    assert_eq!(arrays.extend(&os, 2 * PAGES_FIRST + 1), Ok(()));
}

#[test]
fn a_foreign_mapping_in_the_way_of_metadata_counts_as_a_lack_of_memory() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut arrays = begin(&os);
    os.plan(Some(freestone_os::fake::Failure { nth_call: 0, errno: Errno::EXIST, for_good: true }));
    assert_eq!(arrays.extend(&os, 2 * PAGES_FIRST), Err(Errno::NOMEM));
}
