//! Operation streams: one notation for what a program asks of an allocator, played by the tests, fuzz targets and benchmarks of the heap
//! crates.
//!
//! ```text
//! file NAME.ops        region LEN          first line: the memory a bounded heap gets
//!                      a ID SIZE ALIGN     allocate; the ID stays unused if this fails
//!                      r ID SIZE           reallocate, keeping the alignment
//!                      f ID                free
//!                      g BYTES             lengthen the region by BYTES at its end
//!                      # text              a comment
//! file NAME.offsets    one line per `a` and per `r`: the block's offset in the region, or `-` if it was refused or skipped
//!                      end USED FREE FREE_BYTES
//! ```
//!
//! Every player skips `r` and `f` of an unused ID. So any part of a stream is a stream, which shrinking a failing one needs. The files are in
//! `testdata/ops`, and the Go module uses the same ones.

mod bytes;
mod generate;
mod play;
mod shadow;
mod strategy;

pub use generate::{Mix, SplitMix, generate};
pub use play::{Outcome, Player, Subject, play};
pub use shadow::{Shadow, Violation};
pub use strategy::any_stream;

use std::fmt::Write as _;

/// One operation; IDs name blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `a ID SIZE ALIGN`
    Allocate {
        /// Name of the new block.
        id: u32,
        /// Requested bytes.
        bytes: usize,
        /// Power of two.
        align: usize,
    },
    /// `r ID SIZE`
    Reallocate {
        /// Name of the block.
        id: u32,
        /// Requested bytes.
        bytes: usize,
    },
    /// `f ID`
    Deallocate {
        /// Name of the block.
        id: u32,
    },
    /// `g BYTES`
    Grow {
        /// Bytes that are added at the end of the region.
        bytes: usize,
    },
}

/// Operations in order, and the size of the region that they start with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Length of the region at the start, in bytes; 0 for an allocator without a fixed region.
    pub region_bytes: usize,
    /// The operations.
    pub ops: Vec<Op>,
}

/// A line that is not an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Its number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "line {}: `{}` is not an operation; write `region LEN`, `a ID SIZE ALIGN`, ",
            self.line, self.text
        )?;
        write!(out, "`r ID SIZE`, `f ID`, `g BYTES` or `# comment`")
    }
}

impl std::error::Error for ParseError {}

impl Stream {
    /// Reads the text of an `.ops` file.
    ///
    /// # Errors
    /// The first line that is not an operation, or a `region` line that is not the first.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut stream = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || ParseError { line: number + 1, text: line.to_owned() };
            let mut words = line.split_ascii_whitespace();
            let verb = words.next().ok_or_else(wrong)?;
            let numbers = words.map(str::parse).collect::<Result<Vec<usize>, _>>().map_err(|_| wrong())?;
            match (verb, numbers.as_slice()) {
                ("region", &[bytes]) if stream == Self::default() => stream.region_bytes = bytes,
                _ => stream.ops.push(parse_op(verb, &numbers).ok_or_else(wrong)?),
            }
        }
        Ok(stream)
    }

    /// The text of an `.ops` file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("region {}\n", self.region_bytes);
        for op in &self.ops {
            let written = match *op {
                Op::Allocate { id, bytes, align } => writeln!(text, "a {id} {bytes} {align}"),
                Op::Reallocate { id, bytes } => writeln!(text, "r {id} {bytes}"),
                Op::Deallocate { id } => writeln!(text, "f {id}"),
                Op::Grow { bytes } => writeln!(text, "g {bytes}"),
            };
            debug_assert!(written.is_ok(), "writing to a String cannot fail");
        }
        text
    }
}

fn parse_op(verb: &str, numbers: &[usize]) -> Option<Op> {
    let id = |number: usize| u32::try_from(number).ok();
    Some(match (verb, numbers) {
        ("a", &[block, bytes, align]) if align.is_power_of_two() => Op::Allocate { id: id(block)?, bytes, align },
        ("r", &[block, bytes]) => Op::Reallocate { id: id(block)?, bytes },
        ("f", &[block]) => Op::Deallocate { id: id(block)? },
        ("g", &[bytes]) => Op::Grow { bytes },
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
