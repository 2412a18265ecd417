use super::*;

#[test]
fn a_span_in_which_os_pages_were_emptied_is_returned_when_the_flush_turns_to_the_next() {
    let purge = SpanPurge::new();
    assert_eq!(purge.turn_to(PageIndex(7)), None);
    assert!(purge.is_at(PageIndex(7)));
    purge.note_emptied(true);
    assert_eq!(purge.turn_to(PageIndex(9)), Some(PageIndex(7)));
    assert_eq!(purge.turn_to(PageIndex::NONE), None, "nothing was emptied in the second");
}

#[test]
fn spans_wait_until_a_sixteenth_of_a_small_heap_or_sixteen_wait() {
    for (n_pages, most) in [(0, 1), (31, 1), (32, 2), (100, 6), (256, 16), (100_000, 16)] {
        let purge = SpanPurge::new();
        let n = (1..).find(|&at| purge.wait(PageIndex(at), n_pages)).unwrap();
        assert_eq!(n, most, "{n_pages} pages");
        assert_eq!((1..=most).filter(|_| purge.take_waiting().is_some()).count() as u32, most);
        assert_eq!(purge.take_waiting(), None);
    }
}

#[test]
fn a_span_waits_once_however_often_it_has_emptied_os_pages() {
    let purge = SpanPurge::new();
    for at in [7, 9, 7, 9, 7] {
        assert!(!purge.wait(PageIndex(at), 48));
    }
    assert!(purge.wait(PageIndex(11), 48));
    let mut taken: [_; 4] = core::array::from_fn(|_| purge.take_waiting().map(|page| page.0));
    taken.sort_unstable();
    assert_eq!(taken, [None, Some(7), Some(9), Some(11)]);
}

#[test]
fn a_span_that_went_to_the_page_heap_is_not_purged() {
    let purge = SpanPurge::new();
    purge.turn_to(PageIndex(7));
    purge.note_emptied(true);
    purge.forget();
    assert!(!purge.is_at(PageIndex(7)));
    assert_eq!(purge.turn_to(PageIndex::NONE), None);
}

#[test]
fn blocks_are_checked_while_the_bound_is_passed_and_until_one_has_emptied_a_page() {
    let purge = SpanPurge::new();
    assert!(!purge.is_on() && !purge.looks());
    purge.set_over_bound(true);
    assert!(purge.is_on() && purge.looks());
    purge.note_emptied(true);
    assert!(purge.is_on() && !purge.looks());
    purge.set_over_bound(false);
    assert!(!purge.is_on());
}

#[test]
fn passing_the_bound_asks_for_one_sweep_and_staying_above_it_for_no_other() {
    let purge = SpanPurge::new();
    assert!(!purge.set_over_bound(false));
    assert!(purge.set_over_bound(true));
    assert!(purge.set_over_bound(true), "it has not been done yet");
    assert!(purge.begin_sweep(5000, 1000));
    assert!(!purge.set_over_bound(true));
    purge.set_over_bound(false);
    assert!(purge.set_over_bound(true));
}

#[test]
fn a_sweep_that_was_requested_is_still_due_when_the_bound_is_met_again() {
    let purge = SpanPurge::new();
    purge.set_over_bound(true);
    assert!(purge.set_over_bound(false));
}

#[test]
fn sweeps_are_a_decay_time_apart_also_when_the_clock_wraps() {
    let purge = SpanPurge::new();
    assert!(purge.begin_sweep(10, 1000), "the first sweep is always due");
    assert!(!purge.begin_sweep(1009, 1000));
    assert!(purge.begin_sweep(1010, 1000));
    assert!(purge.begin_sweep(u32::MAX - 5, 1000));
    assert!(!purge.begin_sweep(900, 1000));
    assert!(purge.begin_sweep(994, 1000));
}

#[test]
fn a_sweep_at_time_zero_counts_as_one() {
    let purge = SpanPurge::new();
    assert!(purge.begin_sweep(0, 1000));
    assert!(!purge.begin_sweep(500, 1000));
}
