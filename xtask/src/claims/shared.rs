//! `docs/concurrency.md` lists every lock with its rank and every atomic of the heap crates; both tables are compared with the fields and statics.

use super::prose::quoted;
use crate::process::root;
use crate::source::attributes::{is_for_tests, is_test_item};
use crate::source::{Crate, HEAP_CRATES, workspace};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use syn::visit::{self, Visit};

const PAGE: &str = "docs/concurrency.md";

/// Files that stand in for the real thing in tests: the scheduled atomics and the fake kernel.
const STAND_INS: [&str; 2] = ["sync/scheduled.rs", "fake.rs"];

/// Types of `base` that are made of atomics: what has their type may be in the table, and need not be.
const MADE_OF_ATOMICS: [&str; 3] = ["Inbox", "Slot", "Once"];

/// What threads share in some crates.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// `Type::field`, `Type` for a field without a name, or the name of a static.
    pub atomics: BTreeSet<String>,
    /// Fields of the types in [`MADE_OF_ATOMICS`].
    pub composed: BTreeSet<String>,
    /// Ranks of locks that have one, by the field.
    pub locks: BTreeMap<String, u64>,
}

impl Shared {
    /// Adds what a crate has.
    pub(super) fn add(&mut self, krate: &Crate) {
        for file in krate.files.iter().filter(|file| !STAND_INS.contains(&file.path.as_str())) {
            let mut constants = Constants::default();
            constants.visit_file(&file.syntax);
            let mut finder = Finder { shared: self, of: String::new(), ranks: &constants.0 };
            file.syntax.items.iter().for_each(|item| finder.visit_item(item));
        }
    }
}

/// Numbers that a file gives a name.
#[derive(Default)]
struct Constants(BTreeMap<String, u64>);

impl<'ast> Visit<'ast> for Constants {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if let Some(value) = number(&item.expr) {
            self.0.insert(item.ident.to_string(), value);
        }
    }
}

fn number(of: &syn::Expr) -> Option<u64> {
    match of {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(value), .. }) => value.base10_parse().ok(),
        _ => None,
    }
}

struct Finder<'a> {
    shared: &'a mut Shared,
    /// The type whose fields are read.
    of: String,
    ranks: &'a BTreeMap<String, u64>,
}

impl Finder<'_> {
    fn look_at(&mut self, name: String, what: &syn::Type) {
        let mut names = TypeNames::default();
        names.visit_type(what);
        if let Some(rank) = names.rank.and_then(|rank| rank.parse().ok().or_else(|| self.ranks.get(&rank).copied())) {
            self.shared.locks.insert(name, rank);
        } else if names.all.iter().any(|name| name.starts_with("Atomic")) {
            self.shared.atomics.insert(name);
        } else if names.all.iter().any(|name| MADE_OF_ATOMICS.contains(&name.as_str())) {
            self.shared.composed.insert(name);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_item(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.of = item.ident.to_string();
        visit::visit_item_struct(self, item);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            let name = field.ident.as_ref().map_or_else(|| self.of.clone(), |name| format!("{}::{name}", self.of));
            self.look_at(name, &field.ty);
        }
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.look_at(item.ident.to_string(), &item.ty);
    }

    /// Variants hold no atomics here, and their fields have no type of their own.
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}

    fn visit_block(&mut self, block: &'ast syn::Block) {
        visit::visit_block(self, block);
    }
}

/// Every name in a type, and the rank if it is a lock with one.
#[derive(Default)]
struct TypeNames {
    all: Vec<String>,
    rank: Option<String>,
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.all.push(segment.ident.to_string());
        if segment.ident == "Lock"
            && let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments
            && let Some(third) = arguments.args.iter().nth(2)
        {
            self.rank = match third {
                syn::GenericArgument::Const(value) => number(value).map(|rank| rank.to_string()),
                syn::GenericArgument::Type(syn::Type::Path(path)) => {
                    path.path.segments.last().map(|last| last.ident.to_string())
                }
                _ => None,
            };
            return;
        }
        visit::visit_path_segment(self, segment);
    }
}

/// The cells of the table under a heading.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<(usize, Vec<&'a str>)> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| !line.starts_with(heading)).skip(1);
    let lines = lines.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with("| "));
    let cells = |line: &'a str| line.trim_matches('|').split(" | ").map(str::trim).collect();
    // The first row is the head.
    lines.map(|(index, line)| (index + 1, cells(line))).skip(1).collect()
}

/// The names of a cell as `Type::field`: `A::x`, `y` stands for `A::x` and `A::y`; a longer path is shortened.
fn names_in(cell: &str) -> Vec<String> {
    let mut of = String::new();
    let mut names = Vec::new();
    for name in quoted(cell).map(|name| name.split('[').next().unwrap_or(name)).filter(|name| !name.ends_with(".rs")) {
        let parts: Vec<&str> = name.split("::").collect();
        let is_static = name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_ascii_digit());
        match parts[..] {
            [.., of_this, field] => {
                of = of_this.to_owned();
                names.push(format!("{of}::{field}"));
            }
            [field] if !of.is_empty() && !is_static && field.starts_with(char::is_lowercase) => {
                names.push(format!("{of}::{field}"));
            }
            _ => names.push(name.to_owned()),
        }
    }
    names
}

/// Errors and omissions of the page.
fn complaints_about(page: &str, shared: &Shared) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut listed = BTreeSet::new();
    for (number, cells) in rows(page, "## Atomics") {
        for name in names_in(cells.first().unwrap_or(&"")) {
            let of_type = name.strip_suffix('*').map(str::to_owned);
            let all = shared.atomics.iter().chain(&shared.composed);
            let meant: Vec<_> = all
                .filter(|atomic| of_type.as_ref().map_or(**atomic == name, |of| atomic.starts_with(of)))
                .cloned()
                .collect();
            if meant.is_empty() {
                complaints.push(format!("{PAGE}:{number}: `{name}` is no atomic of the code"));
            }
            listed.extend(meant);
        }
    }
    let missing = shared.atomics.difference(&listed);
    complaints.extend(missing.map(|name| format!("{PAGE}: the atomic `{name}` is not in the table")));
    let mut told = BTreeSet::new();
    for (number, cells) in rows(page, "## Locks") {
        let rank = cells.first().and_then(|cell| cell.parse::<u64>().ok());
        for name in cells.get(1).map(|cell| names_in(cell)).unwrap_or_default() {
            match shared.locks.get(&name) {
                Some(&found) if Some(found) == rank => drop(told.insert(name)),
                Some(found) => complaints.push(format!("{PAGE}:{number}: the rank of `{name}` is {found}")),
                None => complaints.push(format!("{PAGE}:{number}: `{name}` is no lock with a rank")),
            }
        }
    }
    let untold = shared.locks.keys().filter(|name| !told.contains(*name));
    complaints.extend(untold.map(|name| format!("{PAGE}: the lock `{name}` is not in the table with its rank")));
    complaints
}

/// Compares the page with the heap crates.
pub(super) fn complaints() -> Result<Vec<String>> {
    let page = fs::read_to_string(root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let mut shared = Shared::default();
    let workspace = workspace()?;
    let heap = workspace.iter().filter(|(name, _)| HEAP_CRATES.contains(name));
    heap.for_each(|(_, krate)| shared.add(krate));
    Ok(complaints_about(&page, &shared))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Sample;

    const CODE: &str = "pub const RANK: u8 = 20; struct Slot(AtomicU64); struct A { x: AtomicU32, y: [AtomicU8; 4], \
                        lists: [Lock<List, Futex, RANK>; 72], told: Lock<u8, Futex, 5>, plain: Lock<u8>, inbox: Inbox }\
                        fn f() { static SEEN: AtomicBool = AtomicBool::new(false); } #[cfg(test)] static T: AtomicU8 = z;";
    const PAGE: &str = "## Locks, by rank\n| rank | lock | protects |\n|---|---|---|\n| 5 | `m::A::told` | it |\n\
                        | 20 | `A::lists[class]` | them |\n## Atomics\n| atomic | by |\n|---|---|\n| `Slot` (`slot.rs`) | a |\n\
                        | `A::x`, `y`, `SEEN` | b |\n| `A::inbox` | c |\n## More\n| `other` | d |\n";

    fn complaints(page: &str) -> Vec<String> {
        let mut shared = Shared::default();
        shared.add(&Crate::read(Sample::new(&[("lib.rs", CODE)]).folder()).expect("the sample parses"));
        complaints_about(page, &shared)
    }

    #[test]
    fn a_page_that_lists_all_is_right() {
        assert!(complaints(PAGE).is_empty(), "{:?}", complaints(PAGE));
        assert!(complaints(&PAGE.replace("`A::x`, `y`", "`A::*`")).is_empty());
    }

    #[test]
    fn what_is_missing_or_gone_or_of_another_rank_is_found() {
        for (from, to) in [
            ("`A::x`, ", "`A::z`, "),
            ("| `A::x`, `y`, `SEEN` | b |\n", ""),
            (", `SEEN`", ""),
            ("| 20 |", "| 30 |"),
            ("| 5 | `m::A::told` | it |\n", ""),
            ("`Slot`", "`Slots`"),
        ] {
            assert!(!complaints(&PAGE.replace(from, to)).is_empty(), "{from} to {to}");
        }
    }
}
