use super::*;

/// The demo's verdict on these rounds under the system's allocator and under Freestone.
fn words(base: &[f64], ours: &[f64]) -> String {
    in_words(&statistics::compare(ours, base).unwrap())
}

#[test]
fn a_difference_is_claimed_by_the_rule_of_every_measurement() {
    let base = [1.00, 1.01, 0.99, 1.00, 1.02, 1.00, 0.98, 1.00];
    assert_eq!(words(&base, &base.map(|time| time * 0.5)), "0.50  0.50–0.50  (50 % less)");
    assert_eq!(words(&base, &base.map(|time| time * 2.0)), "2.00  2.00–2.00  (100 % more)");
}

#[test]
fn no_difference_is_seen_where_the_interval_holds_1_or_chance_explains_it() {
    let base = [1.0; 8];
    let straddling = [0.8, 1.2, 0.9, 1.1, 0.8, 1.2, 0.9, 1.1];
    assert_eq!(words(&base, &straddling), "≈  0.80–1.20");
    // All four below 1, as happens by chance once in sixteen times.
    let by_chance = words(&[1.0; 4], &[0.95, 0.80, 0.90, 0.70]);
    assert!(by_chance.starts_with('≈') && by_chance.ends_with("chance?"), "{by_chance}");
}
