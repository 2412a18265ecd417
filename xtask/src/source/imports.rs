//! The `use` lines of a module, taken apart.

use super::attributes::is_for_tests;
use syn::spanned::Spanned;
use syn::{Item, UseTree, Visibility};

/// One name that a `use` brings in, or all names of a module (`use x::*`).
#[derive(Debug)]
pub(crate) struct Import {
    /// The name it has here; `None` for a glob.
    pub name: Option<String>,
    pub path: Vec<String>,
    /// Whether others can reach the name through this module: `pub use`, `pub(crate) use`.
    pub is_public: bool,
    pub line: usize,
}

/// The imports among some items.
pub(super) fn imports_of(items: &[Item]) -> Vec<Import> {
    let mut imports = Vec::new();
    for item in items {
        if let Item::Use(item) = item
            && !is_for_tests(&item.attrs)
        {
            collect(&item.tree, &mut Vec::new(), !matches!(item.vis, Visibility::Inherited), &mut imports);
        }
    }
    imports
}

/// Adds the names of a whole `use` tree.
pub(crate) fn collect_imports(tree: &UseTree, imports: &mut Vec<Import>) {
    collect(tree, &mut Vec::new(), false, imports);
}

/// Adds the names of a `use` tree below `prefix`.
fn collect(tree: &UseTree, prefix: &mut Vec<String>, is_public: bool, imports: &mut Vec<Import>) {
    let line = tree.span().start().line;
    let mut add = |name: Option<String>, path: Vec<String>| imports.push(Import { name, path, is_public, line });
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            collect(&path.tree, prefix, is_public, imports);
            prefix.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, prefix, is_public, imports)),
        UseTree::Glob(_) => add(None, prefix.clone()),
        UseTree::Name(name) if name.ident == "self" => add(prefix.last().cloned(), prefix.clone()),
        UseTree::Name(name) => add(Some(name.ident.to_string()), with(prefix, name.ident.to_string())),
        UseTree::Rename(name) if name.ident == "self" => add(Some(name.rename.to_string()), prefix.clone()),
        UseTree::Rename(name) => add(Some(name.rename.to_string()), with(prefix, name.ident.to_string())),
    }
}

fn with(prefix: &[String], last: String) -> Vec<String> {
    prefix.iter().cloned().chain([last]).collect()
}
