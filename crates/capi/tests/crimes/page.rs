//! The table of crimes, as it stands in `docs/security.md`.

use crate::harness::crate_dir;
use crate::run::{Row, Table, Verdict};
use std::env;
use std::fmt::Write;
use std::fs;

const BEGIN: &str = "<!-- Made by `cargo xtask crimes --bless`. -->\n";
const END: &str = "<!-- End of the table. -->";

/// The table as text.
pub(crate) fn table(table: &Table) -> String {
    let columns = |text: &dyn Fn(usize) -> String| {
        let cells: Vec<_> = (0..table.allocators.len()).map(text).collect();
        cells.join(" | ")
    };
    let mut page = format!("| crime | program | {} |\n", columns(&|column| table.allocators[column].name.clone()));
    let _ = writeln!(page, "|---|---|{}", "---|".repeat(table.allocators.len()));
    for row in table.rows.iter().filter(|row| row.is_counted) {
        let _ = writeln!(page, "{}", line(row));
    }
    let caught = columns(&|column| table.n_caught(column).to_string());
    let _ = writeln!(page, "| caught, of {} programs | | {caught} |", table.n_counted());
    for row in table.rows.iter().filter(|row| !row.is_counted) {
        let _ = writeln!(page, "{}", line(row));
    }
    page
}

fn line(row: &Row) -> String {
    let cells: Vec<_> = row.verdicts.iter().map(|verdicts| cell(verdicts)).collect();
    format!("| {} | `{}` | {} |", row.what, row.crime, cells.join(" | "))
}

/// One word if it is that for every size, or a word for each size.
fn cell(verdicts: &[Verdict]) -> String {
    let words: Vec<_> = verdicts.iter().map(|verdict| verdict.word()).collect();
    if words.windows(2).all(|pair| pair[0] == pair[1]) { words[0].into() } else { words.join(" · ") }
}

/// Compares a table with the one in the page, or writes it there if `CRIMES_BLESS` is set.
pub(crate) fn compare(seen: &str) {
    let path = crate_dir().join("../../docs/security.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let begin = page.find(BEGIN).expect("the page has the table's begin") + BEGIN.len();
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
