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
