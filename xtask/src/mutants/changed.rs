//! A source file with all its mutants in it, of which an environment variable puts one in force when a program starts.
//!
//! `a < b` becomes `(match crate::mutant::at(7) { 7 => a <= b, 8 => a > b, _ => a < b })`. So one build tests all mutants, and a run with none of
//! them in force tells which places a test reaches.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A change as cargo-mutants lists it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The function returns this at once.
    Value(String),
    /// The operator at this place becomes this one.
    Operator(String),
    /// The operator at this place is left out.
    NoOperator,
    /// The guard at this place is this.
    Guard(String),
    /// The arm at this place is not there.
    NoArm,
}

impl Change {
    /// Reads what follows the place in a mutant's name.
    pub(crate) fn of(text: &str) -> Option<Self> {
        if let Some(guard) = text.strip_prefix("replace match guard ") {
            let value = if guard.contains(" with true in ") { "true" } else { "false" };
            return Some(Self::Guard(value.to_owned()));
        }
        if text.starts_with("delete match arm ") {
            return Some(Self::NoArm);
        }
        if text.starts_with("delete field ") {
            return None;
        }
        if text.starts_with("delete ") {
            return Some(Self::NoOperator);
        }
        let text = text.strip_prefix("replace ")?;
        let (what, with) = text.rsplit_once(" with ")?;
        // An operator has no letters in it. In a constant there is no function's name to follow.
        if what.chars().all(|c| c.is_ascii_punctuation()) {
            return Some(Self::Operator(with.split_once(" in ").map_or(with, |(operator, _)| operator).to_owned()));
        }
        Some(Self::Value(with.to_owned()))
    }
}

/// Mutants of one file: the number that puts each in force, the line and column of its place (both from 1), and the change.
pub(crate) type Mutants<'a> = [(u32, (usize, usize), &'a Change)];

/// Text that goes before and after a part of the source.
struct Wrap {
    part: Range<usize>,
    before: String,
    after: String,
    /// Before everything else that begins at the same place.
    is_first: bool,
}

/// Where an arm's pattern ends, with its guard, and where its guard is.
type Arm = (usize, Option<Range<usize>>);

/// The places of a file that can be changed, by where cargo-mutants says they are.
#[derive(Default)]
struct Places {
    /// From an operator to the operator and its expression.
    operators: BTreeMap<(usize, usize), (Range<usize>, Range<usize>)>,
    /// From an arm to the end of its pattern and its guard.
    arms: BTreeMap<(usize, usize), Arm>,
    guards: BTreeMap<(usize, usize), Range<usize>>,
}

fn place(item: &impl Spanned) -> (usize, usize) {
    let start = item.span().start();
    (start.line, start.column + 1)
}

fn part(item: &impl Spanned) -> Range<usize> {
    item.span().byte_range()
}

/// Whether a condition declares variables, so that it cannot be part of another expression.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if !has_let(&binary.left) && !has_let(&binary.right) {
            self.operators.insert(place(&binary.op), (part(&binary.op), part(binary)));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        self.operators.insert(place(&unary.op), (part(&unary.op), part(unary)));
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let guard = if let syn::Pat::Guard(guarded) = &arm.pat { Some(&guarded.guard) } else { None };
        if let Some(guard) = guard.filter(|guard| !has_let(guard)) {
            self.guards.insert(place(guard), part(guard));
        }
        if !guard.is_some_and(|guard| has_let(guard)) {
            self.arms.insert(place(arm), (part(&arm.pat).end, guard.map(part)));
        }
        visit::visit_arm(self, arm);
    }
}

/// Where a line and column are in a text.
fn offset(text: &str, (line, column): (usize, usize)) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within = text.get(start..)?.char_indices().nth(column - 1)?.0;
    Some(start + within)
}

/// The arms that put mutants in force; each begins a line with its number, by which errors are traced to mutants.
fn arms(alternatives: &[(u32, String)]) -> String {
    alternatives.iter().map(|(number, text)| format!("\n/*mutant {number}*/ {number} => {{ {text} }}\n")).collect()
}

/// The condition that an arm, whose pattern ends at `end`, gets so that it can be put out of force.
fn without_arm(number: u32, end: usize, guard: Option<Range<usize>>) -> Wrap {
    let condition = format!("\n/*mutant {number}*/ crate::mutant::at({number}) != {number}\n");
    match guard {
        Some(part) => Wrap { part, before: format!("{condition} && ("), after: ")".into(), is_first: true },
        None => Wrap { part: end..end, before: format!(" if {condition}"), after: String::new(), is_first: true },
    }
}

/// The text of a file with mutants in it, and the numbers of those that could be put into it, each with the number of the first at its place.
pub(crate) fn with_mutants(text: &str, mutants: &Mutants) -> Result<(String, BTreeMap<u32, u32>)> {
    let file = syn::parse_file(text).context("the file does not parse")?;
    let mut places = Places::default();
    places.visit_file(&file);
    let (mut firsts, mut wraps, mut conditions) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut values: BTreeMap<usize, Vec<(u32, String)>> = BTreeMap::new();
    let mut expressions: BTreeMap<(usize, usize), Vec<(u32, String)>> = BTreeMap::new();
    for (number, at, change) in mutants {
        let (number, at) = (*number, *at);
        match change {
            Change::Value(value) => {
                if let Some(at) = offset(text, at) {
                    values.entry(at).or_default().push((number, format!("return {value}")));
                }
            }
            Change::Operator(_) | Change::NoOperator => {
                if let Some((operator, whole)) = places.operators.get(&at) {
                    let new = if let Change::Operator(new) = change { new } else { "" };
                    let changed = [&text[whole.start..operator.start], new, &text[operator.end..whole.end]].concat();
                    expressions.entry((whole.start, whole.end)).or_default().push((number, changed));
                }
            }
            Change::Guard(value) => {
                if let Some(guard) = places.guards.get(&at) {
                    expressions.entry((guard.start, guard.end)).or_default().push((number, value.clone()));
                }
            }
            Change::NoArm => {
                if let Some((end, guard)) = places.arms.get(&at) {
                    conditions.push(without_arm(number, *end, guard.clone()));
                    firsts.insert(number, number);
                }
            }
        }
    }
    let all = values.values().chain(expressions.values());
    firsts.extend(all.flat_map(|some| some.iter().map(|(number, _)| (*number, some[0].0))));
    for (at, alternatives) in values {
        let before = format!("match crate::mutant::at({}) {{{} _ => {{}} }}\n", alternatives[0].0, arms(&alternatives));
        wraps.push(Wrap { part: at..at, before, after: String::new(), is_first: true });
    }
    for ((start, end), alternatives) in expressions {
        let before = format!("(match crate::mutant::at({}) {{{} _ => {{ ", alternatives[0].0, arms(&alternatives));
        wraps.push(Wrap { part: start..end, before, after: " } })".into(), is_first: false });
    }
    // Outside the guards' own.
    wraps.append(&mut conditions);
    Ok((wrapped(text, &wraps), firsts))
}

/// The text with one operator changed.
pub(crate) fn with_one(text: &str, at: (usize, usize), change: &Change) -> Result<String> {
    let mut places = Places::default();
    places.visit_file(&syn::parse_file(text)?);
    let (operator, _) = places.operators.get(&at).context("there is no operator")?;
    let new = if let Change::Operator(new) = change { new } else { "" };
    Ok([&text[..operator.start], new, &text[operator.end..]].concat())
}

/// The text with its parts wrapped: the longer part outside.
fn wrapped(text: &str, wraps: &[Wrap]) -> String {
    let mut pieces = Vec::new();
    for wrap in wraps {
        let (start, end) = (wrap.part.start, wrap.part.end);
        if !wrap.after.is_empty() {
            pieces.push(((end, 0, start), &wrap.after));
        }
        let length = if wrap.is_first { usize::MAX } else { end - start };
        pieces.push(((start, 1, length), &wrap.before));
    }
    // At one place what ends comes before what begins, the inner end (that began later) before the outer one, and the outer beginning before the inner one.
    pieces.sort_by_key(|((at, begins, by), _)| (*at, *begins, usize::MAX - by));
    let (mut result, mut from) = (String::new(), 0);
    for ((at, ..), piece) in pieces {
        result.push_str(&text[from..at]);
        result.push_str(piece);
        from = at;
    }
    result.push_str(&text[from..]);
    result
}

/// The mutant that the compiler complains of at a line of the changed text: the last that begins at or before it, else the first after it. A `match` that
/// is no longer exhaustive is the fault of an arm after that line.
pub(crate) fn mutant_at(text: &str, line: usize, is_not_exhaustive: bool) -> Option<u32> {
    let number = |line: &str| line.strip_prefix("/*mutant ")?.split_once("*/")?.0.parse().ok();
    let lines: Vec<_> = text.lines().collect();
    let (before, after) = lines.split_at(line.min(lines.len()));
    if is_not_exhaustive {
        return after.iter().filter(|line| !line.contains("=>")).find_map(|line| number(line));
    }
    before.iter().rev().find_map(|line| number(line)).or_else(|| after.iter().find_map(|line| number(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_from_the_names_of_mutants() {
        let of = |text| Change::of(text).expect("known");
        assert_eq!(of("replace < with <= in f"), Change::Operator("<=".into()));
        assert_eq!(of("replace << with >>"), Change::Operator(">>".into()));
        assert_eq!(of("delete ! in T::f"), Change::NoOperator);
        assert_eq!(of("delete match arm FREE in f"), Change::NoArm);
        assert_eq!(of("replace match guard a with true in f"), Change::Guard("true".into()));
        assert_eq!(of("replace f -> Option<u8> with Some(0)"), Change::Value("Some(0)".into()));
        assert_eq!(Change::of("delete field a from struct S expression in f"), None);
    }

    #[test]
    fn each_mutant_stands_beside_what_it_changes() {
        let text = "fn f(a: u8) -> bool {\n    match a {\n        1 => true,\n        _ if a > 2 => a + 1 < 9,\n        _ => false,\n    }\n}\n";
        let changes = [
            Change::Value("true".into()),
            Change::NoArm,
            Change::Guard("true".into()),
            Change::Operator("<".into()),
            Change::Operator("-".into()),
            Change::Operator("<=".into()),
        ];
        let places = [(2, 5), (3, 9), (4, 14), (4, 16), (4, 25), (4, 29)];
        let mutants: Vec<_> =
            (1..).zip(places).zip(&changes).map(|((number, at), change)| (number, at, change)).collect();
        let (changed, firsts) = with_mutants(text, &mutants).expect("it parses");
        assert_eq!(firsts.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 5), (6, 6)]);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "fn f(a: u8) -> bool { match crate::mutant::at(1) { /*mutant 1*/ 1 => { return true } _ => {} } \
             match a { 1 if /*mutant 2*/ crate::mutant::at(2) != 2 => true, \
             _ if (match crate::mutant::at(3) { /*mutant 3*/ 3 => { true } /*mutant 4*/ 4 => { a < 2 } _ => { a > 2 } }) => \
             (match crate::mutant::at(6) { /*mutant 6*/ 6 => { a + 1 <= 9 } _ => { \
             (match crate::mutant::at(5) { /*mutant 5*/ 5 => { a - 1 } _ => { a + 1 } }) < 9 } }), \
             _ => false, } }";
        assert_eq!(words(&changed), expected);
        let line = |text| changed.lines().position(|line| line.contains(text)).expect("there") + 1;
        assert_eq!(mutant_at(&changed, line("a - 1"), false), Some(5));
        assert_eq!(mutant_at(&changed, line("match a"), true), Some(2), "an arm that the match needs");
    }

    #[test]
    fn a_condition_that_declares_a_variable_is_left_as_it_is() {
        let text = "fn f(a: Option<u8>) -> bool {\n    if let Some(a) = a && a > 2 { true } else { false }\n}\n";
        let (and, greater) = (Change::Operator("||".into()), Change::Operator("<".into()));
        let (_, firsts) = with_mutants(text, &[(1, (2, 24), &and), (2, (2, 29), &greater)]).expect("it parses");
        assert_eq!(firsts.into_keys().collect::<Vec<_>>(), [2]);
    }
}
