use super::*;

const DECAY: Option<Millis> = Some(Millis(1000));

#[test]
fn a_run_is_purged_at_the_decay_time_however_little_is_dirty() {
    assert_eq!(due(Millis(999), DECAY, Pages(1), Pages(256)), None);
    assert_eq!(due(Millis(1000), DECAY, Pages(1), Pages(256)), Some(Due::Expired));
    assert_eq!(due(Millis(0), Some(Millis(0)), Pages(1), Pages(256)), Some(Due::Expired));
    assert_eq!(due(Millis::MAX, None, Pages(1), Pages(256)), None, "without a decay time nothing gets too old");
}

#[test]
fn memory_beyond_the_bound_is_purged_in_pieces_of_at_least_a_mebibyte() {
    assert_eq!(due(Millis(0), DECAY, Pages(256), Pages(256)), None);
    assert_eq!(due(Millis(0), DECAY, Pages(257), Pages(256)), Some(Due::Excess(Pages(16))));
    assert_eq!(due(Millis(0), None, Pages(300), Pages(256)), Some(Due::Excess(Pages(44))));
    assert_eq!(due(Millis(0), DECAY, Pages(3), Pages::ZERO), Some(Due::Excess(Pages(16))));
}

#[test]
fn age_comes_before_amount() {
    assert_eq!(due(Millis(1000), DECAY, Pages(300), Pages(256)), Some(Due::Expired));
}

#[test]
fn ages_are_grouped_at_a_quarter_a_half_and_all_of_the_decay_time() {
    let groups = [0, 249, 250, 499, 500, 999, 1000, 5000].map(|age| age_group(Millis(age), Millis(1000)));
    assert_eq!(groups, [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(age_group(Millis(5), Millis(0)), AGE_GROUPS - 1);
}
