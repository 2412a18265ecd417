//! A trace that was read.

use crate::printing::in_one_line;
use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;
use freestone_trace::chunk::Chunk;
use freestone_trace::{Damage, Event, What, file};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

/// What a file that is compressed begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Longest trace that is unpacked. Its events take some twenty times as much memory, and a small file can unpack to any length.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

/// A trace.
pub(crate) struct Recording {
    /// The command line, its arguments separated by spaces. Control characters are escaped.
    pub(crate) command: String,
    /// The first argument: the program, with its folders if the command had them. What `command` begins with.
    pub(crate) program: String,
    /// Number of the process.
    pub(crate) pid: u32,
    /// Start of the recording, in nanoseconds since 1970.
    pub(crate) began_ns: u64,
    /// How the recording ended: bits of [`file::end`].
    pub(crate) end: u64,
    /// Peak resident memory of the process in bytes; 0 if not known.
    pub(crate) peak_rss: u64,
    /// Time of the end in microseconds; 0 if not known.
    pub(crate) end_us: u64,
    /// The events of each recorder, in their order.
    pub(crate) streams: Vec<Vec<Event>>,
    /// Bytes of words and of chunks' headers.
    pub(crate) used_bytes: u64,
    /// What could not be read.
    pub(crate) damage: Vec<Damage>,
    /// Whether the file ends inside a chunk, or is shorter than it was when the process ended.
    pub(crate) is_cut: bool,
}

impl Recording {
    /// Reads the trace in the file at `path`, which may be compressed with gzip.
    ///
    /// # Errors
    /// It cannot be read, or is no trace of this version.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("the trace {} cannot be read", path.display()))?;
        Self::read(&bytes).with_context(|| format!("the trace {} cannot be read", path.display()))
    }

    /// Reads a trace, which may be compressed with gzip.
    ///
    /// # Errors
    /// It is no trace of this version.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        if !bytes.starts_with(&GZIP) {
            return Self::decode(bytes);
        }
        Self::decode(&unpack(bytes, UNPACKED_BYTES_MAX)?)
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let header = file::Header::read(bytes)?;
        let mut chunks = Vec::new();
        let mut damage = Vec::new();
        for chunk in file::chunks(bytes) {
            match chunk {
                Ok(chunk) => chunks.push(chunk),
                Err(reason) => damage.push(reason),
            }
        }
        // A recorder's chunks are not always in the order of the file. A process that was killed may have left one twice, and one of the two in part.
        let place = |chunk: &Chunk| (chunk.header.recorder, chunk.header.place);
        chunks.sort_by_key(|chunk| (place(chunk), chunk.is_cut, !chunk.is_sealed));
        chunks.dedup_by_key(|chunk| place(chunk));
        damage.retain(|damage| {
            let Damage::Checksum { recorder, place: at } = *damage else { return true };
            chunks.binary_search_by_key(&(recorder, at), place).is_err()
        });
        let is_cut = chunks.iter().any(|chunk| chunk.is_cut) || (bytes.len() as u64) < header.len;
        let mut streams: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
        let mut used_bytes = file::HEADER_BYTES as u64;
        for chunk in &chunks {
            let stream = streams.entry(chunk.header.recorder).or_default();
            used_bytes += chunk.used_bytes() as u64;
            for event in chunk.events() {
                match event {
                    Ok(event) if is_possible(&event) => stream.push(event),
                    Ok(_) => damage.push(Damage::Word),
                    // The cut goes through a word.
                    Err(_) if chunk.is_cut => {}
                    Err(reason) => damage.push(reason),
                }
            }
        }
        let arguments = header.command.split(|&byte| byte == 0).map(String::from_utf8_lossy);
        let arguments: Vec<_> = arguments.map(|argument| in_one_line(&argument).into_owned()).collect();
        Ok(Self {
            command: arguments.join(" "),
            program: arguments.into_iter().next().unwrap_or_default(),
            pid: header.pid,
            began_ns: header.began_ns,
            end: header.end,
            peak_rss: header.peak_rss,
            end_us: header.end_us,
            streams: streams.into_values().collect(),
            used_bytes,
            damage,
            is_cut,
        })
    }

    /// Number of events.
    pub(crate) fn n_events(&self) -> u64 {
        self.streams.iter().map(|stream| stream.len() as u64).sum()
    }

    /// Number of calls: events but for the beginnings and ends of threads.
    pub(crate) fn n_calls(&self) -> u64 {
        let is_call = |event: &&Event| !matches!(event.what, What::Begin | What::End);
        self.streams.iter().flatten().filter(is_call).count() as u64
    }

    /// Whether the process is the child of a fork: its first recorder goes on with a thread that had begun before.
    pub(crate) fn is_forked(&self) -> bool {
        let first = self.streams.first().and_then(|events| events.first());
        self.damage.is_empty() && first.is_some_and(|event| event.what != What::Begin)
    }

    /// Bytes of the file for each call, in words behind `before`; nothing of a file without calls.
    pub(crate) fn bytes_a_call(&self, before: &str) -> String {
        match self.n_calls() {
            0 => String::new(),
            calls => format!("{before}{:.1} bytes a call", self.used_bytes as f64 / calls as f64),
        }
    }

    /// What is missing, in a sentence for each reason.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.end & file::end::CUT_OFF != 0 {
            let or_later =
                if self.end & file::end::STRIPPED == 0 { "" } else { ", or was cut or damaged before it was stripped" };
            doubts
                .push(format!("the file could not grow any more while the program ran{or_later}: events are missing"));
        } else if self.end & file::end::EXITED == 0 {
            doubts.push("the program ended through _exit or by a signal, replaced itself by another, or is still running: the trace goes on to its last calls".to_owned());
        }
        if self.is_cut {
            doubts.push("the file is cut short: later events are missing".to_owned());
        }
        if let Some(first) = self.damage.first() {
            let n = self.damage.len();
            doubts.push(format!("{n} parts of the file are damaged ({first}): their events are missing"));
        }
        doubts
    }
}

/// What is in a compressed file, of one part or several, up to where it is damaged: the trace is cut short there.
fn unpack(bytes: &[u8], most: u64) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    let unpacked = MultiGzDecoder::new(bytes).take(most + 1).read_to_end(&mut plain);
    if plain.is_empty() {
        unpacked.context("the compressed file is damaged")?;
        bail!("the compressed file is empty");
    }
    if plain.len() as u64 > most {
        bail!("it unpacks to more than 1 GiB; unpack it with gunzip first");
    }
    Ok(plain)
}

/// No block of a program is longer: addresses have 57 bits at most.
const BYTES_MAX: u64 = 1 << 57;

/// Whether a program can have done this: a block that it got has room in its memory.
fn is_possible(event: &Event) -> bool {
    match event.what {
        What::Allocate { size, block, .. } | What::Resize { size, block, .. } => block == 0 || size <= BYTES_MAX,
        What::Begin | What::Free { .. } | What::End => true,
    }
}

#[cfg(test)]
pub(crate) mod tests;
