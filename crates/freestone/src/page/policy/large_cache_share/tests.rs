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
fn lists_may_have_half_of_the_bound_but_no_more_than_others_leave() {
    assert_eq!(listed_most(Pages(256), Pages(256)), Pages(128));
    assert_eq!(listed_most(Pages(256), Pages(128)), Pages(128));
    assert_eq!(listed_most(Pages(256), Pages(56)), Pages(56));
    assert_eq!(listed_most(Pages::ZERO, Pages(56)), Pages::ZERO);
}
