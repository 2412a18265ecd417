//! Who holds memory: the functions that allocated it, the largest first.
//!
//! `own` is what a function allocated itself; `with callees` includes what the functions it called allocated.

use crate::heap_profile::named::{NamedProfile, Stack};
use crate::heap_profile::usage::{Amount, Measure};
use crate::show::quantity;
use crate::symbols::frame::Frame;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A function, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) function: String,
    /// Where most of its own bytes were allocated: file and line, if known.
    pub(crate) place: String,
    /// What it allocated itself.
    pub(crate) own: Amount,
    /// The same, and what the functions it called allocated.
    pub(crate) with_callees: Amount,
}

/// All functions, those that hold most first.
pub(crate) fn rows(profile: &NamedProfile, measure: Measure) -> Vec<Row> {
    let mut rows = BTreeMap::<&str, (Row, i64)>::new();
    for (stack, amount) in profile.of(measure) {
        let mut seen = BTreeSet::new();
        for (depth, frame) in stack.iter().rev().enumerate() {
            let (row, most) = rows.entry(&frame.function).or_insert_with(|| {
                let row = Row {
                    function: frame.function.clone(),
                    place: place(frame),
                    own: Amount::default(),
                    with_callees: Amount::default(),
                };
                (row, 0)
            });
            if depth == 0 {
                row.own += amount;
                if amount.bytes.abs() > *most {
                    (*most, row.place) = (amount.bytes.abs(), place(frame));
                }
            }
            // A recursive function is counted once.
            if seen.insert(&frame.function) {
                row.with_callees += amount;
            }
        }
    }
    let mut rows: Vec<Row> = rows.into_values().map(|(row, _)| row).collect();
    rows.sort_by_key(|row| (-row.own.bytes.abs(), -row.with_callees.bytes.abs(), row.function.clone()));
    rows
}

/// File and line of a frame; the file's last two folders are enough to recognise it.
pub(crate) fn place(frame: &Frame) -> String {
    match &frame.file {
        Some(file) => {
            let parts: Vec<&str> = file.rsplitn(3, '/').take(2).collect();
            let short = parts.into_iter().rev().collect::<Vec<_>>().join("/");
            format!("{short}:{}", frame.line)
        }
        None => frame.module.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

/// The columns of [`cells`].
pub(crate) fn header(measure: Measure) -> Vec<String> {
    ["function", measure.name(), "share", "blocks", "with callees", "place"].map(str::to_owned).to_vec()
}

/// A row as text; shares are of `sum`.
pub(crate) fn cells(row: &Row, sum: Amount) -> Vec<String> {
    vec![
        row.function.clone(),
        bytes(row.own.bytes),
        share(row.own.bytes, sum.bytes),
        blocks(row.own.blocks),
        bytes(row.with_callees.bytes),
        row.place.clone(),
    ]
}

/// Bytes with their sign if they are negative.
pub(crate) fn bytes(bytes: i64) -> String {
    quantity::bytes(bytes as f64)
}

fn blocks(blocks: i64) -> String {
    format!("{}{}", if blocks < 0 { "-" } else { "" }, quantity::count(blocks.unsigned_abs()))
}

fn share(part: i64, whole: i64) -> String {
    if whole == 0 { "–".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// The profile as JSON: the sums, how many samples were lost, and every stack with what it holds.
pub(crate) fn to_json(profile: &NamedProfile) -> Value {
    let frames = |stack: &Stack| -> Vec<Value> {
        let frame = |frame: &Frame| json!({"function": frame.function, "file": frame.file, "line": frame.line, "module": frame.module});
        stack.iter().map(frame).collect()
    };
    let sites: Vec<Value> = profile
        .sites
        .iter()
        .map(|(stack, usage)| json!({"stack": frames(stack), "live": usage.live, "total": usage.total}))
        .collect();
    json!({"interval": profile.interval, "sum": profile.sum(), "lost": profile.lost, "sites": sites})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap_profile::named::tests::profile;

    #[test]
    fn own_bytes_are_the_innermost_functions_and_recursion_counts_once() {
        let profile = profile(&[("main;walk;walk;leaf", 100, 100), ("main;walk", 30, 30), ("main", 0, 5)]);
        let rows = rows(&profile, Measure::Live);
        let of = |name: &str| rows.iter().find(|row| row.function == name).unwrap();
        assert_eq!((of("leaf").own.bytes, of("leaf").with_callees.bytes), (100, 100));
        assert_eq!((of("walk").own.bytes, of("walk").with_callees.bytes), (30, 130));
        assert_eq!((of("main").own.bytes, of("main").with_callees.bytes), (0, 130));
        assert_eq!(rows[0].function, "leaf");
        assert_eq!(cells(of("leaf"), profile.sum().live)[1..5], ["100 B", "76.9 %", "1", "100 B"].map(str::to_owned));
    }

    #[test]
    fn json_has_the_number_of_lost_samples() {
        let mut profile = profile(&[("main", 1, 1)]);
        profile.lost = 3;
        assert_eq!(to_json(&profile)["lost"], 3);
    }

    #[test]
    fn a_place_is_a_short_path_and_a_line_or_the_module() {
        let frame = Frame { function: "f".into(), file: Some("/a/b/c/d.c".into()), line: 7, module: "/bin/x".into() };
        assert_eq!(place(&frame), "c/d.c:7");
        assert_eq!(place(&Frame { file: None, ..frame }), "x");
    }
}
