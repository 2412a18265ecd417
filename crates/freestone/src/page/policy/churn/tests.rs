use super::*;

const DECAY: Option<Millis> = Some(Millis(1000));
const BOUND: Pages = Pages(256);

/// A program with 4000 pages in use that had memory purged for its amount at 100 ms.
fn purged_at_100() -> Churn {
    let mut churn = Churn::NONE;
    churn.note_in_use(Pages(4000));
    churn.note_purge_for_amount(Pages(40), Moment(100));
    churn
}

#[test]
fn purged_memory_that_is_needed_again_within_the_decay_time_raises_the_bound() {
    for (wanted_at, raises) in [(100, true), (1099, true), (1100, false)] {
        let mut churn = purged_at_100();
        churn.note_fresh(Pages(40), true, DECAY, || Moment(wanted_at));
        assert_eq!(churn.raised(BOUND, Pages(3000)) > BOUND, raises, "wanted at {wanted_at} ms");
    }
}

#[test]
fn fresh_memory_raises_nothing_if_none_was_purged_and_reuse_nothing_if_there_is_no_churn() {
    let mut churn = Churn::NONE;
    churn.note_in_use(Pages(4000));
    churn.note_fresh(Pages(40), true, DECAY, || unreachable!("the clock need not be read"));
    churn.note_reuse(true, || unreachable!("the clock need not be read"));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
    let mut churn = purged_at_100();
    churn.note_reuse(true, || unreachable!("the clock need not be read"));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
}

#[test]
fn without_a_decay_time_there_is_no_churn() {
    let mut churn = purged_at_100();
    churn.note_fresh(Pages(40), true, None, || unreachable!("the clock need not be read"));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
}

#[test]
fn churn_lasts_as_long_as_dirty_memory_is_reused_and_a_decay_time_longer() {
    let mut churn = purged_at_100();
    churn.note_fresh(Pages(40), true, DECAY, || Moment(200));
    for now in [900, 1800, 2700] {
        churn.note_reuse(true, || Moment(now));
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
    churn.note_fresh(Pages(40), true, DECAY, || Moment(200));
    assert_eq!(churn.raised(BOUND, Pages(3000)), Pages(4000 * 11 / 10 - 3000));
    assert_eq!(churn.raised(BOUND, Pages(100)), Pages(800), "an idle program keeps little");
    assert_eq!(churn.raised(BOUND, Pages(10)), BOUND, "the option's bound is the minimum");
    let mut small = Churn::NONE;
    small.note_in_use(Pages(1000));
    small.note_purge_for_amount(Pages(40), Moment(0));
    small.note_fresh(Pages(40), true, DECAY, || Moment(0));
    assert_eq!(small.raised(BOUND, Pages(900)), Pages(350), "a quarter more than the peak, for small programs");
    small.note_in_use(Pages(2000));
    assert_eq!(small.raised(BOUND, Pages(1900)), Pages(356), "or 16 MiB, which is less from some size on");
}

#[test]
fn what_is_needed_is_what_lacks_to_the_recent_peak_and_a_quarter_of_it_and_at_least_1_mib() {
    let mut churn = Churn::NONE;
    assert_eq!(churn.needed_beside(Pages(10)), Pages(6));
    for (peak, in_use, needed) in [(40, 40, 16), (40, 0, 56), (40, 60, 0), (400, 400, 100), (400, 100, 400)] {
        churn.note_in_use(Pages(peak));
        assert_eq!(churn.needed_beside(Pages(in_use)), Pages(needed), "{in_use} of {peak} in use");
    }
    churn.pass_time(Moment(1000), DECAY, Pages(100));
    assert_eq!(churn.needed_beside(Pages(100)), Pages(400), "the peak of the period before counts");
    churn.pass_time(Moment(2000), DECAY, Pages(100));
    assert_eq!(churn.needed_beside(Pages(100)), Pages(25));
}

#[test]
fn a_peak_is_forgotten_after_two_periods() {
    let mut churn = purged_at_100();
    churn.note_fresh(Pages(40), true, DECAY, || Moment(200));
    let raised = |churn: &Churn| churn.raised(BOUND, Pages(1000)).0;
    churn.pass_time(Moment(1000), DECAY, Pages(1000));
    churn.note_reuse(true, || Moment(1000));
    assert_eq!(raised(&churn), 3400, "the peak of the period before counts");
    churn.note_reuse(true, || Moment(1900));
    churn.pass_time(Moment(2000), DECAY, Pages(1000));
    assert_eq!(raised(&churn), BOUND.0, "the peak is two periods old");
}

/// A program with 4000 pages at its peak and nothing in use, of which so many pages were purged, and taken again for spans.
fn wasted(gone: u32, fresh: u32) -> Churn {
    let mut churn = Churn::NONE;
    churn.note_in_use(Pages(4000));
    churn.note_purge_for_amount(Pages(gone), Moment(100));
    churn.note_fresh(Pages(fresh), false, DECAY, || Moment(150));
    churn
}

#[test]
fn half_of_what_spans_took_again_may_stay() {
    for (gone, fresh, kept) in [(2000, 2000, 1000), (2000, 3000, 1000), (3000, 2000, 1000), (0, 2000, 0), (2000, 0, 0)]
    {
        let churn = wasted(gone, fresh);
        assert_eq!(churn.raised(Pages::ZERO, Pages::ZERO), Pages(kept), "{gone} purged, {fresh} taken");
        assert_eq!(churn.raised(BOUND, Pages::ZERO), BOUND.max(Pages(kept)), "the option's bound is the minimum");
    }
    let mut churn = wasted(2000, 1500);
    churn.note_fresh(Pages(1500), false, DECAY, || Moment(160));
    assert_eq!(churn.raised(Pages::ZERO, Pages::ZERO), Pages(1000), "what was taken again is not taken twice");
}

#[test]
fn what_stays_after_bursts_is_with_what_is_in_use_no_more_than_the_recent_peak() {
    let mut churn = wasted(3000, 3000);
    for at in 1..10 {
        churn.note_purge_for_amount(Pages(3000), Moment(150 + at));
        churn.note_fresh(Pages(3000), false, DECAY, || Moment(150 + at));
    }
    for (in_use, kept) in [(0, 4000), (1000, 3000), (3990, 10), (4000, 0), (5000, 0)] {
        assert_eq!(churn.raised(Pages::ZERO, Pages(in_use)), Pages(kept), "{in_use} in use");
    }
}

#[test]
fn bursts_that_repeat_keep_what_they_need_after_six_and_waste_two_of_them() {
    let (mut churn, mut bound, mut wasted) = (Churn::NONE, BOUND, 0);
    churn.note_in_use(Pages(4000));
    for burst in 0..30 {
        let now = Moment(100 + 50 * burst);
        let purged = Pages(4000) - bound;
        churn.note_purge_for_amount(purged, now);
        churn.note_reuse(false, || now);
        churn.note_fresh(purged, false, DECAY, || now);
        churn.pass_time(now, DECAY, Pages(4000));
        (bound, wasted) = (churn.raised(BOUND, Pages::ZERO), wasted + purged.0);
        assert!(burst < 6 || bound.0 > 3900, "{bound:?} after burst {burst}");
    }
    assert!((7500..=8000).contains(&wasted), "{wasted} pages were purged in vain");
}

#[test]
fn what_stays_after_bursts_goes_a_decay_time_after_it_was_last_taken() {
    let mut churn = wasted(2000, 2000);
    churn.pass_time(Moment(1149), DECAY, Pages(4000));
    churn.note_reuse(false, || Moment(1149));
    churn.pass_time(Moment(2148), DECAY, Pages(4000));
    assert_eq!(churn.raised(Pages::ZERO, Pages::ZERO), Pages(1000));
    churn.pass_time(Moment(2149), DECAY, Pages(4000));
    assert_eq!(churn.raised(Pages::ZERO, Pages::ZERO), Pages::ZERO);
}

#[test]
fn spans_do_not_let_dirty_memory_stay_as_large_blocks_do() {
    let mut churn = wasted(40, 40);
    churn.note_reuse(false, || Moment(200));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND);
    churn.note_fresh(Pages(40), true, DECAY, || Moment(200));
    assert_eq!(churn.raised(BOUND, Pages(3000)), Pages(1400));
    churn.note_reuse(false, || Moment(1150));
    churn.pass_time(Moment(1200), DECAY, Pages(3000));
    assert_eq!(churn.raised(BOUND, Pages(3000)), BOUND, "for a decay time no large block took dirty memory");
}

#[test]
fn memory_that_was_purged_in_an_earlier_period_is_not_wasted() {
    let mut churn = Churn::NONE;
    churn.note_in_use(Pages(4000));
    churn.note_purge_for_amount(Pages(2000), Moment(100));
    churn.pass_time(Moment(1000), DECAY, Pages(4000));
    churn.note_purge_for_amount(Pages(100), Moment(1001));
    churn.note_fresh(Pages(2000), false, DECAY, || Moment(1002));
    assert_eq!(churn.raised(Pages::ZERO, Pages::ZERO), Pages(50));
    let mut churn = wasted(2000, 0);
    churn.note_fresh(Pages(2000), false, DECAY, || Moment(1100));
    churn.note_fresh(Pages(2000), false, DECAY, || Moment(1100));
    assert_eq!(churn.raised(Pages::ZERO, Pages::ZERO), Pages::ZERO, "a decay time after the purge");
}
