use super::*;

/// Rounds whose noise is a repeatable mixture of small and, now and then, large deviations.
fn noisy(seed: u64, n: usize, centre: f64, noise: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..n)
        .map(|_| {
            let gauss = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let outlier = if uniform() < 0.05 { 4.0 } else { 1.0 };
            centre * (1.0 + gauss * noise * outlier)
        })
        .collect()
}

#[test]
fn the_median_is_the_middle_value() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
}

#[test]
fn equal_distributions_are_told_apart_in_fewer_than_one_of_1000_comparisons() {
    for rounds in [3, 4, 5, 6, 7, 8, 9, 15] {
        let claims = (0..20_000)
            .filter(|&seed| {
                let (ours, base) = (noisy(seed * 2 + 1, rounds, 1.0, 0.03), noisy(seed * 2 + 2, rounds, 1.0, 0.03));
                let ratios: Vec<f64> = ours.iter().zip(&base).map(|(ours, base)| ours / base).collect();
                is_beyond_chance(&ratios, &ours, &base)
            })
            .count();
        assert!(claims < 20, "{claims} of 20000 comparisons of {rounds} rounds claimed a difference");
    }
}

#[test]
fn a_difference_of_a_tenth_is_seen_in_eight_rounds_with_two_percent_noise() {
    let seen = (0..200)
        .filter(|&seed| {
            let ratio = compare(&noisy(seed + 1, 8, 0.9, 0.02), &noisy(seed + 500, 8, 1.0, 0.02));
            ratio.is_some_and(|ratio| ratio.verdict == Verdict::Less)
        })
        .count();
    assert!(seen > 160, "only {seen} of 200");
}

#[test]
fn one_disturbed_round_does_not_hide_a_factor_of_two() {
    let ours = [10.0, 10.5, 9.8, 31.0, 10.1, 10.2, 9.9];
    let base = [20.0, 20.4, 19.7, 20.1, 20.9, 20.2, 20.3];
    assert_eq!(compare(&ours, &base).unwrap().verdict, Verdict::Less);
}

#[test]
fn the_ratio_lies_inside_its_interval_and_repeats_exactly() {
    let (ours, base) = (noisy(1, 9, 1.3, 0.05), noisy(2, 9, 1.0, 0.05));
    let first = compare(&ours, &base).unwrap();
    let again = compare(&ours, &base).unwrap();
    assert!(first.low <= first.median && first.median <= first.high);
    assert_eq!((first.low, first.high), (again.low, again.high));
    assert_eq!(first.verdict, Verdict::More);
}

#[test]
fn identical_figures_are_no_difference_and_nothing_compares_to_nothing() {
    assert_eq!(compare(&[2.0; 5], &[2.0; 5]).unwrap().verdict, Verdict::NoDifferenceSeen);
    assert!(compare(&[], &[]).is_none());
    assert!(compare(&[0.0], &[1.0]).is_none());
}
