//! Atomic read-modify-writes and acquisitions of locks, counted by callgrind: it says how often each instruction was executed, `objdump` which
//! instructions are atomic, and the debugging information which of them take a lock, and whose.

use crate::symbols::frame::Frame;
use crate::symbols::module::Module;
use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What callgrind calls an object that it does not know. Code that is not in the section `.text` is in none, as it sees it, and its addresses are
/// those in the process.
const UNKNOWN: &str = "???";

/// The source file of Freestone's lock.
const LOCK_SOURCE: &str = "base/src/lock.rs";

/// Freestone's locks, by the folder or file of the code that takes them.
const LOCKS: [(&str, &str); 5] = [
    ("freestone/src/page/", "page heap"),
    ("freestone/src/central", "central lists"),
    ("freestone/src/thread/gated", "gates"),
    ("freestone/src/thread/", "registry of heaps"),
    ("freestone/src/", "others"),
];

/// What a process executed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Executed {
    /// Atomic read-modify-writes of the allocator and of the C library.
    pub(super) atomics: u64,
    /// How often each lock of the allocator was taken, by its name; empty for libraries that do not say.
    pub(super) locks: BTreeMap<&'static str, u64>,
}

/// The atomic instructions of object files, each read once.
#[derive(Default)]
pub(super) struct AtomicInstructions(BTreeMap<String, Listing>);

/// The atomic instructions of one file, by address: the lock that one takes, if it takes one.
type Listing = BTreeMap<u64, Option<&'static str>>;

impl AtomicInstructions {
    /// What of `profile` was atomic: in `library`, which has the allocator, and in the C library.
    ///
    /// # Errors
    /// A file cannot be read, or where the library was in the process cannot be told.
    pub(super) fn executed(&mut self, profile: &str, library: Option<&Path>) -> Result<Executed> {
        let path = library.map(|path| path.display().to_string());
        let base = library.map(|library| base_of(profile, library)).transpose()?.flatten();
        let mut executed = Executed::default();
        for instruction in instructions(profile) {
            let (object, address) = match (instruction.object, base, path.as_deref()) {
                (UNKNOWN, Some(base), Some(path)) => (path, instruction.address.wrapping_sub(base)),
                (object, ..) => (object, instruction.address),
            };
            if path.as_deref() != Some(object) && !object.contains("/libc.so") {
                continue;
            }
            if let Some(lock) = self.of(object)?.get(&address) {
                executed.atomics += instruction.count;
                if let Some(lock) = lock {
                    *executed.locks.entry(lock).or_default() += instruction.count;
                }
            }
        }
        Ok(executed)
    }

    fn of(&mut self, object: &str) -> Result<&Listing> {
        if !self.0.contains_key(object) {
            let listing = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(Path::new(object)).output();
            let listing = listing.context("objdump could not be started")?.stdout;
            let module = Module::load(object);
            let lock_at = |address| module.as_ref().and_then(|module| lock_of(&module.at(address)));
            let text = String::from_utf8_lossy(&listing);
            let found = text.lines().filter_map(atomic_address).map(|address| (address, lock_at(address))).collect();
            self.0.insert(object.to_owned(), found);
        }
        Ok(&self.0[object])
    }
}

/// Where `library` was in the process, from what callgrind has no object for: the distance between `malloc` there and in the file. `None` if it
/// has an object for all of the library.
fn base_of(profile: &str, library: &Path) -> Result<Option<u64>> {
    let entry = instructions(profile)
        .filter(|one| one.object == UNKNOWN && one.function == "malloc")
        .map(|one| one.address)
        .min();
    let Some(entry) = entry else { return Ok(None) };
    let data = fs::read(library).with_context(|| library.display().to_string())?;
    let file = object::File::parse(&*data)?;
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("malloc")).context("it exports no malloc")?;
    let base = entry.wrapping_sub(symbol.address());
    ensure!(base.is_multiple_of(4096), "where {} was in the process cannot be told", library.display());
    Ok(Some(base))
}

/// The lock that the code with these frames, innermost first, takes; `None` if it takes none.
fn lock_of(frames: &[Frame]) -> Option<&'static str> {
    let file_of = |frame: &Frame| frame.file.clone().unwrap_or_default();
    let inside = frames.iter().position(|frame| file_of(frame).ends_with(LOCK_SOURCE))?;
    // An inlined function is called `lock<Value, Parking, RANK>`, others `Lock<T,P,RANK>::lock`.
    let function = &frames[inside].function;
    let takes = |name: &&str| {
        function == name || function.starts_with(&format!("{name}<")) || function.ends_with(&format!("::{name}"))
    };
    ["lock", "try_lock", "acquire_raw"].iter().find(|name| takes(name))?;
    let caller = file_of(frames[inside..].iter().find(|frame| !file_of(frame).ends_with(LOCK_SOURCE))?);
    LOCKS.iter().find(|(part, _)| caller.contains(part)).map(|&(_, lock)| lock)
}

/// An instruction in a profile of callgrind.
#[derive(Debug, PartialEq, Eq)]
struct Instruction<'a> {
    object: &'a str,
    function: &'a str,
    address: u64,
    count: u64,
}

/// The instructions of a profile of callgrind, without what called functions took.
fn instructions(profile: &str) -> impl Iterator<Item = Instruction<'_>> {
    let (mut object, mut function, mut is_call) = ("", "", false);
    profile.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        }
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        }
        // The line behind `calls=` has what the called function took.
        let skipped = std::mem::replace(&mut is_call, line.starts_with("calls="));
        let (address, costs) = line.strip_prefix("0x").filter(|_| !skipped)?.split_once(' ')?;
        let count = costs.split(' ').next()?.parse().ok()?;
        Some(Instruction { object, function, address: u64::from_str_radix(address, 16).ok()?, count })
    })
}

/// The address of a line of `objdump`, if its instruction is an atomic read-modify-write: one with the prefix `lock`, or an exchange with memory.
fn atomic_address(line: &str) -> Option<u64> {
    let (address, instruction) = line.split_once(":\t")?;
    let is_atomic = instruction.starts_with("lock ") || (instruction.starts_with("xchg") && instruction.contains('('));
    is_atomic.then(|| u64::from_str_radix(address.trim(), 16).ok())?
}

#[cfg(test)]
mod tests;
