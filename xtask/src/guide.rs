//! `cargo xtask test --only guide`: runs what `docs/guide` shows.
//!
//! | fence | what is done with it |
//! |---|---|
//! | `sh` | run by the shell, in the page's folder, with an installed Freestone in `~/freestone` |
//! | `sh,needs=docker` | not run, and counted: it needs something that a test machine may lack |
//! | `sh,tool=go` | run where the program is installed |
//! | `c,file=…` | written to that file, which a later command of the page has to use; so `cpp`, `rust`, `go`, `toml` |
//! | `ini,file=…`, `yaml`, `dockerfile` | written to that file, and its syntax is checked |
//! | `text,output` | every line has to be in the output of the command before it; `…` stands for any text |
//! | `text` | shown only |
//!
//! Exports of one `sh` fence hold in the later ones of the page, as in a terminal. Options that the guide names are looked up in the option table.

use crate::process::root;
use anyhow::{Context, Result, bail};
use fence::Fence;
use stage::Stage;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod fence;
mod file_syntax;
mod option_names;
mod page_run;
mod stage;

/// A page, by its path below the guide's folder.
struct Page {
    name: String,
    text: String,
}

fn folder() -> PathBuf {
    root().join("docs/guide")
}

/// Every page of the guide, the table of contents excepted.
fn pages(folder: &Path, below: &str) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            pages.extend(self::pages(&entry.path(), &format!("{name}/"))?);
        } else if name.ends_with(".md") && name != "SUMMARY.md" {
            pages.push(Page { text: fs::read_to_string(entry.path())?, name });
        }
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pages)
}

/// Pages that the table of contents leaves out, and entries without a page.
fn content_complaints(summary: &str, pages: &[Page]) -> Vec<String> {
    let listed: BTreeSet<&str> = summary
        .split("](")
        .skip(1)
        .filter_map(|after| after.split(')').next())
        .filter(|page| !page.is_empty())
        .collect();
    let there: BTreeSet<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    let missing = there.difference(&listed).map(|page| format!("SUMMARY.md does not list {page}"));
    missing.chain(listed.difference(&there).map(|page| format!("SUMMARY.md lists {page}, which is no page"))).collect()
}

/// Checks contents and options, then runs every page.
pub(crate) fn check() -> Result<()> {
    let pages = pages(&folder(), "")?;
    let summary = fs::read_to_string(folder().join("SUMMARY.md")).context("cannot read SUMMARY.md")?;
    let mut complaints = content_complaints(&summary, &pages);
    let words = option_names::Words::read()?;
    pages.iter().for_each(|page| complaints.extend(words.complaints(&page.name, &page.text)));
    let mut fences: Vec<(&Page, Vec<Fence>)> = Vec::new();
    for page in &pages {
        match fence::fences(&page.text) {
            Ok(found) => fences.push((page, found)),
            Err(error) => complaints.push(format!("{}:{error}", page.name)),
        }
    }
    refuse(&complaints)?;
    let stage = Stage::set_up()?;
    let mut counts = BTreeMap::new();
    for (page, fences) in &fences {
        match page_run::run(&stage, &page.name, fences) {
            Ok(done) => done.into_iter().for_each(|(what, n)| *counts.entry(what).or_insert(0) += n),
            Err(error) => complaints.push(format!("{}:{error:#}", page.name)),
        }
    }
    complaints.extend(stage.unknown_commands(&words.commands(pages.iter().map(|page| page.text.as_str()))));
    refuse(&complaints)?;
    println!("{} pages", pages.len());
    counts.iter().for_each(|(what, n): (&String, &usize)| println!("{n:4} {what}"));
    Ok(())
}

fn refuse(complaints: &[String]) -> Result<()> {
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("the guide is wrong in {} places:\n  {}", complaints.len(), complaints.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_list_every_page_and_no_other() {
        let page = |name: &str| Page { name: name.into(), text: String::new() };
        let summary = "# Contents\n- [A](a.md)\n  - [B](more/b.md)\n";
        assert!(content_complaints(summary, &[page("a.md"), page("more/b.md")]).is_empty());
        let found = content_complaints(summary, &[page("a.md"), page("c.md")]);
        assert_eq!(found, ["SUMMARY.md does not list c.md", "SUMMARY.md lists more/b.md, which is no page"]);
    }
}
