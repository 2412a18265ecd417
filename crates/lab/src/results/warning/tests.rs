use super::*;

fn noisy(subject: &str, spread_percent: u32) -> Warning {
    Warning::NoisyRounds { subject: subject.into(), allocator: "system".into(), spread_percent }
}

#[test]
fn many_noisy_measurements_become_one_sentence_that_names_the_worst() {
    let warnings = [noisy("a", 12), Warning::HugePagesAlways, noisy("b", 40), noisy("c", 20)];
    let told = sentences(&warnings);
    assert_eq!(told.len(), 2);
    assert!(told[0].contains("huge pages"));
    assert!(
        told[1].starts_with("3 measurements") && told[1].contains("b under system") && told[1].contains("--rounds")
    );
}

#[test]
fn two_noisy_measurements_are_named_one_by_one() {
    assert_eq!(sentences(&[noisy("a", 12), noisy("b", 40)]).len(), 2);
}

#[test]
fn one_round_is_not_called_rounds() {
    let told = [1, 2].map(|rounds| Warning::FewRounds { rounds, enough: 8 }.to_string());
    assert!(told[0].starts_with("in 1 round only") && told[1].starts_with("in 2 rounds only"), "{told:?}");
}
