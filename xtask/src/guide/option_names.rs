//! Options and functions that the guide names exist, and options can have the values that it gives them.

use crate::process::root;
use anyhow::{Context, Result};
use freestone::door::{Settings, find};
use std::collections::BTreeSet;
use std::fs;

/// Variables that are read by the command, not by the library.
const OF_THE_COMMAND: [&str; 1] = ["FREESTONE_LIBRARY"];

/// The head of the columns that name what Freestone has, in tables about other allocators.
const COLUMN: &str = "Freestone";

/// What may be named.
pub(super) struct Words {
    /// Identifiers of the C headers.
    of_headers: BTreeSet<String>,
}

impl Words {
    pub(super) fn read() -> Result<Self> {
        let mut of_headers = BTreeSet::new();
        for header in ["freestone.h", "freestone.hpp", "freestone_tlsf.h", "freestone_pool.h"] {
            let path = root().join("crates/capi/include").join(header);
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            of_headers.extend(identifiers(&text).map(str::to_owned));
        }
        Ok(Self { of_headers })
    }

    /// What a page names and does not exist.
    pub(super) fn complaints(&self, page: &str, text: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut is_code = false;
        let mut column = None;
        for (index, line) in text.lines().enumerate() {
            if line.starts_with("```") {
                is_code = !is_code;
                continue;
            }
            let mut found = self.in_environment(line);
            found.extend(in_symbol(line));
            if !is_code {
                found.extend(quoted(line).filter(|name| is_assignment(name)).filter_map(assignment_complaint));
                column = if line.starts_with('|') { column.or_else(|| column_of(line)) } else { None };
                let cell = column.and_then(|column| cells(line).into_iter().nth(column));
                found.extend(cell.into_iter().flat_map(quoted).filter_map(|name| self.name_complaint(name)));
            }
            complaints.extend(found.into_iter().map(|complaint| format!("{page}:{}: {complaint}", index + 1)));
        }
        complaints
    }

    /// Variables of the environment.
    fn in_environment(&self, line: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        for (at, _) in line.match_indices("FREESTONE_") {
            let rest = &line[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name == "FREESTONE_" || OF_THE_COMMAND.contains(&name) || self.of_headers.contains(name) {
                continue;
            }
            let key = name.trim_start_matches("FREESTONE_").to_lowercase();
            let value = after.strip_prefix('=').map(|value| {
                value.split([' ', '`', '"', '\'', ';', ')', ',', '|']).next().unwrap_or_default().to_owned()
            });
            complaints.extend(option_complaint(&key, value.as_deref()));
        }
        complaints
    }

    /// A name in the column of what Freestone has.
    fn name_complaint(&self, name: &str) -> Option<String> {
        let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let word = name.split(['(', '=']).next().unwrap_or_default();
        let is_known = !is_name(word) || find(word.as_bytes()).is_some() || self.of_headers.contains(word);
        (!is_known).then(|| format!("`{name}` is neither an option nor a function of Freestone"))
    }

    /// The commands of `freestone` that the pages name.
    pub(super) fn commands<'a>(&self, pages: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut names = BTreeSet::new();
        for page in pages {
            for quote in page.lines().flat_map(quoted) {
                let word = quote.strip_prefix("freestone ").and_then(|rest| rest.split_whitespace().next());
                names.extend(word.filter(|word| word.chars().all(|c| c.is_ascii_lowercase())).map(str::to_owned));
            }
        }
        names.into_iter().collect()
    }
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Options in a definition of the link-time symbol.
fn in_symbol(line: &str) -> Vec<String> {
    let Some((_, value)) = line.split_once("freestone_options[] = \"") else { return Vec::new() };
    let list = value.split('"').next().unwrap_or_default();
    list.split(',').filter_map(assignment_complaint).collect()
}

/// Whether a text is `key=value`, as options are written.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(key, value)| {
        !value.contains(' ') && key.len() > 1 && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    })
}

fn assignment_complaint(text: &str) -> Option<String> {
    let (key, value) = text.split_once('=')?;
    option_complaint(key, Some(value))
}

fn option_complaint(key: &str, value: Option<&str>) -> Option<String> {
    let Some(option) = find(key.as_bytes()) else { return Some(format!("there is no option {key}")) };
    // A value in capitals or of the shell stands for one of the reader's.
    let value = value
        .filter(|value| !value.is_empty() && !value.starts_with(['$', '…', '<']) && *value != value.to_uppercase())
        .or(value.filter(|value| value.parse::<u64>().is_ok()))?;
    Settings::new().set(option, value.as_bytes()).err().map(|_| format!("the option {key} cannot be {value}"))
}

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

fn column_of(line: &str) -> Option<usize> {
    cells(line).iter().position(|cell| *cell == COLUMN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        Words { of_headers: ["freestone_purge".to_owned()].into() }.complaints("p.md", text)
    }

    #[test]
    fn options_that_exist_with_values_they_can_have_pass() {
        let page = "`decay_ms=100` FREESTONE_DIRTY_MAX=64m\n```sh\nFREESTONE_REPORT=$HOME/x ./a\n```\n\
                    `char freestone_options[] = \"decay_ms=0,thp=off\";`\n\
                    | jemalloc | Freestone | why |\n|---|---|---|\n| `narenas` | `bin_max`, `freestone_purge` | `narenas` |\n";
        assert!(complaints(page).is_empty(), "{:?}", complaints(page));
    }

    #[test]
    fn an_option_that_does_not_exist_or_cannot_have_its_value_is_found() {
        for page in [
            "`decay_msec=100`",
            "`thp=maybe`",
            "FREESTONE_DECAYMS=1",
            "FREESTONE_THP=maybe",
            "`char freestone_options[] = \"purge=never\";`",
            "| jemalloc | Freestone |\n|---|---|\n| `narenas` | `narenas` |\n",
            "| jemalloc | Freestone |\n|---|---|\n| `narenas` | `freestone_purges` |\n",
        ] {
            assert_eq!(complaints(page).len(), 1, "{page}: {:?}", complaints(page));
        }
    }
}
