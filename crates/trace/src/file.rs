//! A file: a header of 4 KiB, then chunks. All numbers are little-endian.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | version of the format |
//! | 12 | 4 | number of the process |
//! | 16 | 8 | start of the recording, in nanoseconds since 1970 |
//! | 24 | 8 | how it ended: bits of [`end`] |
//! | 32 | 8 | peak resident memory of the process in bytes, when it ended; 0 if not known |
//! | 40 | 8 | time of the end, in microseconds since the start |
//! | 48 | 8 | length of the file when the process ended, in bytes; 0 if not known |
//! | 64 | up to 2048 | the command line, its arguments separated by zero bytes; two zero bytes end it |

use crate::chunk::{Chunk, UNIT_BYTES};
use crate::event::Damage;

/// What a trace begins with.
pub const MAGIC: [u8; 8] = *b"FStrace\n";

/// Length of the header.
pub const HEADER_BYTES: usize = 4096;

/// Where the number of how the recording ended is.
pub const END_AT: usize = 24;

/// Where the peak of resident memory is.
pub const PEAK_RSS_AT: usize = 32;

/// Where the time of the end is.
pub const END_US_AT: usize = 40;

/// Where the length of the file is.
pub const LEN_AT: usize = 48;

/// Where the command line is.
pub const COMMAND_AT: usize = 64;

/// Longest command line.
pub const COMMAND_BYTES: usize = 2048;

/// How a recording ended: bits.
pub mod end {
    /// The process ended through `exit`. Without this bit it ended through `_exit` or by a signal, replaced itself by another program, or is still running.
    pub const EXITED: u64 = 1;
    /// The file could not grow any more: events are missing from there on.
    pub const CUT_OFF: u64 = 2;
    /// Addresses were replaced by numbers, so that the trace can be shared.
    pub const STRIPPED: u64 = 4;
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Number of the process.
    pub pid: u32,
    /// Start of the recording, in nanoseconds since 1970.
    pub began_ns: u64,
    /// How it ended: bits of [`end`].
    pub end: u64,
    /// Peak resident memory of the process in bytes; 0 if not known.
    pub peak_rss: u64,
    /// Time of the end, in microseconds since the start; 0 if not known.
    pub end_us: u64,
    /// Length of the file when the process ended, in bytes; 0 if not known.
    pub len: u64,
    /// The command line, its arguments separated by zero bytes.
    pub command: &'a [u8],
}

impl<'a> Header<'a> {
    /// Writes the header into the first bytes of a file, which are zero.
    pub fn write(&self, bytes: &mut [u8; HEADER_BYTES]) {
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&crate::VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.pid.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.began_ns.to_le_bytes());
        bytes[END_AT..PEAK_RSS_AT].copy_from_slice(&self.end.to_le_bytes());
        bytes[PEAK_RSS_AT..END_US_AT].copy_from_slice(&self.peak_rss.to_le_bytes());
        bytes[END_US_AT..LEN_AT].copy_from_slice(&self.end_us.to_le_bytes());
        bytes[LEN_AT..LEN_AT + 8].copy_from_slice(&self.len.to_le_bytes());
        for (to, &from) in bytes[COMMAND_AT..COMMAND_AT + COMMAND_BYTES].iter_mut().zip(self.command) {
            *to = from;
        }
    }

    /// The header of the trace in `bytes`.
    ///
    /// # Errors
    /// It is none, of another version, or cut short.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let known = &MAGIC[..bytes.len().min(8)];
        if bytes.is_empty() || !bytes.starts_with(known) {
            return Err(Damage::NoTrace);
        }
        let at = |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
        let long = |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
        let version = at(8).ok_or(Damage::CutHeader)?;
        if version != crate::VERSION {
            return Err(Damage::Version(version));
        }
        if bytes.len() < HEADER_BYTES {
            return Err(Damage::CutHeader);
        }
        let command = &bytes[COMMAND_AT..COMMAND_AT + COMMAND_BYTES];
        let len = command.windows(2).position(|pair| pair == [0, 0]).unwrap_or(command.len());
        let number = |value: Option<u64>| value.ok_or(Damage::CutHeader);
        Ok(Self {
            pid: at(12).ok_or(Damage::CutHeader)?,
            began_ns: number(long(16))?,
            end: number(long(END_AT))?,
            peak_rss: number(long(PEAK_RSS_AT))?,
            end_us: number(long(END_US_AT))?,
            len: number(long(LEN_AT))?,
            command: &command[..len],
        })
    }
}

/// The chunks of the trace in `bytes`, in the order of the file; what is damaged is skipped to the next chunk, and returned as an error once.
pub fn chunks(bytes: &[u8]) -> impl Iterator<Item = Result<Chunk<'_>, Damage>> {
    let mut at = HEADER_BYTES;
    let mut was_damaged = false;
    core::iter::from_fn(move || {
        loop {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            match Chunk::read(rest) {
                Ok(chunk) => {
                    at += chunk.header.len as usize;
                    was_damaged = false;
                    return Some(Ok(chunk));
                }
                Err(damage) => {
                    let is_gap = rest.iter().take(UNIT_BYTES).all(|&byte| byte == 0);
                    at += UNIT_BYTES;
                    if !was_damaged && !is_gap {
                        was_damaged = true;
                        return Some(Err(damage));
                    }
                }
            }
        }
    })
}
