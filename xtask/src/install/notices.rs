//! The licences of the crates that the packaged binaries contain: most ask that their text goes with each copy.

use crate::process::{cargo, output};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The packages that are built for users.
const PACKAGED: [&str; 3] = ["freestone-capi", "freestone-lab", "freestone-memory"];

/// How the names of files with licences begin.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// One page: which crates, and the text of each licence once.
pub(crate) fn third_parties() -> Result<String> {
    let version = output(&mut crate::process::command("rustc", &["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let metadata = output(&mut cargo(&["metadata", "--format-version=1", "--locked", "--filter-platform", host]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let mut crates = Vec::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in contained(&metadata)? {
        let text = |key| package[key].as_str().unwrap_or_default();
        let title = format!("{} {}", text("name"), text("version"));
        crates.push(format!("{title} ({})", text("license")));
        let folder = Path::new(text("manifest_path")).parent().context("a manifest has a folder")?;
        for licence in licences_in(folder)? {
            texts.entry(licence).or_default().push(title.clone());
        }
    }
    Ok(page(crates, texts))
}

fn page(mut crates: Vec<String>, texts: BTreeMap<String, Vec<String>>) -> String {
    crates.sort();
    let mut page = format!(
        "The binaries of Freestone contain code of Rust's standard library (MIT OR Apache-2.0) and of these crates:\n\n{}\n",
        crates.join("\n")
    );
    let mut by_crates: Vec<_> = texts.into_iter().map(|(text, crates)| (crates.join(", "), text)).collect();
    by_crates.sort();
    for (crates, text) in by_crates {
        page += &format!("\n{}\n{crates}\n\n{}\n", "=".repeat(80), text.trim_end());
    }
    page
}

/// The packages from elsewhere on which the packaged ones depend.
fn contained(metadata: &Value) -> Result<Vec<&Value>> {
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo lists no dependencies")?;
    let id_of = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
    let dependencies: BTreeMap<String, &Value> = nodes.iter().map(|node| (id_of(node), &node["deps"])).collect();
    let is_packaged = |package: &&Value| PACKAGED.iter().any(|name| package["name"] == *name);
    let mut left: Vec<String> = packages.iter().filter(is_packaged).map(id_of).collect();
    let mut seen = BTreeSet::new();
    let is_linked = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    while let Some(id) = left.pop() {
        if seen.insert(id.clone()) {
            let of_id = dependencies.get(&id).and_then(|deps| deps.as_array()).into_iter().flatten();
            left.extend(of_id.filter(is_linked).filter_map(|dependency| dependency["pkg"].as_str().map(str::to_owned)));
        }
    }
    Ok(packages.iter().filter(|package| !package["source"].is_null() && seen.contains(&id_of(package))).collect())
}

/// The texts of the licences in a crate's folder, in the order of the files' names.
fn licences_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        file.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    });
    files.sort();
    files.iter().map(|file| Ok(fs::read_to_string(file)?.replace("\r\n", "\n"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_linked_from_elsewhere_is_named_and_what_only_tests_need_is_not() {
        let package = |id: &str, source: Value| json!({ "id": id, "name": id, "source": source });
        let to = |pkg: &str, kind: Value| json!({ "pkg": pkg, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("freestone-lab", Value::Null), package("own", Value::Null), package("linked", json!("r")),
                package("tests", json!("r")), package("apart", json!("r"))],
            "resolve": { "nodes": [
                { "id": "freestone-lab", "deps": [to("own", Value::Null), to("tests", json!("dev"))] },
                { "id": "own", "deps": [to("linked", Value::Null), to("freestone-lab", Value::Null)] },
                { "id": "apart", "deps": [] },
            ] },
        });
        let names: Vec<_> = contained(&metadata).unwrap().iter().map(|package| package["name"].clone()).collect();
        assert_eq!(names, ["linked"]);
    }

    #[test]
    fn a_text_that_two_crates_share_is_there_once() {
        let texts = BTreeMap::from([("MIT".to_owned(), vec!["a 1".to_owned(), "b 2".to_owned()])]);
        let page = page(vec!["b 2 (MIT)".into(), "a 1 (MIT)".into()], texts);
        assert!(page.contains("a 1 (MIT)\nb 2 (MIT)\n") && page.ends_with("a 1, b 2\n\nMIT\n"), "{page}");
    }
}
