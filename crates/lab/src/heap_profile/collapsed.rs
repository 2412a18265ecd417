//! Collapsed stacks: a line for each stack of functions, `main;work;push 4096`, as flame graph tools read them. Stacks that differ only in the lines of
//! their source are one.

use crate::heap_profile::named::{NamedProfile, Stack};
use crate::heap_profile::usage::Measure;
use std::collections::BTreeMap;

/// The lines of a profile, sorted.
pub(crate) fn lines(profile: &NamedProfile, measure: Measure) -> Vec<String> {
    let mut bytes = BTreeMap::<String, i64>::new();
    for (stack, amount) in profile.of(measure).filter(|(_, amount)| amount.bytes > 0) {
        *bytes.entry(joined(stack)).or_default() += amount.bytes;
    }
    bytes.into_iter().map(|(stack, bytes)| format!("{stack} {bytes}")).collect()
}

/// The lines of a change from `before` to `after`: both figures behind each stack.
pub(crate) fn lines_of_change(before: &NamedProfile, after: &NamedProfile, measure: Measure) -> Vec<String> {
    let mut bytes = BTreeMap::<String, [i64; 2]>::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for (stack, usage) in &profile.sites {
            bytes.entry(joined(stack)).or_default()[side] += usage.of(measure).bytes.max(0);
        }
    }
    bytes.into_iter().map(|(stack, [before, after])| format!("{stack} {before} {after}")).collect()
}

/// The functions of a stack with semicolons between them.
fn joined(stack: &Stack) -> String {
    let names: Vec<String> = stack.iter().map(|frame| frame.function.replace([';', '\n'], ":")).collect();
    names.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap_profile::named::tests::profile;

    #[test]
    fn each_stack_is_a_line_with_its_bytes() {
        let profile = profile(&[("main;b", 2, 5), ("main;a", 1, 1), ("main;c", 0, 9)]);
        assert_eq!(lines(&profile, Measure::Live), ["main;a 1", "main;b 2"]);
        assert_eq!(lines(&profile, Measure::Total), ["main;a 1", "main;b 5", "main;c 9"]);
    }

    #[test]
    fn a_change_has_both_figures() {
        let (before, after) = (profile(&[("a", 3, 3)]), profile(&[("a", 5, 5), ("b", 1, 1)]));
        assert_eq!(lines_of_change(&before, &after, Measure::Live), ["a 3 5", "b 0 1"]);
    }

    #[test]
    fn stacks_that_differ_only_in_their_lines_are_summed() {
        let at_two_lines = |live| {
            let mut profile = profile(&[("main;a", live, live)]);
            let (mut stack, usage) = profile.sites.clone().pop_first().unwrap();
            stack[1].line = 7;
            profile.sites.insert(stack, usage);
            profile
        };
        let (before, after) = (at_two_lines(1), at_two_lines(3));
        assert_eq!(lines(&after, Measure::Live), ["main;a 6"]);
        assert_eq!(lines_of_change(&before, &after, Measure::Live), ["main;a 2 6"]);
    }
}
