//! Which file of a crate names which: an arrow from the file that uses an item to the file that defines it.
//!
//! `mod x;` and `pub use x::Name` in a parent are no arrows: they say where things are. Naming a module is none either; naming something
//! in it is.

use super::attributes::{is_for_tests, is_test_item};
use super::imports::collect_imports;
use super::names::{Named, look_up_in_globs, resolve};
use super::tree::Crate;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::visit::{self, Visit};

/// The arrows of a crate, by the files' indices, each with the first line that makes it.
pub(crate) type Arrows = BTreeMap<(usize, usize), usize>;

/// Every arrow between two files of the crate.
pub(crate) fn arrows(krate: &Crate) -> Arrows {
    let mut arrows = Arrows::new();
    for (file, source) in krate.files.iter().enumerate() {
        let Some(module) = krate.module_of(file) else { continue };
        let mut finder = Finder { krate, module, arrows: &mut arrows };
        finder.imports(module);
        source.syntax.items.iter().for_each(|item| finder.visit_item(item));
    }
    arrows
}

/// Walks over a file's syntax; `module` is the one whose code it is in.
struct Finder<'a> {
    krate: &'a Crate,
    module: usize,
    arrows: &'a mut Arrows,
}

impl Finder<'_> {
    fn imports(&mut self, module: usize) {
        let krate = self.krate;
        for import in &krate.modules[module].imports {
            let found = resolve(krate, module, &import.path);
            // What a parent passes on of its own modules.
            let passes_on = |to| import.is_public && krate.is_within(to, module);
            if let Some(Named::Item(to)) = found
                && !passes_on(to)
            {
                self.arrow(to, import.line);
            }
        }
    }

    fn arrow(&mut self, to: usize, line: usize) {
        let files = (self.krate.modules[self.module].file, self.krate.modules[to].file);
        if files.0 != files.1 {
            let first = self.arrows.entry(files).or_insert(line);
            *first = line.min(*first);
        }
    }

    fn path(&mut self, path: &[String], line: usize) {
        let found = match path {
            // An imported name counts where it is imported, unless that only passes it on; a glob counts nowhere else.
            [name] => {
                let here = &self.krate.modules[self.module];
                let mut imports = here.imports.iter().filter(|import| import.name.as_ref() == Some(name));
                match imports.find(|import| import.is_public) {
                    Some(import) => resolve(self.krate, self.module, &import.path),
                    None if here.items.contains(name) => None,
                    None => look_up_in_globs(self.krate, self.module, name, 8),
                }
            }
            path => resolve(self.krate, self.module, path),
        };
        if let Some(Named::Item(to)) = found {
            self.arrow(to, line);
        }
    }

    /// Finds paths among a macro's tokens, which are not parsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut line) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end_path(&mut path, line);
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.end_path(&mut path, line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end_path(&mut path, line);
    }

    fn end_path(&mut self, path: &mut Vec<String>, line: usize) {
        if !path.is_empty() {
            self.path(path, line);
            path.clear();
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_item(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let child = self.krate.modules[self.module].children.get(&item.ident.to_string()).copied();
        if let (Some(child), Some((_, items))) = (child, &item.content) {
            let outer = std::mem::replace(&mut self.module, child);
            self.imports(child);
            items.iter().for_each(|item| self.visit_item(item));
            self.module = outer;
        }
    }

    /// A `use` inside a function; those of modules are in [`Finder::imports`] already, and count once.
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut imports = Vec::new();
        collect_imports(&item.tree, &mut imports);
        let is_of_module = |line| self.krate.modules[self.module].imports.iter().any(|import| import.line == line);
        imports.retain(|import| !is_of_module(import.line));
        imports.iter().for_each(|import| self.path(&import.path, import.line));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Fn(item) => &item.attrs[..],
            syn::ImplItem::Const(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_expr_block(&mut self, block: &'ast syn::ExprBlock) {
        if !is_for_tests(&block.attrs) {
            visit::visit_expr_block(self, block);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.path(&names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.tokens(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }
}
