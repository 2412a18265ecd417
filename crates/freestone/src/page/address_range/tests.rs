use super::*;
use crate::testing::RANGE_BYTES;
use freestone_os::Errno;
use freestone_os::fake::{Failure, Fake};

#[test]
fn an_open_range_costs_little() {
    for (os_page_bytes, kib) in [(4 << 10, 40), (16 << 10, 64), (64 << 10, 192)] {
        let os = Fake::new(os_page_bytes, RANGE_BYTES);
        open(&os).unwrap();
        assert_eq!(os.committed_bytes() >> 10, kib);
    }
}

#[test]
fn a_range_that_cannot_be_opened_leaves_nothing_behind() {
    for nth_call in 0..4 {
        let os = Fake::new(4096, RANGE_BYTES);
        os.plan(Some(Failure { nth_call, errno: Errno::NOMEM, for_good: false }));
        // The fake kernel proposes one place for each size, half as large and again.
        let opened = open(&os);
        let left = os.committed_bytes() >> 10;
        assert_eq!(left, if opened.is_some() { 40 } else { 0 }, "call {nth_call} failed");
    }
}

#[test]
fn where_there_is_no_room_for_the_wanted_range_one_of_half_its_length_is_opened() {
    let os = Fake::new(4096, 2 * RANGE_BYTES);
    os.plan(Some(Failure { nth_call: 0, errno: Errno::NOMEM, for_good: false }));
    let opened = open(&os).expect("there is room for half of it");
    let bytes = opened.layout().n_pages * PAGE_BYTES;
    assert!((RANGE_BYTES / 2..=RANGE_BYTES).contains(&bytes), "{bytes} bytes of pages");
}

/// Such as one beyond the addresses that the processor has: the kernel says that memory ran out.
#[test]
fn where_one_place_is_refused_others_are_tried() {
    let os = Fake::new(4096, 2 * RANGE_BYTES);
    os.plan(Some(Failure { nth_call: 1, errno: Errno::NOMEM, for_good: false }));
    assert!(open(&os).is_some());
}
