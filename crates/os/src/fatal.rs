//! Messages on standard error, without a heap.

use crate::kernel;
use core::fmt;
use freestone_base::text::FixedText;

/// Longest message in bytes, with its newline; the rest is cut. A reason behind the longest path is still in it.
const MESSAGE_BYTES: usize = 1280;

/// Writes `freestone: MESSAGE` and a newline to standard error with one call. Errors are ignored.
///
/// ```
/// freestone_os::report(format_args!("{} bytes are missing", 64)); // freestone: 64 bytes are missing
/// ```
pub fn report(message: fmt::Arguments<'_>) {
    let mut text = FixedText::<MESSAGE_BYTES>::new();
    // Writing into `FixedText` cannot fail.
    let _ = write!(text, "freestone: {message}");
    text.end_line();
    report_lines(text.as_bytes());
}

/// Writes whole lines to standard error with one call. Errors are ignored.
pub fn report_lines(text: &[u8]) {
    kernel::write_error(text);
}

/// Reports `message`, then aborts the process.
///
/// ```no_run
/// freestone_os::fatal(format_args!("internal error"));
/// ```
#[cold]
pub fn fatal(message: fmt::Arguments<'_>) -> ! {
    report(message);
    crate::process::abort()
}
