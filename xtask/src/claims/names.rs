//! Names in backquotes: what a document or a comment names has to exist under that name.

use super::index::Index;
use super::prose::{lines_of_comments, lines_of_document, quoted};
use crate::process::root;
use anyhow::Result;
use std::collections::BTreeSet;
use std::fs;

/// Names of other projects, of the kernel and of the language, which this workspace's code does not contain, one a line.
const FOREIGN: &str = include_str!("names/foreign.txt");

/// Documents about former code, which may name it.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "xtask/src/tuning/measured.md"];

/// Documents about other allocators, which name what those have; `cargo xtask test --only guide` checks what they say that Freestone has.
const ABOUT_OTHERS: &str = "docs/guide/migration/";

/// Endings of names of files.
const ENDINGS: [&str; 13] =
    [".rs", ".md", ".c", ".h", ".go", ".toml", ".golden", ".dag", ".sh", ".txt", ".ops", ".offsets", ".in"];

/// Names that do not exist; `steps` are those of `cargo xtask test`.
pub(super) fn complaints(index: &Index, steps: &[&str]) -> Result<Vec<String>> {
    let foreign: BTreeSet<&str> = FOREIGN.lines().collect();
    let mut complaints = Vec::new();
    for file in &index.files {
        if HISTORY.contains(&file.as_str()) || file.starts_with("xtask/src/claims") || file.starts_with(ABOUT_OTHERS) {
            continue;
        }
        let text = fs::read_to_string(root().join(file)).unwrap_or_default();
        let lines = match file.rsplit('.').next() {
            Some("md") => lines_of_document(&text),
            Some("rs") => lines_of_comments(&text),
            _ => continue,
        };
        for (number, line) in lines {
            if line.matches('`').count() % 2 == 1 {
                complaints.push(format!("{file}:{number}: a name in backquotes runs over the end of the line"));
                continue;
            }
            let names = quoted(line).filter(|name| !foreign.contains(name));
            let found = names.filter_map(|name| complaint(index, steps, file, name));
            complaints.extend(found.map(|complaint| format!("{file}:{number}: {complaint}")));
        }
    }
    Ok(complaints)
}

/// A complaint, if `name` in `file` does not exist.
fn complaint(index: &Index, steps: &[&str], file: &str, name: &str) -> Option<String> {
    if name.contains(char::is_whitespace) {
        return command_complaint(steps, name);
    }
    if let Some(stem) = ENDINGS.iter().find_map(|end| name.strip_suffix(end)) {
        // `.rs`, `x.rs` and `NAME.rs` are no names.
        let stem = stem.rsplit('/').next().unwrap_or(stem);
        if stem.len() < 2 || stem.chars().all(char::is_uppercase) {
            return None;
        }
        return (!names_file(index, name)).then(|| format!("`{name}` names no file"));
    }
    let path = name.split(['<', '(', '[', '=']).next().unwrap_or(name).trim_end_matches('!');
    let parts: Vec<&str> = path.split("::").collect();
    let is_identifier = |part: &str| {
        part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    // A single letter is a variable of the prose.
    if path.len() < 2 || !parts.iter().all(|part| is_identifier(part)) {
        return None;
    }
    if let Some(part) = parts.iter().find(|part| !index.words.contains(**part)) {
        return Some(format!("`{name}`: nothing in the code is called {part}"));
    }
    let [.., of, member] = parts[..] else { return None };
    let of = if of == "Self" { file.trim_end_matches(".rs").rsplit('/').next().unwrap_or(of) } else { of };
    let members = index.members.get(of)?;
    let is_known = members.contains(member) || index.members.get("ALL").is_some_and(|all| all.contains(member));
    (!is_known).then(|| format!("`{name}`: {of} has no {member}"))
}

/// Whether a file of the workspace ends with this path, which may leave out `src`. A `*` stands for the rest of a name.
fn names_file(index: &Index, name: &str) -> bool {
    let name = name.trim_start_matches("./").trim_start_matches("../");
    let in_crate = name.split_once('/').map(|(krate, rest)| format!("{krate}/src/{rest}"));
    let is_end = |file: &str, name: &str| {
        file.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    index.files.iter().any(|file| match name.split_once('*') {
        Some((start, end)) => file.ends_with(end) && file.contains(start),
        None => is_end(file, name) || in_crate.as_ref().is_some_and(|name| is_end(file, name)),
    })
}

/// A complaint, if a command of this workspace does not exist.
fn command_complaint(steps: &[&str], text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let word = (words.next() == Some("cargo") && words.next() == Some("xtask")).then(|| words.next()).flatten()?;
    let word = word.trim_end_matches(',');
    if word.starts_with('-') || word.chars().any(char::is_uppercase) {
        return None;
    }
    if !crate::arguments::is_subcommand(word) {
        return Some(format!("`{text}`: cargo xtask has no command {word}"));
    }
    let step = text.split("--only ").nth(1).filter(|_| word == "test")?.split_whitespace().next()?;
    let is_known = step.chars().any(char::is_uppercase) || steps.contains(&step);
    (!is_known).then(|| format!("`{text}`: cargo xtask test has no step {step}"))
}

#[cfg(test)]
mod tests;
