//! Checks `layers.dag`: no crate, module or file names one above it, and no files of a crate name each other in a circle.
//!
//! ```text
//! crates: base < os                           a crate may depend on those below it
//! freestone: span < page                      a module of this crate may name those below it
//! circle: lab a.rs -> b.rs because …          an arrow on a circle, with the reason why it stays
//! opaque: freestone a.rs because …            a file whose fields or parameters have untyped pointers, and what they hide
//! ```
//!
//! Arrows are read from the parsed sources ([`crate::source`]): a path counts for the file that defines what it names.

use crate::process::root;
use crate::source::arrows::arrows;
use crate::source::{Crate, HEAP_CRATES, workspace};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;

mod circles;
mod opaque;
mod order;
use circles::{Pair, arrows_on_circles, circles};
use order::Order;

/// Allowed arrows on circles, in the whole workspace.
const CIRCLES_MOST: usize = 3;

/// What `layers.dag` allows in one crate beyond the order of its modules.
#[derive(Debug, Default, PartialEq)]
struct Allowed {
    arrows: Vec<Pair>,
    opaque: Vec<String>,
}

impl Allowed {
    /// The lines of `text` about `krate`.
    fn read(text: &str, krate: &str) -> Result<Self> {
        let mut allowed = Self::default();
        for line in text.lines().map(str::trim) {
            let Some((kind, rest)) = line.split_once(": ").filter(|(kind, _)| ["circle", "opaque"].contains(kind))
            else {
                continue;
            };
            let (what, reason) = rest.split_once(" because ").unwrap_or((rest, ""));
            if reason.trim().is_empty() {
                bail!("layers.dag gives no reason, `because …`, in: {line}");
            }
            let Some((_, what)) = what.split_once(' ').filter(|(named, _)| *named == krate) else { continue };
            match (kind, what.split_once(" -> ")) {
                ("opaque", _) => allowed.opaque.push(what.to_owned()),
                (_, Some((from, to))) => allowed.arrows.push((from.to_owned(), to.to_owned())),
                _ => bail!("layers.dag: write `circle: CRATE FROM -> TO because …` instead of: {line}"),
            }
        }
        Ok(allowed)
    }
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

/// The top module of a file: `thread` for `thread/current.rs` and for `thread.rs`.
fn top_module(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// The arrows between modules that point upward.
fn upward_modules(krate: &Crate, order: &Order) -> Vec<String> {
    let mut complaints = Vec::new();
    for (&(from, to), line) in &arrows(krate) {
        let (from, to) = (&krate.files[from].path, &krate.files[to].path);
        let tops = (top_module(from), top_module(to));
        if !["lib", "main"].contains(&tops.0) {
            complaints.extend(order.complaint(tops.0, tops.1).map(|complaint| format!("{from}:{line}: {complaint}")));
        }
    }
    complaints
}

/// Files with untyped pointers that are not allowed, and allowances that nothing needs.
fn opaque_complaints(krate: &Crate, allowed: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in &krate.files {
        let lines = opaque::untyped_pointers(file);
        match (lines.first(), allowed.contains(&file.path)) {
            (Some(line), false) => complaints.push(format!(
                "{}:{line}: an untyped pointer in a field or a parameter can hide a type from above",
                file.path
            )),
            (None, true) => complaints.push(format!("{} has no untyped pointer: remove its line `opaque:`", file.path)),
            _ => {}
        }
    }
    let is_gone = |path: &&String| krate.files.iter().all(|file| file.path != **path);
    complaints
        .extend(allowed.iter().filter(is_gone).map(|path| format!("{path} does not exist: remove its line `opaque:`")));
    complaints
}

/// Everything wrong with one crate.
fn complaints_of(krate: &Crate, order: &Order, allowed: &Allowed, is_heap: bool) -> Vec<String> {
    let mut complaints = if order.is_empty() { Vec::new() } else { upward_modules(krate, order) };
    let found = circles(krate, &allowed.arrows);
    complaints.extend(found.complaints.iter().map(|circle| format!("a circle: {circle}")));
    let idle = found.idle.iter();
    complaints.extend(idle.map(|(from, to)| format!("{from} -> {to} is on no circle: remove its line `circle:`")));
    if is_heap {
        complaints.extend(opaque_complaints(krate, &allowed.opaque));
    }
    complaints
}

/// Checks the workspace.
pub(crate) fn check_workspace() -> Result<()> {
    let text = fs::read_to_string(root().join("layers.dag")).context("cannot read layers.dag")?;
    let crates = Order::read(&text, "crates");
    let mut complaints = Vec::new();
    for name in crates.below.keys() {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"))
            .with_context(|| format!("layers.dag names the crate {name}, which cannot be read"))?;
        complaints.extend(crates_named(&manifest).iter().filter_map(|to| crates.complaint(name, to)));
    }
    let mut n_allowed = 0;
    for (name, krate) in workspace()?.iter() {
        let allowed = Allowed::read(&text, name)?;
        n_allowed += allowed.arrows.len();
        let found = complaints_of(krate, &Order::read(&text, name), &allowed, HEAP_CRATES.contains(name));
        complaints.extend(found.into_iter().map(|complaint| format!("{name}: {complaint}")));
    }
    if n_allowed > CIRCLES_MOST {
        complaints.push(format!("layers.dag allows {n_allowed} arrows on circles, at most {CIRCLES_MOST} may stay"));
    }
    if !complaints.is_empty() {
        bail!(
            "layers.dag does not hold:\n  {}\nMove the code down, or return a demand instead of calling up.",
            complaints.join("\n  ")
        );
    }
    Ok(())
}

/// Prints every arrow that lies on a circle.
pub(crate) fn list_circles() -> Result<()> {
    for (name, krate) in workspace()?.iter() {
        for (from, to) in arrows_on_circles(krate) {
            println!("{name}: {from} -> {to}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
