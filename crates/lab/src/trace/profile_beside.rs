//! The name of the heap profile beside a trace, which has the stacks of the same process.
//!
//! ```text
//!  a.trace        of process 11     a.trace.11.heap
//!  a.trace.12     of process 12     a.trace.12.heap
//! ```

use crate::file_pattern;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the names end with.
pub(crate) const ENDING: &str = ".heap";

/// The profile of process `pid`, whose trace is in `trace`.
pub(crate) fn path(trace: &Path, pid: u32) -> PathBuf {
    let (name, number) = (trace.as_os_str().as_bytes(), format!(".{pid}"));
    let first = name.strip_suffix(number.as_bytes()).unwrap_or(name);
    PathBuf::from(OsStr::from_bytes(&[first, number.as_bytes(), ENDING.as_bytes()].concat()))
}

/// The name, for the option `heap_profile_file`, of the profiles of all processes that record into `output` and files beside it.
pub(crate) fn pattern(output: &Path) -> OsString {
    file_pattern::followed_by(output.as_os_str(), &format!(".%p{ENDING}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_each_process_is_beside_the_first_trace() {
        let of = |trace: &str, pid| path(Path::new(trace), pid).display().to_string();
        assert_eq!(of("/x/a.trace", 11), "/x/a.trace.11.heap");
        assert_eq!(of("/x/a.trace.12", 12), "/x/a.trace.12.heap");
        let pattern = pattern(Path::new("/x/a.trace")).into_string().unwrap();
        assert_eq!(pattern.replace("%p", "12"), of("/x/a.trace.12", 12));
        let odd = Path::new(OsStr::from_bytes(b"/\xff"));
        assert_eq!(path(odd, 11).as_os_str().as_bytes(), b"/\xff.11.heap");
    }
}
