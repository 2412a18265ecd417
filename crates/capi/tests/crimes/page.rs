//! The tables of crimes and attacks, as they stand in `docs/security.md`.

use crate::harness::crate_dir;
use crate::run::{Row, Suite, Table, Verdict};
use std::env;
use std::fmt::Write;
use std::fs;
use std::sync::Mutex;

const END: &str = "<!-- End of the table. -->";

/// How the suite's table begins in the page.
fn begin(suite: Suite) -> &'static str {
    match suite {
        Suite::Crimes => "<!-- The crimes: made by `cargo xtask crimes --bless`. -->\n",
        Suite::Attacks => "<!-- The attacks: made by `cargo xtask crimes --bless`. -->\n",
    }
}

/// A verdict in a table. Whether an attack fails because it is noticed, or because it misses, may depend on where chance has placed the blocks.
fn word(suite: Suite, verdict: Verdict) -> &'static str {
    match (suite, verdict) {
        (_, Verdict::Breaks) => "breaks",
        (Suite::Crimes, Verdict::AtOnce) => "at once",
        (Suite::Crimes, Verdict::Later) => "later",
        (Suite::Crimes, Verdict::NoEffect) => "no effect",
        (Suite::Crimes, Verdict::Missed) => "–",
        (Suite::Attacks, Verdict::Missed) => "succeeds",
        (Suite::Attacks, _) => "fails",
    }
}

/// The table as text.
pub(crate) fn table(table: &Table) -> String {
    let columns = |text: &dyn Fn(usize) -> String| {
        let cells: Vec<_> = (0..table.allocators.len()).map(text).collect();
        cells.join(" | ")
    };
    let (suite, [what, caught]) = match table.suite {
        Suite::Crimes => (table.suite, ["crime", "caught"]),
        Suite::Attacks => (table.suite, ["what the attacker does", "fail"]),
    };
    let mut page = format!("| {what} | program | {} |\n", columns(&|column| table.allocators[column].name.clone()));
    let _ = writeln!(page, "|---|---|{}", "---|".repeat(table.allocators.len()));
    for row in table.rows.iter().filter(|row| row.is_counted) {
        let _ = writeln!(page, "{}", line(suite, row));
    }
    let numbers = columns(&|column| table.n_caught(column).to_string());
    let _ = writeln!(page, "| {caught}, of {} programs | | {numbers} |", table.n_counted());
    for row in table.rows.iter().filter(|row| !row.is_counted) {
        let _ = writeln!(page, "{}", line(suite, row));
    }
    page
}

fn line(suite: Suite, row: &Row) -> String {
    let cells: Vec<_> = row.verdicts.iter().map(|verdicts| cell(suite, verdicts)).collect();
    format!("| {} | `{}` | {} |", row.what, row.crime, cells.join(" | "))
}

/// One word if it is that for every size, or a word for each size.
fn cell(suite: Suite, verdicts: &[Verdict]) -> String {
    let words: Vec<_> = verdicts.iter().map(|verdict| word(suite, *verdict)).collect();
    if words.windows(2).all(|pair| pair[0] == pair[1]) { words[0].into() } else { words.join(" · ") }
}

/// Compares a table with the one in the page, or writes it there if `CRIMES_BLESS` is set.
pub(crate) fn compare(seen: &Table) {
    let (begins, seen) = (begin(seen.suite), table(seen));
    // The tables are compared by tests that run at the same time.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock();
    let path = crate_dir().join("../../docs/security.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let begin = page.find(begins).expect("the page has the table's begin") + begins.len();
    let end = begin + page[begin..].find(END).expect("the page has the table's end");
    if env::var_os("CRIMES_BLESS").is_some() {
        fs::write(&path, format!("{}{seen}{}", &page[..begin], &page[end..])).expect("the page can be written");
        return;
    }
    let stated = &page[begin..end];
    let differs = seen.lines().filter(|line| !stated.contains(line)).collect::<Vec<_>>().join("\n");
    assert!(
        seen == stated,
        "docs/security.md says otherwise of these; if that is right, cargo xtask crimes --bless:\n{differs}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_one_word_for_all_sizes_or_one_for_each() {
        let (once, missed) = (Verdict::AtOnce, Verdict::Missed);
        assert_eq!(cell(Suite::Crimes, &[once, once, once]), "at once");
        assert_eq!(cell(Suite::Crimes, &[once, missed, once]), "at once · – · at once");
        assert_eq!(cell(Suite::Attacks, &[once, missed, Verdict::NoEffect]), "fails · succeeds · fails");
    }
}
