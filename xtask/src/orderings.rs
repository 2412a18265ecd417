//! `cargo xtask orderings`: weakens each atomic ordering in turn, and lists those whose weakening no loom model notices.
//!
//! The command finds the orderings in the text: each `Ordering::X` outside tests and comments, except `Relaxed`. In a copy of the tree
//! it replaces each by all that are next weaker, and runs the models of its crate; if they pass, no model notices. The models in
//! `crates/base/tests/protocols` read the orderings of the heap (`thread`, `central`, `page`, `api`) out of its source.
//!
//! The results are kept in `target/orderings.tsv`, so the command can be stopped and resumed; a change of a model or of the modelled code
//! invalidates them.

use crate::ledger::code;
use crate::process::{root, target};
use crate::scratch::{Outcome, Scratch, outcome};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

/// Folders whose orderings are weakened, and the tests that have to notice: cargo's arguments, and the parts that run one after the other.
type Modelled = (&'static str, &'static str, &'static [&'static str], &'static [&'static [&'static str]]);

const CRATES: [Modelled; 3] = [
    ("base", "crates/base/src", &["--lib", "--package", "freestone-base"], &[&[]]),
    ("pool", "crates/pool/src", &["--lib", "--package", "freestone-pool"], &[&[]]),
    (
        "freestone",
        "crates/freestone/src",
        &["--test", "protocols", "--package", "freestone-base"],
        // The models of the background thread take longer than all others together.
        &[&["--skip", "background::"], &["background::"]],
    ),
];

/// Files that exist only in models and tests.
const TEST_FILES: [&str; 5] = ["/tests.rs", "/tests/", "/sync/", "/testing", "/sync.rs"];

/// The verdict on a weakening for which no model fails.
const UNNOTICED: &str = "unnoticed";

/// A model that runs longer than this loops forever because of the weakening.
const LONGEST: Duration = Duration::from_secs(240);

/// A replacement of one ordering by a weaker one.
#[derive(Clone, Debug)]
struct Weakening {
    line: usize,
    /// Where the ordering's name begins and ends in the file.
    place: std::ops::Range<usize>,
    to: &'static str,
    /// The line, and which of the orderings in it.
    what: String,
}

/// The orderings next weaker than one that the operation accepts.
fn weaker(ordering: &str, operation: &str) -> &'static [&'static str] {
    match (ordering, operation) {
        // It orders nothing between threads.
        (_, "compiler_fence") => &[],
        ("Acquire" | "Release", _) => &["Relaxed"],
        ("AcqRel", _) => &["Acquire", "Release"],
        ("SeqCst", "load") => &["Acquire"],
        ("SeqCst", "store") => &["Release"],
        ("SeqCst", _) => &["AcqRel"],
        _ => &[],
    }
}

/// The name of the function whose arguments `before` ends in.
fn operation(before: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in before.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' if depth == 0 => {
                let name = &before[..at];
                let from = name.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |from| from + 1);
                return &name[from..];
            }
            '(' => depth -= 1,
            _ => {}
        }
    }
    ""
}

/// Every weakening in a file's text.
fn weakenings(text: &str) -> Vec<Weakening> {
    let mut found = Vec::new();
    let mut from = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let code = line.find("//").map_or(line, |comment| &line[..comment]);
        if code.trim_start().starts_with("mod tests {") {
            break;
        }
        for (at, _) in code.match_indices("Ordering::") {
            let start = at + "Ordering::".len();
            let name: String = code[start..].chars().take_while(|c| c.is_alphanumeric()).collect();
            let place = from + start..from + start + name.len();
            let operation = operation(&text[..place.start]);
            found.extend(weaker(&name, operation).iter().map(|to| Weakening {
                line: number + 1,
                place: place.clone(),
                to,
                what: format!("{} [column {}]", code.trim(), at + 1),
            }));
        }
        from += line.len();
    }
    found
}

/// All files of a folder, by their path in the tree, in order.
fn files(folder: &str) -> Result<Vec<(String, String)>> {
    fn visit(path: &Path, found: &mut Vec<(String, String)>) -> Result<()> {
        for entry in fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                visit(&path, found)?;
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(root())?.to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path)?));
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    visit(&root().join(folder), &mut found)?;
    found.sort();
    Ok(found)
}

/// A number that changes with the sources a crate's models are made of, and not with their comments.
fn fingerprint(folder: &str) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for folder in [folder, "crates/base"] {
        for (name, text) in files(folder)? {
            name.hash(&mut hasher);
            code(&text).for_each(|line| line.hash(&mut hasher));
        }
    }
    Ok(hasher.finish())
}

/// The results of earlier runs, by fingerprint, file, line and weakening.
fn known() -> BTreeMap<String, String> {
    let text = fs::read_to_string(target().join("orderings.tsv")).unwrap_or_default();
    text.lines().filter_map(|line| line.rsplit_once('\t')).map(|(key, said)| (key.into(), said.into())).collect()
}

/// The test that failed, or what else happened.
fn verdict(scratch: &Scratch, tests: &[&str], parts: &[&[&str]]) -> Result<String> {
    let test = |last: &[&str]| {
        let arguments: Vec<_> = ["test", "--release"].iter().chain(tests).chain(last).copied().collect();
        let mut command = scratch.cargo("loom", &arguments);
        command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_PANIC", "unwind");
        command
    };
    // Building takes as long as it takes.
    if let Outcome::Failed(text) = outcome(&mut test(&["--no-run"]), Duration::from_secs(3600))? {
        bail!("does not compile:\n{text}");
    }
    for part in parts {
        let said = said(outcome(&mut test(&[&["--"], *part].concat()), LONGEST)?);
        if said != UNNOTICED {
            return Ok(said);
        }
    }
    Ok(UNNOTICED.into())
}

/// What is recorded of some tests' outcome.
fn said(outcome: Outcome) -> String {
    match outcome {
        Outcome::Passed => UNNOTICED.into(),
        Outcome::TooLong => "a model never ended".into(),
        Outcome::Failed(text) => text
            .lines()
            .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... FAILED"))
            .map(|(name, _)| name.rsplit("::").next().unwrap_or(name))
            .next()
            .unwrap_or("a model that took the process down")
            .to_owned(),
    }
}

/// Tries the weakenings that have no result yet, for at most `seconds`, and lists those that no model notices.
pub(crate) fn run(only: Option<&str>, seconds: Option<u64>, shard: (usize, usize)) -> Result<()> {
    let ends = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let scratch = Scratch::copy()?;
    let mut known = known();
    let (mut n_all, mut n_noticed, mut n_left, mut unnoticed) = (0, 0, 0, Vec::new());
    for (name, folder, tests, parts) in CRATES.into_iter().filter(|(name, ..)| only.is_none_or(|only| only == *name)) {
        let print = fingerprint(folder)?;
        let mut is_sound = false;
        for (file, text) in files(folder)? {
            if TEST_FILES.iter().any(|part| file.contains(part)) {
                continue;
            }
            let mut n_equal = BTreeMap::new();
            for weakening in weakenings(&text) {
                n_all += 1;
                let Weakening { line, place, to, what, .. } = &weakening;
                let nth = n_equal.entry((what.clone(), *to)).or_insert(0);
                *nth += 1;
                let key = format!("{print:016x}\t{file}\t{what} #{nth}\t{to}");
                let is_ours = n_all % shard.1 == shard.0 % shard.1;
                if !known.contains_key(&key) && is_ours && ends.is_none_or(|ends| Instant::now() < ends) {
                    if !is_sound {
                        let said = verdict(&scratch, tests, parts)?;
                        if said != UNNOTICED {
                            bail!("the models of {name} fail without any change: {said}");
                        }
                        is_sound = true;
                    }
                    let changed = [&text[..place.start], to, &text[place.end..]].concat();
                    let noticed = scratch.with(&file, &changed, |scratch| verdict(scratch, tests, parts))?;
                    println!("{file}:{line}: {} -> {to}: {noticed}", &text[place.clone()]);
                    known.insert(key.clone(), noticed);
                    save(&known)?;
                }
                match known.get(&key).map(String::as_str) {
                    None => n_left += 1,
                    Some(UNNOTICED) => {
                        unnoticed.push(format!("{file}:{line}: {} -> {to}: {what}", &text[place.clone()]))
                    }
                    Some(_) => n_noticed += 1,
                }
            }
        }
    }
    println!("{n_all} weakenings: {n_noticed} noticed, {} not, {n_left} not tried yet", unnoticed.len());
    unnoticed.iter().for_each(|line| println!("no model notices {line}"));
    Ok(())
}

fn save(known: &BTreeMap<String, String>) -> Result<()> {
    let text: String = known.iter().map(|(key, said)| format!("{key}\t{said}\n")).collect();
    fs::write(target().join("orderings.tsv"), text).context("cannot write target/orderings.tsv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ordering_outside_comments_and_tests_is_weakened_as_its_operation_allows() {
        let text = "a.load(Ordering::SeqCst); // Ordering::Acquire\n\
                    b.swap(f(x), Ordering::AcqRel);\ncompiler_fence(Ordering::Release); c.store(1,\n    Ordering::Relaxed);\nmod tests {\nOrdering::Release }";
        let found: Vec<_> = weakenings(text).into_iter().map(|w| (w.line, w.to)).collect();
        assert_eq!(found, [(1, "Acquire"), (2, "Acquire"), (2, "Release")]);
        let first = &weakenings(text)[0];
        assert_eq!(&text[first.place.clone()], "SeqCst");
    }
}
