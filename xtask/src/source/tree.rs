//! A crate as a tree of modules, followed from `lib.rs` (or `main.rs`) through its `mod x;` lines.
//!
//! Test code, that is everything under `#[cfg(test)]`, is left out: it may name anything.

use super::attributes::{is_for_tests, is_test_item};
use super::imports::{Import, imports_of};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use syn::{Item, ItemMod};

/// A parsed file.
pub(crate) struct SourceFile {
    /// From the crate's `src`, with `/` between folders.
    pub path: String,
    pub text: String,
    pub syntax: syn::File,
}

/// A module, in a file of its own or inline in another module's.
pub(crate) struct Module {
    /// The index of its file.
    pub file: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    pub imports: Vec<Import>,
    /// Names of the items that it defines itself, modules left out.
    pub items: Vec<String>,
}

/// A crate: its files and its modules. Module 0 is the root.
pub(crate) struct Crate {
    pub files: Vec<SourceFile>,
    pub modules: Vec<Module>,
}

impl Crate {
    /// Reads the crate whose sources are in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let top = ["lib.rs", "main.rs"].into_iter().find(|name| folder.join(name).is_file());
        let top = top.with_context(|| format!("{} has neither lib.rs nor main.rs", folder.display()))?;
        let mut krate = Self { files: Vec::new(), modules: Vec::new() };
        krate.add_file(folder, top, "", None)?;
        Ok(krate)
    }

    /// Adds the file at `path` as a module; `inside` is the folder of its submodules.
    fn add_file(&mut self, folder: &Path, path: &str, inside: &str, parent: Option<usize>) -> Result<usize> {
        let full = folder.join(path);
        let text = fs::read_to_string(&full).with_context(|| format!("cannot read {}", full.display()))?;
        let syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {}", full.display()))?;
        let items = syntax.items.clone();
        self.files.push(SourceFile { path: path.to_owned(), text, syntax });
        self.add_module(folder, &items, self.files.len() - 1, inside, parent)
    }

    fn add_module(
        &mut self,
        folder: &Path,
        items: &[Item],
        file: usize,
        inside: &str,
        parent: Option<usize>,
    ) -> Result<usize> {
        let index = self.modules.len();
        let names = items.iter().filter(|item| !is_test_item(item)).filter_map(name_of).collect();
        let imports = imports_of(items);
        self.modules.push(Module { file, parent, children: BTreeMap::new(), imports, items: names });
        for item in items {
            let Item::Mod(child) = item else { continue };
            if is_for_tests(&child.attrs) {
                continue;
            }
            let name = child.ident.to_string();
            let deeper = format!("{inside}{name}/");
            let made = match &child.content {
                Some((_, items)) => self.add_module(folder, items, file, &deeper, Some(index))?,
                None => {
                    let path = file_of_module(folder, inside, child);
                    self.add_file(folder, &path, &deeper, Some(index))?
                }
            };
            self.modules[index].children.insert(name, made);
        }
        Ok(index)
    }

    /// The module that a file is: of several in one file, the outermost comes first.
    pub(crate) fn module_of(&self, file: usize) -> Option<usize> {
        self.modules.iter().position(|module| module.file == file)
    }

    /// Whether `module` is `ancestor` or inside it.
    pub(crate) fn is_within(&self, module: usize, ancestor: usize) -> bool {
        std::iter::successors(Some(module), |&at| self.modules[at].parent).any(|at| at == ancestor)
    }
}

/// `x.rs`, or `mod.rs` in the folder `x` if there is no `x.rs`.
fn file_of_module(folder: &Path, inside: &str, module: &ItemMod) -> String {
    let plain = format!("{inside}{}.rs", module.ident);
    if folder.join(&plain).is_file() { plain } else { format!("{inside}{}/mod.rs", module.ident) }
}

/// The name that an item defines, if it is no module.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
