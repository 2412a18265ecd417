use super::*;

#[test]
fn caches_may_have_a_quarter_of_the_dirty_bound_and_nothing_where_nothing_may_stay() {
    assert_eq!(pages_most(Pages(256)), Pages(64));
    assert_eq!(pages_most(Pages(3)), Pages::ZERO);
    assert_eq!(pages_most(Pages::ZERO), Pages::ZERO);
}

#[test]
fn caches_are_checked_four_times_in_a_decay_time() {
    assert_eq!(check_interval(Millis(1000)), Millis(250));
    assert_eq!(check_interval(Millis(0)), Millis(0));
}

#[test]
fn a_block_takes_a_run_that_is_longer_by_a_quarter_at_most() {
    for (pages, expected) in [(1, 1), (3, 3), (4, 5), (7, 8), (8, 10), (13, 16)] {
        assert_eq!(pages + n_lengths_taken(pages) - 1, expected);
    }
}
