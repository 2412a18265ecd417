//! What the command prints. An output that cannot be written never ends the process: its work is finished first, and [`status`] reports it then.
//!
//! The macros take the place of the standard library's of the same names, which panic if the output cannot be written. What does not fit on standard
//! error is dropped: there is no place left to say so. Of standard output the first error is kept. A reader that has gone is no error.
//!
//! Names of processes, functions and files are other people's: control characters in them, which could change the terminal, are escaped. The escapes are
//! those of JSON, so JSON that is printed stays JSON.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

macro_rules! print {
    ($($argument:tt)*) => { $crate::printing::to_stdout(format_args!($($argument)*)) };
}

macro_rules! println {
    ($($argument:tt)*) => { $crate::printing::to_stdout(format_args!("{}\n", format_args!($($argument)*))) };
}

macro_rules! eprint {
    ($($argument:tt)*) => { $crate::printing::to_stderr(format_args!($($argument)*)) };
}

macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::printing::to_stderr(format_args!("{}\n", format_args!($($argument)*))) };
}

/// Exit status if standard output could not be written.
const UNWRITTEN: u8 = 2;

/// The first error of standard output.
static ERROR: OnceLock<io::Error> = OnceLock::new();

/// Writes `text` to standard output.
pub(crate) fn to_stdout(text: Arguments<'_>) {
    keep(io::stdout().write_all(printable(&text.to_string()).as_bytes()));
}

/// Writes `text` to standard error.
pub(crate) fn to_stderr(text: Arguments<'_>) {
    let _ = io::stderr().write_all(printable(&text.to_string()).as_bytes());
}

/// A text in which control characters, but for the ends of lines and tabulators, are escaped.
fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |letter| letter.is_control() && !matches!(letter, '\n' | '\t'))
}

/// A text in which all control characters are escaped.
pub(crate) fn in_one_line(text: &str) -> Cow<'_, str> {
    escape(text, char::is_control)
}

/// A text in which letters are escaped that are `harmful`.
fn escape(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&harmful) {
        return text.into();
    }
    let escaped = |letter: char| match letter {
        _ if !harmful(letter) => String::from(letter),
        '\n' | '\r' | '\t' => letter.escape_default().collect(),
        _ => format!("\\u{:04x}", u32::from(letter)),
    };
    text.chars().map(escaped).collect()
}

/// Keeps the error of what something else wrote to standard output.
pub(crate) fn keep(written: io::Result<()>) {
    if let Err(error) = written {
        let _ = ERROR.set(error);
    }
}

/// Whether standard output takes no more: its reader has gone, or it cannot be written.
pub(crate) fn has_failed() -> bool {
    ERROR.get().is_some()
}

/// The exit status of a process that is about to end with `status`: another one in place of 0 if what it printed could not be written. Standard error
/// says why.
pub(crate) fn status(status: ExitCode) -> ExitCode {
    keep(io::stdout().flush());
    match ERROR.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("freestone: the output could not be written: {error}");
            if status == ExitCode::SUCCESS { ExitCode::from(UNWRITTEN) } else { status }
        }
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    use super::{in_one_line, printable};

    #[test]
    fn control_characters_are_escaped_and_lines_and_other_scripts_stay() {
        assert_eq!(printable("two\n\tlines, ä"), "two\n\tlines, ä");
        assert_eq!(printable("\u{1b}]0;title\u{7} \u{9b}31m\r"), "\\u001b]0;title\\u0007 \\u009b31m\\r");
        let json = serde_json::Value::from("a \u{7f}\u{9b}31m\u{1b}\n name");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printable(&json.to_string())).unwrap(), json);
        assert_eq!(in_one_line("echo ä\n\tb"), "echo ä\\n\\tb");
    }
}
