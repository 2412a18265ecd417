//! `cargo xtask test --only claims`: compares statements of documents and comments about the code with the code.
//!
//! | module | what it compares |
//! |---|---|
//! | [`names`] | names in backquotes, in documents and in comments: files, functions, types, commands and steps exist |
//! | [`links`] | links between documents lead to files and headings that exist |
//! | [`shared`] | the tables of locks and atomics in `docs/concurrency.md` list what the code has, and nothing else |
//! | [`figures`] | sentences with a number that the code determines state that number |
//! | [`examples`] | each public item and method of the crates that Rust programs use has an example that runs |
//! | [`journey`] | `docs/architecture.md` names functions in the order in which they call each other |

use crate::process::root;
use anyhow::{Context, Result, bail};

mod examples;
mod figures;
mod index;
mod journey;
pub(crate) mod links;
mod names;
mod prose;
mod shared;

/// Checks every claim, and lists those that do not hold; `steps` are the names of the steps of `cargo xtask test`.
pub(crate) fn check(steps: &[&str]) -> Result<()> {
    let index = index::Index::read()?;
    let mut complaints = names::complaints(&index, steps)?;
    complaints.extend(links::complaints(&root(), &index.files)?);
    complaints.extend(shared::complaints()?);
    complaints.extend(figures::complaints()?);
    complaints.extend(examples::complaints()?);
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).context("cannot read the page")?;
    complaints.extend(journey::complaints(&page, &index.functions));
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{} claims do not hold:\n  {}", complaints.len(), complaints.join("\n  "))
}
