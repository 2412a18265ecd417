use super::*;
use crate::allocator::description::Allocator;
use crate::process::command_record::CommandRecord;
use crate::results::outcome::{Outcome, Run};

/// The sentence about the allocators that need least, with plain names.
fn leaders(summary: &Summary, aspect: &Aspect) -> Option<String> {
    least(summary, aspect, str::to_owned)
}

/// Eight rounds of commands: subject, allocator, and how many times as long and as large as the unit.
fn summary_of(figures: &[(&str, &str, u64, u64)]) -> Summary {
    let mut runs = Vec::new();
    for round in 0..8 {
        for &(subject, allocator, time, memory) in figures {
            let record = CommandRecord::example(time * 1_000_000 + round as u64, memory << 20);
            let (subject, allocator) = (subject.into(), allocator.into());
            runs.push(Run { subject, allocator, round, outcome: Outcome::Command(record) });
        }
    }
    Summary::of(&runs, "system")
}

#[test]
fn the_allocators_within_a_small_factor_of_the_least_lead_together() {
    let summary = summary_of(&[
        ("a", "system", 100, 100),
        ("a", "freestone", 50, 100),
        ("a", "other", 51, 400),
        ("b", "system", 100, 100),
        ("b", "freestone", 80, 100),
        ("b", "other", 80, 400),
    ]);
    assert_eq!(leaders(&summary, &ASPECTS[0]).unwrap(), "Least time: freestone and other.");
    assert_eq!(leaders(&summary, &ASPECTS[1]).unwrap(), "Least peak memory: system and freestone.");
    assert_eq!(defeats(&summary, &ASPECTS[1]).unwrap(), "In peak memory, no allocator was seen ahead of freestone.");
}

#[test]
fn the_answer_names_what_differs_visibly_and_says_where_nothing_does() {
    let answered =
        |time, memory| answer(&summary_of(&[("a", "system", 100, 100), ("a", "freestone", time, memory)])).unwrap();
    assert_eq!(answered(56, 48), "Freestone takes 0.56 × the time and 0.48 × the peak memory of system");
    assert_eq!(answered(56, 100), "Freestone takes 0.56 × the time of system");
    assert!(answered(100, 120).ends_with("1.20 × the peak memory of system; no difference in time was seen"));
    assert_eq!(answered(100, 100), "No difference was seen between Freestone and system");
    assert_eq!(answer(&summary_of(&[("a", "system", 1, 1), ("a", "other", 1, 1)])), None);
}

#[test]
fn where_freestone_is_behind_the_winner_is_named_and_the_worst_comes_first() {
    let summary = summary_of(&[
        ("a", "system", 100, 100),
        ("a", "freestone", 110, 100),
        ("a", "other", 400, 100),
        ("b", "system", 100, 100),
        ("b", "freestone", 80, 100),
        ("b", "other", 40, 100),
        ("c", "system", 100, 100),
        ("c", "freestone", 40, 100),
        ("c", "other", 80, 100),
    ]);
    let said = defeats(&summary, &ASPECTS[0]).unwrap();
    assert_eq!(
        said,
        "In time, freestone is behind the best in 2 of 3: b (2.00 times other's), a (1.10 times system's)."
    );
}

#[test]
fn what_shows_memory_does_not_count_for_time() {
    let summary = summary_of(&[("idle_threads", "system", 100, 100), ("idle_threads", "freestone", 300, 50)]);
    assert!(leaders(&summary, &ASPECTS[0]).is_none() && defeats(&summary, &ASPECTS[0]).is_none());
    assert_eq!(leaders(&summary, &ASPECTS[1]).unwrap(), "Least peak memory: freestone.");
}

#[test]
fn without_a_difference_no_allocator_leads() {
    let summary = summary_of(&[("a", "system", 100, 100), ("a", "freestone", 100, 100)]);
    assert_eq!(leaders(&summary, &ASPECTS[0]).unwrap(), "No difference in time was seen.");
}

#[test]
fn a_single_allocator_does_not_lead() {
    let summary = summary_of(&[("a", "freestone", 100, 100)]);
    assert!(leaders(&summary, &ASPECTS[0]).is_none() && defeats(&summary, &ASPECTS[0]).is_none());
}

#[test]
fn where_the_baseline_failed_in_everything_the_others_are_compared_with_each_other() {
    let summary = summary_of(&[("a", "other", 100, 100), ("a", "freestone", 50, 100)]);
    let allocators = ["system", "other", "freestone"].map(|name| Allocator::in_library(name, "/x.so".into()));
    let summary = summary.with_versions(&allocators);
    assert_eq!(summary.allocators(), ["other", "freestone"]);
    assert_eq!(answer(&summary).unwrap(), "Freestone takes 0.50 × the time of other");
}
