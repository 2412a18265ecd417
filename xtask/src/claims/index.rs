//! The names in the workspace that a document may use: files, words of code, members of types, functions.

use super::prose::without_comment;
use crate::process::{command, output, root};
use crate::source::{folder_of, workspace};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use syn::visit::{self, Visit};

/// A function: where it is, and the names in its body.
pub(super) struct Function {
    /// From the workspace's folder.
    pub file: String,
    /// `Type::name`, or just the name.
    pub name: String,
    pub body: BTreeSet<String>,
}

/// See the module header.
#[derive(Default)]
pub(super) struct Index {
    /// Every file under version control or about to be, from the workspace's folder.
    pub files: Vec<String>,
    /// Every identifier and every word of a string outside comments.
    pub words: BTreeSet<String>,
    /// What stands behind `Name::`, by the name of the type, trait or module.
    pub members: BTreeMap<String, BTreeSet<String>>,
    pub functions: Vec<Function>,
}

impl Index {
    /// Reads the workspace.
    pub(super) fn read() -> Result<Self> {
        let listed = output(&mut command("git", &["ls-files", "--cached", "--others", "--exclude-standard"]))?;
        let files = listed.lines().filter(|file| root().join(file).is_file()).map(str::to_owned).collect();
        let mut index = Self { files, ..Self::default() };
        for file in &index.files {
            index.words.extend(words_of(&file.replace(['/', '.', '-'], " ")));
            let is_code = !file.ends_with(".md") && !file.ends_with(".ops") && !file.ends_with(".offsets");
            if let Some(text) = is_code.then(|| fs::read_to_string(root().join(file)).ok()).flatten() {
                text.lines().for_each(|line| index.words.extend(words_of(without_comment(file, line))));
            }
        }
        let mut left: BTreeSet<String> = index.files.iter().filter(|file| file.ends_with(".rs")).cloned().collect();
        for (name, krate) in workspace()?.iter() {
            for file in &krate.files {
                let shown = folder_of(name).join("src").join(&file.path).to_string_lossy().into_owned();
                left.remove(&shown);
                index.add_file(&shown, &file.syntax);
            }
        }
        // Tests, benchmarks, examples, and crates of other workspaces.
        for file in left {
            let text = fs::read_to_string(root().join(&file))?;
            let syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {file}"))?;
            index.add_file(&file, &syntax);
        }
        Ok(index)
    }

    /// Adds the members and functions of a file.
    pub(super) fn add_file(&mut self, shown: &str, file: &syn::File) {
        let module = shown.trim_end_matches(".rs").rsplit('/').next().unwrap_or_default();
        let mut reader = Reader { index: self, file: shown, inside: module.to_owned(), is_type: false };
        file.items.iter().for_each(|item| reader.visit_item(item));
    }
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).map(str::to_owned)
}

struct Reader<'a> {
    index: &'a mut Index,
    file: &'a str,
    /// The module, type or trait whose members are read.
    inside: String,
    is_type: bool,
}

impl Reader<'_> {
    fn member(&mut self, of: &str, name: &syn::Ident) {
        self.index.members.entry(of.to_owned()).or_default().insert(name.to_string());
    }

    fn within(&mut self, name: String, is_type: bool, read: impl FnOnce(&mut Self)) {
        let outer = (std::mem::replace(&mut self.inside, name), self.is_type);
        self.is_type = is_type;
        read(self);
        (self.inside, self.is_type) = outer;
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let inside = self.inside.clone();
        self.member(&inside, &signature.ident);
        let name = if self.is_type { format!("{inside}::{}", signature.ident) } else { signature.ident.to_string() };
        let mut body = Body(BTreeSet::new());
        body.visit_block(block);
        self.index.functions.push(Function { file: self.file.to_owned(), name, body: body.0 });
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let inside = self.inside.clone();
        match item {
            syn::Item::Const(item) => self.member(&inside, &item.ident),
            syn::Item::Static(item) => self.member(&inside, &item.ident),
            syn::Item::Type(item) => self.member(&inside, &item.ident),
            syn::Item::Struct(item) => {
                self.member(&inside, &item.ident);
                // The type is known though it has no fields.
                self.index.members.entry(item.ident.to_string()).or_default();
                item.fields.iter().filter_map(|field| field.ident.as_ref()).for_each(|field| {
                    self.member(&item.ident.to_string(), field);
                });
            }
            syn::Item::Enum(item) => {
                self.member(&inside, &item.ident);
                item.variants.iter().for_each(|variant| self.member(&item.ident.to_string(), &variant.ident));
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let inside = self.inside.clone();
        self.member(&inside, &item.ident);
        self.within(item.ident.to_string(), false, |reader| visit::visit_item_mod(reader, item));
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut imports = Vec::new();
        crate::source::collect_imports(&item.tree, &mut imports);
        let members = self.index.members.entry(self.inside.clone()).or_default();
        members.extend(imports.into_iter().filter_map(|import| import.name));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let inside = self.inside.clone();
        self.member(&inside, &item.ident);
        self.within(item.ident.to_string(), true, |reader| visit::visit_item_trait(reader, item));
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        let inside = self.inside.clone();
        match item {
            syn::TraitItem::Fn(item) => self.member(&inside, &item.sig.ident),
            syn::TraitItem::Const(item) => self.member(&inside, &item.ident),
            syn::TraitItem::Type(item) => self.member(&inside, &item.ident),
            _ => {}
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let syn::Type::Path(path) = &*item.self_ty
            && let Some(last) = path.path.segments.last()
            // A trait for `u32` does not say all that `u32` has.
            && last.ident.to_string().starts_with(char::is_uppercase)
        {
            self.within(last.ident.to_string(), true, |reader| visit::visit_item_impl(reader, item));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        let inside = self.inside.clone();
        self.member(&inside, &item.ident);
    }
}

/// The names in a function's body, those in macros included.
struct Body(BTreeSet<String>);

impl Body {
    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(name) => drop(self.0.insert(name.to_string())),
                proc_macro2::TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Body {
    fn visit_ident(&mut self, name: &'ast syn::Ident) {
        self.0.insert(name.to_string());
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.tokens(mac.tokens.clone());
    }
}
