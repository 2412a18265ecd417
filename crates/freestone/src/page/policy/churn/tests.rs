use super::*;

const DECAY: Option<Millis> = Some(Millis(1000));
const BOUND: Pages = Pages(256);

/// A program with 4000 pages in use that had memory purged for its amount at 100 ms.
fn purged_at_100() -> Churn {
    let mut churn = Churn::NONE;
    churn.note_in_use(Pages(4000));
    churn.note_purge_for_amount(Moment(100));
    churn
}

#[test]
fn purged_memory_that_is_needed_again_within_the_decay_time_raises_the_bound() {
    for (wanted_at, raises) in [(100, true), (1099, true), (1100, false)] {
        let mut churn = purged_at_100();
        churn.note_fresh(DECAY, || Moment(wanted_at));
        assert_eq!(churn.raised(BOUND, Pages(3000)) > BOUND, raises, "wanted at {wanted_at} ms");
    }
}

#[test]
fn fresh_memory_raises_nothing_if_none_was_purged_and_reuse_nothing_if_there_is_no_churn() {
    let mut churn = Churn::NONE;
    churn.note_in_use(Pages(4000));
    churn.note_fresh(DECAY, || unreachable!("the clock need not be read"));
    churn.note_reuse(DECAY, || unreachable!("the clock need not be read"));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
    let mut churn = purged_at_100();
    churn.note_reuse(DECAY, || unreachable!("the clock need not be read"));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
}

#[test]
fn without_a_decay_time_there_is_no_churn() {
    let mut churn = purged_at_100();
    churn.note_fresh(None, || unreachable!("the clock need not be read"));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
}

#[test]
fn churn_lasts_as_long_as_dirty_memory_is_reused_and_a_decay_time_longer() {
    let mut churn = purged_at_100();
    churn.note_fresh(DECAY, || Moment(200));
    for now in [900, 1800, 2700] {
        churn.note_reuse(DECAY, || Moment(now));
        churn.pass_time(Moment(now), DECAY, Pages(3000));
    }
    churn.pass_time(Moment(3699), DECAY, Pages(3000));
    // A thread that read the clock before another noted the last reuse.
    churn.pass_time(Moment(2699), DECAY, Pages(3000));
    assert!(churn.raised(BOUND, Pages(3000)) > BOUND);
    churn.pass_time(Moment(3700), DECAY, Pages(3000));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
}

#[test]
fn used_and_dirty_memory_may_be_a_tenth_more_than_the_recent_peak_and_dirty_memory_eight_times_the_used() {
    let mut churn = purged_at_100();
    churn.note_fresh(DECAY, || Moment(200));
    assert_eq!(churn.raised(BOUND, Pages(3000)), Pages(4000 * 11 / 10 - 3000));
    assert_eq!(churn.raised(BOUND, Pages(100)), Pages(800), "an idle program keeps little");
    assert_eq!(churn.raised(BOUND, Pages(10)), BOUND, "the option's bound is the minimum");
    let mut small = Churn::NONE;
    small.note_in_use(Pages(1000));
    small.note_purge_for_amount(Moment(0));
    small.note_fresh(DECAY, || Moment(0));
    assert_eq!(small.raised(BOUND, Pages(900)), Pages(356), "16 MiB more than the peak, for small programs");
}

#[test]
fn a_peak_is_forgotten_after_two_periods() {
    let mut churn = purged_at_100();
    churn.note_fresh(DECAY, || Moment(200));
    let raised = |churn: &Churn| churn.raised(BOUND, Pages(1000)).0;
    churn.pass_time(Moment(1000), DECAY, Pages(1000));
    churn.note_reuse(DECAY, || Moment(1000));
    assert_eq!(raised(&churn), 3400, "the peak of the period before counts");
    churn.note_reuse(DECAY, || Moment(1900));
    churn.pass_time(Moment(2000), DECAY, Pages(1000));
    assert_eq!(raised(&churn), BOUND.0, "the peak is two periods old");
}
