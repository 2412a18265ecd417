//! Writing traces: without addresses, so that they can be shared.
//!
//! A stripped trace has numbers for addresses, numbers of threads in the order of their beginning, and of the command line only the name of the program. Sizes, times, threads and
//! order stay.

use crate::trace::recording::Recording;
use anyhow::{Context, Result};
use freestone_trace::chunk::{self, Header, UNIT_BYTES};
use freestone_trace::encoder::EVENT_BYTES_MAX;
use freestone_trace::{Encoder, Event, What, file};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Longest chunk that is written.
const CHUNK_BYTES: usize = 64 << 10;

/// The bytes of the trace: with numbers in place of addresses, and only the program's name of its command line.
fn encode(recording: &Recording) -> Vec<u8> {
    let name = Path::new(&recording.program).file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    // The new file is whole, so it has to say that events are missing.
    let is_cut = recording.is_cut || !recording.damage.is_empty();
    let end = recording.end | file::end::STRIPPED | if is_cut { file::end::CUT_OFF } else { 0 };
    let header = file::Header { pid: 0, began_ns: 0, end, command: name.as_bytes(), ..header(recording) };
    let mut numbers = HashMap::new();
    let streams = recording.streams.iter().map(|stream| {
        let mut stream = stream.clone();
        stream.iter_mut().for_each(|event| renumber(event, &mut numbers));
        stream
    });
    file_of(header, streams)
}

/// Writes the trace to a file, stripped.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(recording: &Recording, file: &Path) -> Result<()> {
    fs::write(file, encode(recording)).with_context(|| format!("{} cannot be written", file.display()))
}

/// What the trace's header says, but for the command and the length.
fn header(recording: &Recording) -> file::Header<'static> {
    file::Header {
        pid: recording.pid,
        began_ns: recording.began_ns,
        end: recording.end,
        peak_rss: recording.peak_rss,
        end_us: recording.end_us,
        len: 0,
        command: b"",
    }
}

/// Gives each address of `event` a number, in the order in which addresses appear. They stay multiples of 16, and 0 stays 0.
fn renumber(event: &mut Event, numbers: &mut HashMap<u64, u64>) {
    let mut number = |address: &mut u64| {
        if *address != 0 {
            let next = 16 * (numbers.len() as u64 + 1);
            *address = *numbers.entry(*address).or_insert(next);
        }
    };
    match &mut event.what {
        What::Begin | What::End => {}
        What::Allocate { block, .. } | What::Free { block } => number(block),
        What::Resize { from, block, .. } => {
            number(from);
            number(block);
        }
    }
}

/// The bytes of a file with these events.
fn file_of(header: file::Header<'_>, streams: impl Iterator<Item = Vec<Event>>) -> Vec<u8> {
    let mut bytes = vec![0; file::HEADER_BYTES];
    for (recorder, stream) in streams.enumerate() {
        encode_stream(recorder as u32, &stream, &mut bytes);
    }
    let header = file::Header { len: bytes.len() as u64, ..header };
    if let Some(first) = bytes.first_chunk_mut() {
        header.write(first);
    }
    bytes
}

fn encode_stream(recorder: u32, mut events: &[Event], bytes: &mut Vec<u8>) {
    let mut place = 0;
    while let Some(&first) = events.first() {
        let sequence = first.ticket.map_or(first.sequence, |ticket| ticket.min(first.sequence));
        let encoder = Encoder::new(sequence, first.time_us);
        let mut words = Vec::new();
        let mut taken = 0;
        for event in events {
            if words.len() + EVENT_BYTES_MAX > CHUNK_BYTES - chunk::HEADER_BYTES {
                break;
            }
            encoder.event(event, |word| words.extend_from_slice(&word.bits.to_le_bytes()[..word.len]));
            taken += 1;
        }
        let len = (chunk::HEADER_BYTES + words.len()).next_multiple_of(UNIT_BYTES);
        let header =
            Header { len: len as u32, recorder, thread: first.thread, place, time_us: first.time_us, sequence };
        let start = bytes.len();
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(&words);
        bytes.resize(start + len, 0);
        chunk::seal(&mut bytes[start..], chunk::HEADER_BYTES + words.len());
        events = &events[taken..];
        place += 1;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::trace::recording::tests::small;
    use crate::trace::timeline::Timeline;

    /// The bytes of the trace as it is.
    pub(crate) fn encode_whole(recording: &Recording) -> Vec<u8> {
        let arguments = recording.command.strip_prefix(&recording.program).unwrap_or_default();
        let command = recording.program.clone() + &arguments.replace(' ', "\0");
        let header = file::Header { command: command.as_bytes(), ..header(recording) };
        file_of(header, recording.streams.iter().cloned())
    }

    #[test]
    fn a_stripped_trace_has_no_addresses_and_no_arguments_and_the_same_steps() {
        let read = Recording::read(&encode(&small())).unwrap();
        assert_eq!(read.command, "program");
        assert_eq!(Timeline::of(&read).steps, Timeline::of(&small()).steps);
        let mut numbers: Vec<u64> = Vec::new();
        for event in read.streams.iter().flatten() {
            if let What::Allocate { block, .. } = event.what {
                numbers.push(block);
            }
        }
        assert_eq!(numbers, [16, 32]);
    }

    #[test]
    fn a_stripped_trace_of_which_events_are_missing_says_so() {
        let doubts =
            |is_cut, damage| Recording::read(&encode(&Recording { is_cut, damage, ..small() })).unwrap().doubts();
        assert_eq!(doubts(false, Vec::new()), Vec::<String>::new());
        for doubts in [doubts(true, Vec::new()), doubts(false, vec![freestone_trace::Damage::Word])] {
            assert!(doubts.len() == 1 && doubts[0].contains("before it was stripped"), "{doubts:?}");
        }
    }

    #[test]
    fn of_a_program_with_spaces_in_its_path_the_name_is_left() {
        let program = "/home/secret/My Projects/my program".to_owned();
        let whole = Recording { command: format!("{program} --secret"), program, ..small() };
        let read = Recording::read(&encode_whole(&whole)).unwrap();
        assert_eq!((&read.program, &read.command), (&whole.program, &whole.command));
        let read = Recording::read(&encode(&whole)).unwrap();
        assert_eq!((read.program.as_str(), read.command.as_str()), ("my program", "my program"));
    }

    #[test]
    fn a_stream_longer_than_a_chunk_reads_back() {
        let mut long = small();
        let events = long.streams[0].clone();
        long.streams[0] = events.iter().copied().cycle().take(90_000).collect();
        for (at, event) in long.streams[0].iter_mut().enumerate() {
            event.time_us = at as u64;
        }
        let read = Recording::read(&encode_whole(&long)).unwrap();
        assert_eq!(read.streams, long.streams);
    }
}
