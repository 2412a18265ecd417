//! Collapsed stacks: a line for each stack, `main;work;push 4096`, as flame graph tools read them.

use crate::heap_profile::named::{NamedProfile, Stack};
use crate::heap_profile::usage::Measure;

/// The lines of a profile, sorted.
pub(crate) fn lines(profile: &NamedProfile, measure: Measure) -> Vec<String> {
    let mut lines: Vec<String> = profile
        .of(measure)
        .filter(|(_, amount)| amount.bytes > 0)
        .map(|(stack, amount)| format!("{} {}", joined(stack), amount.bytes))
        .collect();
    lines.sort();
    lines
}

/// The lines of a change from `before` to `after`: both figures behind each stack.
pub(crate) fn lines_of_change(before: &NamedProfile, after: &NamedProfile, measure: Measure) -> Vec<String> {
    let stacks = before.sites.keys().chain(after.sites.keys());
    let bytes = |profile: &NamedProfile, stack: &Stack| {
        profile.sites.get(stack).map_or(0, |usage| usage.of(measure).bytes.max(0))
    };
    let mut lines: Vec<String> =
        stacks.map(|stack| format!("{} {} {}", joined(stack), bytes(before, stack), bytes(after, stack))).collect();
    lines.sort();
    lines.dedup();
    lines
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
}
