//! The name of the heap profile beside a trace, which has the stacks of the same process, in the same program.
//!
//! ```text
//!  a.trace          of process 11                            a.trace.heap
//!  a.trace.12       of process 12                            a.trace.12.heap
//!  a.trace.12.2     of process 12, in its second program     a.trace.12.2.heap
//! ```
//!
//! The library writes the profile of a process when it ends, in its last program, and knows only the number of the process. So the profile has another
//! name until the run has ended.

use crate::file_pattern;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the names end with.
const ENDING: &str = ".heap";

/// The profile of the trace in `trace`.
pub(crate) fn path(trace: &Path) -> PathBuf {
    with_ending(trace, ENDING)
}

/// What the library calls the profile of process `pid` of a run whose first process records into `first`.
pub(crate) fn as_written(first: &Path, pid: u32) -> PathBuf {
    with_ending(first, &format!(".{pid}{ENDING}"))
}

/// The name, for the option `heap_profile_file`, of the profiles of all processes of a run whose first process records into `first`.
pub(crate) fn pattern(first: &Path) -> OsString {
    file_pattern::followed_by(first.as_os_str(), &format!(".%p{ENDING}"))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_each_trace_has_its_name_and_the_library_knows_the_process_alone() {
        let of = |trace: &str| path(Path::new(trace)).display().to_string();
        assert_eq!(of("/x/a.trace"), "/x/a.trace.heap");
        assert_eq!(of("/x/a.trace.12.2"), "/x/a.trace.12.2.heap");
        let pattern = pattern(Path::new("/x/a.trace")).into_string().unwrap();
        assert_eq!(Path::new(&pattern.replace("%p", "12")), as_written(Path::new("/x/a.trace"), 12));
    }
}
