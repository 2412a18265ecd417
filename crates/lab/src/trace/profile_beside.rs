//! The name of the heap profile beside a trace, which has the stacks of the same process.
//!
//! ```text
//!  a.trace        of process 11     a.trace.11.heap
//!  a.trace.12     of process 12     a.trace.12.heap
//! ```

use std::path::{Path, PathBuf};

/// What the names end with.
pub(crate) const ENDING: &str = ".heap";

/// The profile of process `pid`, whose trace is in `trace`.
pub(crate) fn path(trace: &Path, pid: u32) -> PathBuf {
    let (name, number) = (trace.to_string_lossy(), format!(".{pid}"));
    let first = name.strip_suffix(number.as_str()).unwrap_or(&name);
    PathBuf::from(format!("{first}{number}{ENDING}"))
}

/// The name, for the option `heap_profile_file`, of the profiles of all processes that record into `output` and files beside it.
pub(crate) fn pattern(output: &Path) -> String {
    format!("{}.%p{ENDING}", output.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_each_process_is_beside_the_first_trace() {
        let of = |trace: &str, pid| path(Path::new(trace), pid).display().to_string();
        assert_eq!(of("/x/a.trace", 11), "/x/a.trace.11.heap");
        assert_eq!(of("/x/a.trace.12", 12), "/x/a.trace.12.heap");
        assert_eq!(pattern(Path::new("/x/a.trace")).replace("%p", "12"), of("/x/a.trace.12", 12));
    }
}
