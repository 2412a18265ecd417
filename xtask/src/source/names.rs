//! What a path names: the module, or the file of the item, followed through `use` and `pub use`.

use super::tree::Crate;

/// What a path leads to in its own crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A module, by its index.
    Module(usize),
    /// An item, by the module that defines it.
    Item(usize),
}

/// Re-exports of re-exports are followed this far: a circle of globs ends here.
const DEPTH_MOST: usize = 16;

/// What `path` names when it is written in `module`; `None` for names of other crates, locals and types of the language.
pub(crate) fn resolve(krate: &Crate, module: usize, path: &[String]) -> Option<Named> {
    resolve_to(krate, module, path, DEPTH_MOST)
}

fn resolve_to(krate: &Crate, module: usize, path: &[String], depth: usize) -> Option<Named> {
    let depth = depth.checked_sub(1)?;
    let (first, rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => Named::Module(0),
        "self" => Named::Module(module),
        "super" => Named::Module(krate.modules[module].parent?),
        name => look_up(krate, module, name, rest.is_empty(), depth)?,
    };
    for (index, name) in rest.iter().enumerate() {
        // What follows an item is its associated function, its variant or its constant.
        let Named::Module(inner) = at else { return Some(at) };
        at = match name.as_str() {
            "self" => at,
            "super" => Named::Module(krate.modules[inner].parent?),
            name => look_up(krate, inner, name, index + 1 == rest.len(), depth)?,
        };
    }
    Some(at)
}

/// Finds a name in a module. The last name of a path is an item rather than a module of the same name.
fn look_up(krate: &Crate, module: usize, name: &str, is_last: bool, depth: usize) -> Option<Named> {
    let here = &krate.modules[module];
    let child = here.children.get(name).map(|&child| Named::Module(child));
    if let Some(child) = child.filter(|_| !is_last) {
        return Some(child);
    }
    if here.items.iter().any(|item| item == name) {
        return Some(Named::Item(module));
    }
    // `use x::x` in the module that declares `mod x` would lead to itself by way of the first `x`: that one is the child.
    let mut named = here.imports.iter().filter(|import| import.name.as_deref() == Some(name));
    let imported = named.find_map(|import| {
        let leads_to_itself = import.path.first().is_some_and(|first| first == name) && child.is_none();
        if leads_to_itself { None } else { resolve_to(krate, module, &import.path, depth) }
    });
    if let Some(item) = imported.filter(|found| matches!(found, Named::Item(_)) || child.is_none()) {
        return Some(item);
    }
    child.or(imported).or_else(|| look_up_in_globs(krate, module, name, depth))
}

/// Finds a name that comes with `use x::*`.
pub(super) fn look_up_in_globs(krate: &Crate, module: usize, name: &str, depth: usize) -> Option<Named> {
    let depth = depth.checked_sub(1)?;
    let globs = krate.modules[module].imports.iter().filter(|import| import.name.is_none());
    globs.filter(|glob| !glob.path.is_empty()).find_map(|glob| match resolve_to(krate, module, &glob.path, depth)? {
        Named::Module(other) if other != module => look_up(krate, other, name, true, depth),
        _ => None,
    })
}
