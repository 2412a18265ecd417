//! The staircase, checked: no crate and no module names one above it (`layers.dag`).

use crate::run::root;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What each name may name.
type Dag = BTreeMap<String, Vec<String>>;

/// Checks the crates' dependencies and the heap's modules.
pub(crate) fn check_workspace() -> Result<()> {
    let root = root();
    let dag = parse(&fs::read_to_string(root.join("layers.dag")).context("layers.dag is missing")?)?;
    let mut upward = check_modules(&dag, &root.join("crates/freestone/src"))?;
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) {
            upward.extend(check_dependencies(&dag, &name, &manifest));
        }
    }
    if !upward.is_empty() {
        bail!("these go up the staircase of layers.dag; change the design, not the arrow:\n  {}", upward.join("\n  "));
    }
    Ok(())
}

/// Lines `name: what it may name`; `#` starts a comment.
fn parse(text: &str) -> Result<Dag> {
    let mut dag = Dag::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if line.is_empty() {
            continue;
        }
        let (name, below) =
            line.split_once(':').with_context(|| format!("layers.dag: `{line}` is no `name: names`"))?;
        dag.insert(name.trim().to_owned(), below.split_whitespace().map(str::to_owned).collect());
    }
    Ok(dag)
}

fn may(dag: &Dag, from: &str, to: &str) -> bool {
    from == to || dag.get(from).is_some_and(|below| below.iter().any(|name| name == to))
}

/// Dependencies of one crate on others of the workspace; development ones may go anywhere.
fn check_dependencies(dag: &Dag, name: &str, manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut upward = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let Some(dependency) = line.split(['=', '.', ' ']).next() else { continue };
        let Some(short) = dependency.strip_prefix("freestone-").or((dependency == "freestone").then_some("freestone"))
        else {
            continue;
        };
        if section == "[dependencies]" && !may(dag, &format!("crates/{name}"), &format!("crates/{short}")) {
            upward.push(format!("crate {name} depends on {short}"));
        }
    }
    upward
}

/// `crate::module` paths in the files of each top module of the heap.
fn check_modules(dag: &Dag, src: &Path) -> Result<Vec<String>> {
    let mut upward = Vec::new();
    let mut folders = vec![src.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(src)?;
            let module = relative.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
            let module = module.unwrap_or_default().trim_end_matches(".rs").to_owned();
            // The root names everything, and tests may use anything.
            if module == "lib" || module == "testing" || path.ends_with("tests.rs") {
                continue;
            }
            for named in names(&fs::read_to_string(&path)?) {
                if dag.contains_key(&named) && !may(dag, &module, &named) {
                    upward.push(format!("{} names crate::{named}", relative.display()));
                }
            }
        }
    }
    Ok(upward)
}

/// The modules named after `crate::`, outside comments.
fn names(text: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    code.match_indices("crate::")
        .flat_map(|(at, prefix)| {
            let rest = &code[at + prefix.len()..];
            let group = rest.strip_prefix('{').and_then(|rest| rest.split('}').next());
            let list = group
                .unwrap_or_else(|| rest.split([':', ';', ',', ' ', '(', '\n', '<', ')']).next().unwrap_or_default());
            list.split(',')
                .map(|name| name.trim().split("::").next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests;
