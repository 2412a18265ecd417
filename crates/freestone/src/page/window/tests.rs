#![allow(unsafe_code)]
use super::*;
use crate::testing::WINDOW_BYTES;
use freestone_os::fake::{Failure, Fake};

const OS_PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

#[test]
fn an_open_window_costs_little() {
    for (os_page_bytes, most_kib) in OS_PAGES.into_iter().zip([40, 64, 192]) {
        let os = Fake::new(os_page_bytes, WINDOW_BYTES);
        open(&os).unwrap();
        assert_eq!(os.committed_bytes() >> 10, most_kib);
    }
}

/// Whatever a page needs can be written when `extend` says so, and a hundredth of the pages is enough for it.
#[test]
fn metadata_is_there_for_every_page_in_steps_that_get_longer() {
    for os_page_bytes in OS_PAGES {
        let os = Fake::new(os_page_bytes, WINDOW_BYTES);
        let (layout, mut committed) = open(&os).unwrap();
        os.plan(None);
        for n_pages in 1..=layout.n_pages {
            committed.extend(&os, &layout, n_pages).unwrap();
            assert!(committed.pages() >= n_pages && committed.reach(&layout) >= n_pages);
            let bytes = os.committed_bytes();
            let rounding = 3 * os_page_bytes;
            assert!(bytes <= (n_pages * 3 / 2 + PAGES_FIRST) * 580 + rounding, "{bytes} bytes for {n_pages} pages");
        }
        assert!(os.n_calls() <= 3 * 12, "{} calls for {} pages", os.n_calls(), layout.n_pages);
        assert_eq!(committed.reach(&layout), layout.n_pages);
        assert!(committed.extend(&os, &layout, layout.n_pages).is_ok());
    }
}

#[test]
fn where_memory_is_short_metadata_is_committed_as_far_as_it_is_needed() {
    let os = Fake::new(4096, WINDOW_BYTES);
    let (layout, mut committed) = open(&os).unwrap();
    os.limit_committed(os.committed_bytes() + 9 * 4096);
    // 64 pages more: 8 OS pages of bitmaps, one of records.
    assert_eq!(committed.extend(&os, &layout, 2 * PAGES_FIRST), Ok(()));
    assert_eq!(committed.extend(&os, &layout, 2 * PAGES_FIRST + 1), Err(Errno::NOMEM));
    os.limit_committed(usize::MAX);
    assert_eq!(committed.extend(&os, &layout, 2 * PAGES_FIRST + 1), Ok(()));
}

#[test]
fn a_window_that_cannot_be_opened_leaves_nothing_behind() {
    for nth_call in 0..4 {
        let os = Fake::new(4096, WINDOW_BYTES);
        os.plan(Some(Failure { nth_call, errno: Errno::NOMEM, for_good: false }));
        // The fake kernel proposes one place for each size, half as large and again.
        let opened = open(&os);
        let left = os.committed_bytes() >> 10;
        assert_eq!(left, if opened.is_some() { 40 } else { 0 }, "call {nth_call} failed");
    }
}
