//! Sentences with numbers that the code determines, and those that name the exceptions of a bound: each is kept here with places for the numbers, and the
//! files must contain it.
//!
//! A sentence is looked for with line ends and comment marks as spaces. When a number changes, the check says what the sentence should be;
//! when a sentence changes, it is changed here too.

use super::prose::{flattened, lines_of_comments};
use crate::hotpath::counts;
use crate::process::root;
use crate::source::{folder_of, workspace};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;

mod constants;
use constants::Constants;

/// A file, and a sentence of it with `{…}` for a count of the hot paths or for an expression of constants.
struct Sentence {
    file: &'static str,
    text: &'static str,
}

const SENTENCES: [Sentence; 17] = [
    Sentence { file: "README.md", text: "| {malloc} / {free} / {box_new} / {box_drop} instructions |" },
    Sentence {
        file: "CHANGELOG.md",
        text: "whose `Box::new` and drop inline to {box_new} and {box_drop} instructions",
    },
    Sentence { file: "docs/testing.md", text: "malloc {malloc}, free {free}, `Box::new` {box_new}, drop {box_drop} |" },
    Sentence { file: "docs/architecture.md", text: "{malloc} instructions" },
    Sentence { file: "docs/architecture.md", text: "{free} instructions" },
    Sentence { file: "docs/decisions/0001-bins-hold-blocks-of-any-owner.md", text: "{free} against {box_drop}" },
    Sentence {
        file: "docs/decisions/0001-bins-hold-blocks-of-any-owner.md",
        text: "is {box_drop} instructions inlined",
    },
    Sentence { file: "docs/architecture.md", text: "sizes up to {SMALL_MAX / 1024} KiB have a size class" },
    Sentence {
        file: "docs/architecture.md",
        text: "{PAGE_BYTES / 1024} KiB of address space, the unit of the page heap",
    },
    Sentence { file: "docs/architecture.md", text: "one {BITMAP_BYTES}-byte bitmap per page" },
    Sentence { file: "docs/contributing.md", text: "change `N_FINE` from {N_FINE} to 32" },
    Sentence { file: "docs/contributing.md", text: "`N_CLASSES` from {N_CLASSES} to 80" },
    Sentence {
        file: "docs/decisions/0015-large-blocks-that-come-back-stay-with-their-thread.md",
        text: "for each length up to {CACHED_MOST} pages ({CACHED_MOST * PAGE_BYTES / 1048576} MiB)",
    },
    Sentence {
        file: "docs/decisions/0017-memory-that-is-moved-or-given-back-in-steps.md",
        text: "One call purges at most {PIECE_MOST * PAGE_BYTES / 1048576} MiB",
    },
    Sentence { file: "docs/decisions/0018-what-is-held-across-a-fork.md", text: "slept {WAITS_MOST} times" },
    Sentence { file: "docs/decisions/0018-what-is-held-across-a-fork.md", text: "four times in {PERIOD_MS} ms" },
    Sentence {
        file: "docs/decisions/0005-when-remote-frees-are-sent.md",
        text: "when {BATCH} blocks are collected for that owner, or {BATCH_BYTES / 1024} KiB of blocks above {BATCH_BYTES / BATCH / 1024} KiB",
    },
];

/// Where TLSF's bound is named its exceptions are, too, in these words or more.
const EXCEPTIONS: &str = "Two steps take time that depends on the number of blocks";

/// The files that name the bound.
const NAME_THE_BOUND: [&str; 5] = [
    "crates/capi/examples/audio_engine.c",
    "crates/capi/include/freestone_tlsf.h",
    "crates/tlsf/README.md",
    "crates/tlsf/src/lib.rs",
    "docs/guide/getting-started/audio-and-embedded.md",
];

/// The instructions of the hot paths in `hotpath.golden`, by names without punctuation.
fn hot_paths() -> Result<BTreeMap<String, u64>> {
    let golden = fs::read_to_string(root().join("hotpath.golden")).context("cannot read hotpath.golden")?;
    Ok(counts(&golden).into_iter().map(|(name, n)| (name.trim_start_matches("hotpath_").to_owned(), n)).collect())
}

/// A sentence with its numbers; `Err` is a name that has no value.
fn filled(text: &str, value: impl Fn(&str) -> Option<u64>) -> Result<String, String> {
    let mut parts = text.split('{');
    let mut sentence = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').ok_or(part)?;
        sentence += &value(name).ok_or(name)?.to_string();
        sentence += rest;
    }
    Ok(sentence)
}

/// Sentences that are not in their files.
pub(super) fn complaints() -> Result<Vec<String>> {
    let hot_paths = hot_paths()?;
    let mut constants = Constants::default();
    let workspace = workspace()?;
    workspace.iter().flat_map(|(_, krate)| &krate.files).for_each(|file| constants.add(&file.syntax));
    let value = |name: &str| hot_paths.get(name).copied().or_else(|| constants.value_of(name));
    let mut complaints = Vec::new();
    let exceptions = NAME_THE_BOUND.iter().map(|file| Sentence { file, text: EXCEPTIONS });
    for Sentence { file, text } in SENTENCES.into_iter().chain(exceptions) {
        let page = fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
        complaints.extend(complaint(file, &page, text, value));
    }
    complaints.extend(stray_counts()?);
    Ok(complaints)
}

fn complaint(file: &str, page: &str, text: &str, value: impl Fn(&str) -> Option<u64>) -> Option<String> {
    match filled(text, value) {
        Err(name) => {
            Some(format!("{name}, in a sentence of {file}, has no value: correct xtask/src/claims/figures.rs"))
        }
        Ok(sentence) if flattened(page).contains(&sentence) => None,
        Ok(sentence) => Some(format!("{file} should say: {sentence}")),
    }
}

/// Counts of instructions in the comments of the heap's hot crates that no sentence above compares: they go stale unseen.
fn stray_counts() -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let workspace = workspace()?;
    for (name, krate) in workspace.iter().filter(|(name, _)| ["base", "freestone", "capi"].contains(name)) {
        for file in &krate.files {
            let shown = folder_of(name).join("src").join(&file.path).display().to_string();
            if SENTENCES.iter().any(|sentence| sentence.file == shown) {
                continue;
            }
            let lines = lines_of_comments(&file.text).into_iter().filter(|(_, line)| counts_instructions(line));
            complaints.extend(lines.map(|(number, _)| {
                format!("{shown}:{number}: a count of instructions in a comment: leave it to hotpath.golden")
            }));
        }
    }
    Ok(complaints)
}

fn counts_instructions(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|pair| pair[0].parse::<u32>().is_ok() && pair[1].starts_with("instruction"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_with_another_number_is_found_wherever_its_lines_end() {
        let value = |name: &str| (name == "free").then_some(19);
        let about = |page| complaint("a.md", page, "`free` takes {free} instructions", value);
        assert_eq!(about("It: `free` takes\n19 instructions."), None);
        assert_eq!(about("//! `free` takes\n//! 19 instructions."), None);
        assert_eq!(
            about("`free` takes 18 instructions."),
            Some("a.md should say: `free` takes 19 instructions".into())
        );
        assert!(complaint("a.md", "", "{gone}", value).is_some_and(|complaint| complaint.contains("gone")));
    }

    #[test]
    fn counts_in_comments_are_seen() {
        assert!(counts_instructions(" Cost: 15 instructions.") && !counts_instructions(" two-instruction counters"));
    }
}
