//! Writes the file of pprof: a compressed `Profile` message, as `profile.proto` of that project defines it.

use crate::heap_profile::named::{NamedProfile, Stack};
use crate::symbols::frame::Frame;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};

/// The message; the numbers are those of the fields in `profile.proto`.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    /// Texts are given by their index here; the first is empty.
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

/// A name and its unit.
#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

/// A stack, innermost first, and its figures.
#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

/// A file.
#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

/// A place in a function.
#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

/// A function and a line of it.
#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

/// A function.
#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The message while it is put together: what was entered has an index or an identifier.
#[derive(Default)]
struct Builder {
    profile: Profile,
    strings: HashMap<String, i64>,
    mappings: HashMap<String, u64>,
    functions: HashMap<(String, String), u64>,
    locations: HashMap<Frame, u64>,
}

impl Builder {
    fn string(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let index = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn value_type(&mut self, name: &str, unit: &str) -> ValueType {
        ValueType { r#type: self.string(name), unit: self.string(unit) }
    }

    fn mapping(&mut self, path: &str) -> u64 {
        if let Some(&id) = self.mappings.get(path) {
            return id;
        }
        let id = self.profile.mapping.len() as u64 + 1;
        let filename = self.string(path);
        self.profile.mapping.push(Mapping { id, filename, has_functions: true });
        self.mappings.insert(path.to_owned(), id);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let key = (frame.function.clone(), frame.file.clone().unwrap_or_default());
        if let Some(&id) = self.functions.get(&key) {
            return id;
        }
        let id = self.profile.function.len() as u64 + 1;
        let (name, filename) = (self.string(&key.0), self.string(&key.1));
        self.profile.function.push(Function { id, name, filename });
        self.functions.insert(key, id);
        id
    }

    fn location(&mut self, frame: &Frame) -> u64 {
        if let Some(&id) = self.locations.get(frame) {
            return id;
        }
        let id = self.profile.location.len() as u64 + 1;
        let line = Line { function_id: self.function(frame), line: frame.line.into() };
        // Identifier 0 stands for none.
        let mapping_id = if frame.module.is_empty() { 0 } else { self.mapping(&frame.module) };
        self.profile.location.push(Location { id, mapping_id, line: vec![line] });
        self.locations.insert(frame.clone(), id);
        id
    }

    fn sample(&mut self, stack: &Stack, value: Vec<i64>) {
        let location_id = stack.iter().rev().map(|frame| self.location(frame)).collect();
        self.profile.sample.push(Sample { location_id, value });
    }
}

fn message(profile: &NamedProfile) -> Profile {
    let mut builder = Builder::default();
    builder.string("");
    let types =
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];
    builder.profile.sample_type = types.map(|(name, unit)| builder.value_type(name, unit)).to_vec();
    builder.profile.default_sample_type = builder.string("inuse_space");
    builder.profile.period_type = Some(builder.value_type("space", "bytes"));
    builder.profile.period = profile.interval as i64;
    // The first mapping is the program's own file.
    if let Some(outermost) = profile.sites.keys().find_map(|stack| stack.first()) {
        builder.mapping(&outermost.module);
    }
    for (stack, usage) in &profile.sites {
        let value = vec![usage.total.blocks, usage.total.bytes, usage.live.blocks, usage.live.bytes];
        builder.sample(stack, value);
    }
    builder.profile
}

/// Writes the profile, compressed.
///
/// # Errors
/// The writer fails.
pub(crate) fn write(profile: &NamedProfile, to: impl Write) -> io::Result<()> {
    let mut encoder = GzEncoder::new(to, Compression::default());
    encoder.write_all(&message(profile).encode_to_vec())?;
    encoder.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap_profile::named::tests::profile;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn what_is_written_is_read_back_with_the_innermost_function_first() {
        let mut file = Vec::new();
        write(&profile(&[("main;work", 10, 30), ("main", 1, 1)]), &mut file).unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
        let read = Profile::decode(&bytes[..]).unwrap();
        let text = |index: i64| read.string_table[index as usize].as_str();
        assert_eq!(text(0), "");
        assert_eq!(read.sample_type.iter().map(|kind| text(kind.r#type)).collect::<Vec<_>>()[3], "inuse_space");
        let sample = read.sample.iter().find(|sample| sample.location_id.len() == 2).unwrap();
        assert_eq!(sample.value, [1, 30, 1, 10]);
        let name = |id: u64| {
            let location = &read.location[id as usize - 1];
            text(read.function[location.line[0].function_id as usize - 1].name)
        };
        assert_eq!(sample.location_id.iter().map(|&id| name(id)).collect::<Vec<_>>(), ["work", "main"]);
        // `main` is entered once, though two stacks have it.
        assert_eq!((read.location.len(), read.mapping.len()), (2, 1));
    }
}
