//! Examples: each public item and method of the crates that Rust programs use has one that runs.
//!
//! An item is public if `lib.rs` or a public module in it exports it; items of other crates are left out. A trait's example shows its methods,
//! and an enum's or a struct's its variants or fields.

use crate::source::attributes::attributes_of;
use crate::source::{collect_imports, workspace};
use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::{Attribute, Expr, ExprLit, ImplItem, Item, Lit, Type, Visibility};

const CRATES: [&str; 3] = ["freestone", "tlsf", "pool"];

/// What is public and has no example.
pub(super) fn complaints() -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for (name, krate) in workspace()?.iter().filter(|(name, _)| CRATES.contains(name)) {
        let mut exported = BTreeSet::new();
        krate
            .files
            .iter()
            .filter(|file| file.path == "lib.rs")
            .for_each(|lib| export(&lib.syntax.items, &mut exported));
        for file in &krate.files {
            let mut lacking = Vec::new();
            look(&file.syntax.items, &exported, &mut lacking);
            let place = format!("crates/{name}/src/{}", file.path);
            complaints.extend(lacking.iter().map(|item| format!("{place}: {item} has no example that runs")));
        }
    }
    Ok(complaints)
}

/// Collects the names that are public among `items`, those in public modules included.
fn export(items: &[Item], exported: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Use(item) if is_public(&item.vis) => {
                let mut imports = Vec::new();
                collect_imports(&item.tree, &mut imports);
                exported.extend(imports.into_iter().filter_map(|import| import.name));
            }
            Item::Mod(module) if is_public(&module.vis) => {
                exported.insert(module.ident.to_string());
                module.content.iter().for_each(|(_, items)| export(items, exported));
            }
            _ => {}
        }
    }
}

/// Collects the items and methods that need an example and have none.
fn look(items: &[Item], exported: &BTreeSet<String>, lacking: &mut Vec<String>) {
    for item in items {
        let (visibility, name) = match item {
            Item::Const(item) => (&item.vis, &item.ident),
            Item::Enum(item) => (&item.vis, &item.ident),
            Item::Fn(item) => (&item.vis, &item.sig.ident),
            Item::Static(item) => (&item.vis, &item.ident),
            Item::Struct(item) => (&item.vis, &item.ident),
            Item::Trait(item) => (&item.vis, &item.ident),
            Item::Type(item) => (&item.vis, &item.ident),
            Item::Mod(item) => {
                item.content.iter().for_each(|(_, items)| look(items, exported, lacking));
                (&item.vis, &item.ident)
            }
            Item::Macro(item) => {
                look(&generated(item), exported, lacking);
                continue;
            }
            Item::Impl(item) if item.trait_.is_none() => {
                let Type::Path(path) = &*item.self_ty else { continue };
                let of = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
                // In a macro, a type in lower case is its parameter.
                if exported.contains(&of) || of.starts_with(char::is_lowercase) {
                    lacking.extend(item.items.iter().filter_map(bare_member).map(|name| format!("{of}::{name}")));
                }
                continue;
            }
            _ => continue,
        };
        if is_public(visibility) && exported.contains(&name.to_string()) && !has_example(attributes_of(item)) {
            lacking.push(name.to_string());
        }
    }
}

/// The items in a macro's only rule, with the names of its parameters; none if they are no items.
fn generated(item: &syn::ItemMacro) -> Vec<Item> {
    let Some(TokenTree::Group(body)) = item.mac.tokens.clone().into_iter().nth(3) else { return Vec::new() };
    let is_dollar = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '$');
    let tokens: TokenStream = body.stream().into_iter().filter(|token| !is_dollar(token)).collect();
    syn::parse2::<syn::File>(tokens).map(|file| file.items).unwrap_or_default()
}

/// The name of a public method or constant without an example.
fn bare_member(item: &ImplItem) -> Option<&syn::Ident> {
    let (visibility, name, attributes) = match item {
        ImplItem::Fn(item) => (&item.vis, &item.sig.ident, &item.attrs),
        ImplItem::Const(item) => (&item.vis, &item.ident, &item.attrs),
        _ => return None,
    };
    (is_public(visibility) && !has_example(attributes)).then_some(name)
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether the documentation has a block of Rust that a test runs, or is hidden.
fn has_example(attributes: &[Attribute]) -> bool {
    let (mut is_inside, mut runs) = (false, false);
    for doc in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Ok(line) = doc.meta.require_name_value() else {
            runs |= doc.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "hidden");
            continue;
        };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &line.value else { continue };
        if let Some(words) = text.value().trim().strip_prefix("```") {
            runs |= !is_inside && ["", "rust", "should_panic"].contains(&words);
            is_inside = !is_inside;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_and_methods_without_an_example_are_found() {
        let items = "
            pub use a::{Shown, Bare, Elsewhere};
            mod a {
                /// Says it.
                ///
                /// ```
                /// assert!(true);
                /// ```
                pub struct Shown;
                impl Shown {
                    pub fn bare(&self) {}
                    /// ```text
                    /// a drawing
                    /// ```
                    pub const DRAWN: usize = 1;
                    pub(crate) fn inner(&self) {}
                    #[doc(hidden)]
                    pub fn hidden(&self) {}
                }
                impl Drop for Shown { fn drop(&mut self) {} }
                pub enum Bare { A }
                pub fn unexported() {}
                macro_rules! both {
                    ($kind:ident) => {
                        impl $kind {
                            pub fn made(&self) {}
                        }
                    };
                }
            }";
        let items = syn::parse_file(items).expect("Rust").items;
        let (mut exported, mut lacking) = (BTreeSet::new(), Vec::new());
        export(&items, &mut exported);
        look(&items, &exported, &mut lacking);
        assert_eq!(lacking, ["Shown::bare", "Shown::DRAWN", "Bare", "kind::made"]);
    }
}
