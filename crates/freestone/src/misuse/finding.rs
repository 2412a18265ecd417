//! Findings: what is written about a crime.
//!
//! ```text
//!  freestone: double free of 0x7f5e10000ff0 (16-byte block, freed by thread 1)     what, where, of which size, by which thread
//!    in process 4711, kernel thread 4712:
//!      0x55d3c0de11a3 /usr/bin/program+0x11a3                                     the stack of now
//!      …
//!    allocated in kernel thread 4711:                                             of guarded blocks only (`guarded`)
//!      …
//!    freed in kernel thread 4712:
//!      …
//! ```
//!
//! A frame is a code address, the object that it is in, and the address in the object's file, as `addr2line -e` wants it. Frames of this library
//! above the program's are left out if it is a shared object. A report of the option `report` gets the same text as a line of JSON.
//!
//! One write each. The text is made in a mapping of its own: no allocation and no lock, so a finding may come from any thread in any state, a signal
//! handler included. In a sandbox, or without memory for the text, only the first line is written.

use super::crime::{Line, Misuse};
use crate::config::{MisusePolicy, Settings};
use core::fmt::{self, Write};
use freestone_base::text::FixedText;
use freestone_os::stack::{FRAMES_MOST, Stack};
use freestone_os::{CodeAddress, process};

/// Longest text in bytes; the rest is cut. Three stacks fit, if names of objects are not longer than usual.
const TEXT_BYTES: usize = 12 * 1024;
const _: () = assert!(TEXT_BYTES >= 3 * (FRAMES_MOST * 160 + 80));

/// Longest line of the report: most characters stand for themselves.
const JSON_BYTES: usize = TEXT_BYTES + TEXT_BYTES / 4;

/// Where a thread did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The kernel's number of the thread.
    pub(crate) thread: i32,
    /// Its stack.
    pub(crate) stack: Stack,
}

impl Site {
    /// Where the calling thread is.
    #[inline(always)]
    pub(crate) fn here() -> Self {
        Self { thread: process::thread_id(), stack: Stack::here() }
    }
}

/// Where a block was allocated, and freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// Where it was allocated.
    pub(crate) allocated: Site,
    /// Where it was freed, if it was.
    pub(crate) freed: Option<Site>,
}

/// A crime, and what is known of it.
pub(crate) struct Finding<'a> {
    line: Line,
    at: Option<Site>,
    history: Option<&'a History>,
}

impl<'a> Finding<'a> {
    /// That the thread whose heap has the number `thread` misused an address.
    pub(crate) fn new(what: Misuse, address: usize, thread: u32) -> Self {
        Self { line: Line { what, address, thread }, at: None, history: None }
    }

    /// Where it happened, if not here.
    pub(crate) fn at(self, at: Site) -> Self {
        Self { at: Some(at), ..self }
    }

    /// Where the block was allocated and freed.
    pub(crate) fn with_history(self, history: &'a History) -> Self {
        Self { history: Some(history), ..self }
    }

    /// Reports it, unless the option `misuse` says not to. Returns what the option says: the caller ends the process.
    #[must_use]
    pub(crate) fn report(&self, settings: &Settings) -> MisusePolicy {
        #[cfg(test)]
        super::seen::add(self.line.what, self.line.address);
        let policy = settings.misuse();
        if policy != MisusePolicy::Ignore && (settings.sandbox() || !self.write(settings)) {
            freestone_os::report(format_args!("{}", self.line));
        }
        policy
    }

    /// Writes all that is known; `false` without memory for the text.
    fn write(&self, settings: &Settings) -> bool {
        let at = self.at.unwrap_or_else(Site::here);
        let written = freestone_os::with_long_text::<TEXT_BYTES, _>(|text| {
            // Writing into `FixedText` cannot fail.
            let _ = self.text(&at, &mut text.writer());
            freestone_os::report_lines(text.as_bytes());
            if settings.report_file().is_set() {
                append(settings, text);
            }
        });
        written.is_some()
    }

    fn text(&self, at: &Site, text: &mut impl Write) -> fmt::Result {
        writeln!(text, "freestone: {}", self.line)?;
        writeln!(text, "  in process {}, kernel thread {}:", process::id(), at.thread)?;
        frames(text, &at.stack)?;
        let Some(history) = self.history else { return Ok(()) };
        writeln!(text, "  allocated in kernel thread {}:", history.allocated.thread)?;
        frames(text, &history.allocated.stack)?;
        let Some(freed) = &history.freed else { return Ok(()) };
        writeln!(text, "  freed in kernel thread {}:", freed.thread)?;
        frames(text, &freed.stack)
    }
}

/// Writes the frames of a stack, but those of this library that come first.
fn frames(text: &mut impl Write, stack: &Stack) -> fmt::Result {
    let addresses = stack.addresses();
    let n_own = addresses.iter().take_while(|&&at| CodeAddress(at).is_of_this_library()).count();
    let shown = addresses.get(n_own..).filter(|rest| !rest.is_empty()).unwrap_or(addresses);
    shown.iter().try_for_each(|&at| writeln!(text, "    {}", CodeAddress(at)))
}

/// Appends a finding to the report.
fn append(settings: &Settings, text: &FixedText<TEXT_BYTES>) {
    freestone_os::with_long_text::<JSON_BYTES, _>(|line| {
        let lossless = core::str::from_utf8(text.as_bytes()).unwrap_or("");
        let _ = writeln!(line, r#"{{"event":"misuse","pid":{},"finding":"{}"}}"#, process::id(), Escaped(lossless));
        settings.report_file().append(line.as_bytes());
    });
}

/// A text as it stands in a string of JSON.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| match char {
            '"' | '\\' => write!(f, "\\{char}"),
            '\n' => f.write_str("\\n"),
            control if control < ' ' => write!(f, "\\u{:04x}", control as u32),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests;
