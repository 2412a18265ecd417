//! The names that a process tries for its trace.
//!
//! ```text
//!  PATH ─▶ exists ─▶ PATH.PID ─▶ exists ─▶ PATH.PID.2 … PATH.PID.9
//! ```
//!
//! The option is inherited by every program that the process starts. The first to start has the name itself; a process that replaces its program
//! keeps its number. No existing file is overwritten.

use core::ffi::CStr;
use freestone_base::text::FixedText;
use freestone_os::process;

/// Longest name in bytes, with its final zero.
pub(super) const NAME_BYTES: usize = 1100;

/// Names that are tried: the path itself, and nine with the process's number.
pub(super) const ATTEMPTS: u32 = 10;

/// A name as a C string. So long that it has no place on the stack of a thread that the program made as short as can be.
pub(super) struct TraceName(FixedText<NAME_BYTES>);

impl TraceName {
    #[cfg(test)]
    pub(super) fn new() -> Self {
        Self(FixedText::new())
    }

    /// Makes it the name that attempt number `attempt` tries: `path`, and the process's number unless this is the first attempt. `None` if the name is too
    /// long.
    pub(super) fn set(&mut self, path: &[u8], attempt: u32) -> Option<()> {
        let Self(text) = self;
        *text = FixedText::new();
        text.push(path);
        if attempt > 0 {
            let _ = write!(text, ".{}", process::id());
        }
        if attempt > 1 {
            let _ = write!(text, ".{attempt}");
        }
        text.push(b"\0");
        let is_whole = text.as_bytes().ends_with(b"\0");
        is_whole.then_some(())
    }

    /// As the kernel takes it.
    pub(super) fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(self.0.as_bytes()).unwrap_or(c"")
    }

    /// As people read it.
    pub(super) fn as_text(&self) -> &str {
        self.as_c().to_str().unwrap_or("?")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::format;

    fn name(path: &[u8], attempt: u32) -> std::string::String {
        let mut name = TraceName::new();
        name.set(path, attempt).map(|()| name.as_text().into()).unwrap_or_default()
    }

    #[test]
    fn later_attempts_have_the_process_in_their_names() {
        let pid = std::process::id();
        assert_eq!(name(b"/a/b", 0), "/a/b");
        assert_eq!(name(b"/a/b", 1), format!("/a/b.{pid}"));
        assert_eq!(name(b"/a/b", 9), format!("/a/b.{pid}.9"));
    }

    #[test]
    fn a_name_that_is_too_long_is_refused_and_one_that_is_no_text_is_not() {
        assert_eq!(name(&[b'x'; NAME_BYTES - 1], 0).len(), NAME_BYTES - 1);
        assert_eq!(name(&[b'x'; NAME_BYTES - 1], 1), "");
        let mut bytes = TraceName::new();
        assert_eq!(bytes.set(b"/a\xff", 0).map(|()| bytes.as_c()), Some(c"/a\xff"));
    }
}
