use super::*;
use crate::command::top::testing::state;

#[test]
fn rates_are_taken_over_a_second_not_over_the_last_step() {
    let mut sampler = Sampler::default();
    assert_eq!(sampler.rates(), Rates::default());
    for step in 0..20 {
        let mut state = state(step + 1, 1000 + step * 100);
        state.stats.n_allocations = step * step;
        state.classes[3].n_allocations = step * 10;
        assert!(sampler.add(&state) && !sampler.add(&state));
    }
    // From step 9, 1000 ms before the last.
    let rates = sampler.rates();
    assert_eq!((rates.allocations, rates.by_class[3], rates.frees), (f64::from(19 * 19 - 9 * 9), 100.0, 0.0));
}

#[test]
fn the_first_two_samples_give_rates_however_close_they_are() {
    let mut sampler = Sampler::default();
    sampler.add(&state(1, 1000));
    let mut later = state(2, 1100);
    later.stats.purged = 50;
    sampler.add(&later);
    assert_eq!(sampler.rates().purged, 500.0);
}

#[test]
fn a_series_has_the_last_samples_and_begins_anew_with_another_program() {
    let mut sampler = Sampler::default();
    for number in 1..=5 {
        let mut state = state(number, number * 100);
        state.stats.live = number;
        sampler.add(&state);
    }
    assert_eq!(sampler.series(3, |stats| stats.live), [3, 4, 5]);
    sampler.add(&state(2, 600));
    assert_eq!(sampler.series(9, |stats| stats.live).len(), 1);
}

#[test]
fn samples_are_bounded() {
    let mut sampler = Sampler::default();
    (1..=KEPT as u64 + 10).for_each(|number| assert!(sampler.add(&state(number, number * 100))));
    assert_eq!(sampler.series(usize::MAX, |stats| stats.live).len(), KEPT);
}
