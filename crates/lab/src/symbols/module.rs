//! One ELF file: from offsets or addresses in it to functions and lines.

use crate::symbols::demangled::demangled;
use crate::symbols::frame::Frame;
use addr2line::Loader;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::fs;
use std::path::{Path, PathBuf};

/// Where distributions put the debugging information of programs that were stripped.
const DEBUG_FOLDER: &str = "/usr/lib/debug/.build-id";

/// A program or a library.
pub(crate) struct Module {
    segments: Vec<Segment>,
    /// The file itself, or the one with its debugging information.
    loader: Option<Loader>,
    /// The exported functions, by address: what a stripped file still has.
    exported: Vec<Function>,
}

/// A loaded part of the file.
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

/// A function of the dynamic symbol table.
struct Function {
    address: u64,
    bytes: u64,
    name: String,
}

impl Module {
    /// Reads a file; `None` if it is gone, or no ELF file. A profile may name any path: a pipe, of which reading would not end, is not opened.
    pub(crate) fn load(path: &str) -> Option<Self> {
        fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let data = fs::read(path).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let segment = |segment: object::Segment<'_, '_>| {
            let (offset, bytes) = segment.file_range();
            Segment { offset, bytes, address: segment.address() }
        };
        let segments = file.segments().map(segment).collect();
        let is_function = |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text && symbol.is_definition();
        let function = |symbol: object::Symbol<'_, '_>| {
            let name = symbol.name().ok()?.to_owned();
            Some(Function { address: symbol.address(), bytes: symbol.size(), name })
        };
        let mut exported: Vec<Function> = file.dynamic_symbols().filter(is_function).filter_map(function).collect();
        exported.sort_by_key(|function| function.address);
        let debug_file = file.build_id().ok().flatten().and_then(debug_file);
        let loader = debug_file.and_then(|file| Loader::new(file).ok()).or_else(|| Loader::new(path).ok());
        Some(Self { segments, loader, exported })
    }

    /// Whether any function of it has a name.
    pub(super) fn has_symbols(&self) -> bool {
        !self.exported.is_empty()
            || self.loader.as_ref().is_some_and(|loader| loader.get_section_range(b".symtab").is_some())
    }

    /// The functions at an offset in the file, innermost first; empty if none is known.
    pub(super) fn frames(&self, offset: u64) -> Vec<Frame> {
        let inside = |segment: &&Segment| (segment.offset..segment.offset + segment.bytes).contains(&offset);
        let Some(segment) = self.segments.iter().find(inside) else { return Vec::new() };
        self.at(offset - segment.offset + segment.address)
    }

    /// The functions at an address of the file, innermost first; empty if none is known.
    pub(crate) fn at(&self, address: u64) -> Vec<Frame> {
        let symbol = self.symbol(address);
        let mut frames = self.inlined(address);
        // The outermost function is the symbol's, which has the whole name.
        match (frames.last_mut(), symbol) {
            (Some(last), Some(symbol)) if last.function.is_empty() || symbol.contains(&last.function) => {
                last.function = symbol;
            }
            (None, Some(function)) => frames.push(Frame { function, ..Frame::default() }),
            _ => {}
        }
        frames.retain(|frame| !frame.function.is_empty());
        frames
    }

    /// What the debugging information says of an address.
    fn inlined(&self, address: u64) -> Vec<Frame> {
        let found = self.loader.as_ref().and_then(|loader| loader.find_frames(address).ok());
        let Some(mut found) = found else { return Vec::new() };
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let location = frame.location.as_ref();
            frames.push(Frame {
                function: name.map(|name| demangled(&name)).unwrap_or_default(),
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line).unwrap_or(0),
                module: String::new(),
            });
        }
        frames
    }

    /// The symbol that an address lies in.
    fn symbol(&self, address: u64) -> Option<String> {
        let named = self.loader.as_ref().and_then(|loader| loader.find_symbol(address));
        if let Some(name) = named {
            return Some(demangled(name));
        }
        let after = self.exported.partition_point(|function| function.address <= address);
        let function = self.exported[..after].last()?;
        (address < function.address + function.bytes).then(|| demangled(&function.name))
    }
}

/// The file that has the debugging information for a build, if it is installed.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = Path::new(DEBUG_FOLDER).join(format!("{first:02x}")).join(format!("{rest}.debug"));
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::Module;
    use crate::scratch_file::ScratchFile;
    use std::process::Command;

    #[test]
    fn a_pipe_is_no_module_and_is_not_waited_for() {
        let pipe = ScratchFile::new("module-test").unwrap();
        assert!(Command::new("mkfifo").arg(pipe.path()).status().unwrap().success());
        assert!(Module::load(pipe.path().to_str().unwrap()).is_none());
        assert!(Module::load("/proc/self/exe").is_some());
    }
}
