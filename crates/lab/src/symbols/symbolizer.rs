//! Names the addresses of one process.

use crate::symbols::frame::Frame;
use crate::symbols::mapping::Mapping;
use crate::symbols::module::Module;
use std::collections::HashMap;
use std::rc::Rc;

/// Names the addresses of one process.
#[derive(Default)]
pub(crate) struct Symbolizer {
    mappings: Vec<Mapping>,
    /// By path; `None` for files that cannot be read.
    modules: HashMap<String, Option<Module>>,
    named: HashMap<u64, Rc<[Frame]>>,
}

impl Symbolizer {
    /// For a process with these mappings.
    pub(crate) fn new(mut mappings: Vec<Mapping>) -> Self {
        mappings.sort_by_key(|mapping| mapping.start);
        Self { mappings, ..Self::default() }
    }

    /// The mapping that an address lies in.
    pub(crate) fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        self.mappings[..after].last().filter(|mapping| address < mapping.end)
    }

    /// The functions that the call before a return address is in, innermost first; one at least.
    pub(crate) fn frames(&mut self, return_address: u64) -> Rc<[Frame]> {
        if let Some(frames) = self.named.get(&return_address) {
            return Rc::clone(frames);
        }
        let frames: Rc<[Frame]> = self.find(return_address.saturating_sub(1)).into();
        self.named.insert(return_address, Rc::clone(&frames));
        frames
    }

    fn find(&mut self, address: u64) -> Vec<Frame> {
        let unnamed = |function, module| vec![Frame { function, module, ..Frame::default() }];
        let Some(mapping) = self.mapping(address).cloned() else {
            return unnamed(format!("0x{address:x}"), String::new());
        };
        let offset = mapping.file_offset(address);
        let file = mapping.path.clone();
        if !mapping.is_file() {
            let what = if file.is_empty() { "anonymous memory" } else { &file };
            return unnamed(format!("{what}+0x{:x}", address - mapping.start), file);
        }
        let module = self.modules.entry(file.clone()).or_insert_with(|| Module::load(&file));
        let named = module.as_ref().map(|module| module.frames(offset)).unwrap_or_default();
        if named.is_empty() {
            return unnamed(format!("{}+0x{offset:x}", mapping.file_name()), file);
        }
        named.into_iter().map(|frame| Frame { module: file.clone(), ..frame }).collect()
    }

    /// The modules of named addresses that have no symbols, or that cannot be read: file names, sorted.
    pub(crate) fn unnamed_modules(&self) -> Vec<String> {
        let lacks = |module: &Option<Module>| module.as_ref().is_none_or(|module| !module.has_symbols());
        let mut names: Vec<String> =
            self.modules.iter().filter(|(_, module)| lacks(module)).map(|(path, _)| path.clone()).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests;
