//! Reads `layers.dag` and fails on an arrow that points upward: a module or crate that names one above it.
//!
//! The scan is of text: every `crate::name` of a module (comments and tests left out), and every workspace crate named in the
//! `[dependencies]` of a manifest. A path that names a crate-root re-export (`crate::Stats`) starts with a capital and is no module.

use crate::process::root;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What each name may see, of one group of the file.
#[derive(Debug, Default)]
struct Order {
    below: BTreeMap<String, BTreeSet<String>>,
}

impl Order {
    /// The lines of `text` that start with `group:`.
    fn read(text: &str, group: &str) -> Self {
        let mut order = Self::default();
        for line in text.lines().filter_map(|line| line.trim().strip_prefix(group)?.strip_prefix(':')) {
            let mut lower = BTreeSet::new();
            for level in line.split('<') {
                let names: Vec<String> = level.split(',').map(|name| name.trim().to_owned()).collect();
                for name in &names {
                    order.below.entry(name.clone()).or_default().extend(lower.iter().cloned());
                }
                lower.extend(names);
            }
        }
        order
    }

    /// A sentence, if `from` may not name `to`.
    fn complaint(&self, from: &str, to: &str) -> Option<String> {
        if from == to {
            return None;
        }
        match self.below.get(from) {
            None => Some(format!("{from} is not in layers.dag: give it its place")),
            Some(_) if !self.below.contains_key(to) => Some(format!("{to}, which {from} names, is not in layers.dag")),
            Some(below) if below.contains(to) => None,
            Some(_) => Some(format!("{from} names {to}, which is not below it in layers.dag")),
        }
    }
}

/// The modules named after `crate::`, comments left out.
fn modules_named(source: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default();
        for rest in code.split("crate::").skip(1) {
            let tops: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => list.split([',', '}']).collect(),
                None => vec![rest],
            };
            for top in tops {
                let name: String = top.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if name.starts_with(|c: char| c.is_ascii_lowercase()) {
                    named.insert(name);
                }
            }
        }
    }
    named
}

/// The workspace crates among the dependencies of a manifest, those for tests left out.
fn crates_named(manifest: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if inside {
            let name = line.split(['.', '=']).next().unwrap_or_default().trim();
            if let Some(short) = name.strip_prefix("freestone-") {
                named.insert(short.to_owned());
            } else if name == "freestone" || line.contains("package = \"freestone\"") {
                named.insert("freestone".to_owned());
            }
        }
    }
    named
}

fn visit(folder: &Path, see: &mut dyn FnMut(&Path, &str)) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            // Tests may name anything: they are above everything.
            if path.file_name().is_some_and(|name| name != "tests") {
                visit(&path, see)?;
            }
        } else if path.extension().is_some_and(|end| end == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            see(&path, &fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// Everything wrong with the modules under `source`.
fn complaints_of_modules(source: &Path, order: &Order) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    visit(source, &mut |path, text| {
        let inside = path.strip_prefix(source).unwrap_or(path);
        let from = inside.iter().next().map(|name| name.to_string_lossy().replace(".rs", "")).unwrap_or_default();
        // `testing` exists in test builds only, and may name anything.
        if from == "lib" || from == "testing" {
            return;
        }
        let found = modules_named(text).into_iter().filter_map(|to| order.complaint(&from, &to));
        complaints.extend(found.map(|complaint| format!("{}: {complaint}", inside.display())));
    })?;
    Ok(complaints)
}

/// Checks the workspace.
pub(crate) fn check_workspace() -> Result<()> {
    let text = fs::read_to_string(root().join("layers.dag")).context("cannot read layers.dag")?;
    let mut complaints = complaints_of_modules(&root().join("crates/freestone/src"), &Order::read(&text, "freestone"))?;
    let crates = Order::read(&text, "crates");
    for name in crates.below.keys() {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"))
            .with_context(|| format!("layers.dag names the crate {name}, which cannot be read"))?;
        complaints.extend(crates_named(&manifest).iter().filter_map(|to| crates.complaint(name, to)));
    }
    if !complaints.is_empty() {
        bail!(
            "upward arrows:\n  {}\nmove the code down, or return a demand instead of calling up",
            complaints.join("\n  ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
