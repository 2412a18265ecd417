//! The threads of a process.

use crate::process::proc_file;
use std::fs;

/// The numbers of a process's threads; none if it has ended.
pub(crate) fn of(process: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a thread has not ended yet: the first one of a process stays in the list until the last has ended.
pub(crate) fn is_alive(process: i32, thread: i32) -> bool {
    let stat = proc_file::read(format!("/proc/{process}/task/{thread}/stat")).unwrap_or_default();
    // The name in parentheses may have spaces and parentheses.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_has_this_thread_and_others_that_do_not_exist_have_none() {
        assert!(super::of(std::process::id() as i32).contains(&(std::process::id() as i32)));
        assert!(super::of(i32::MAX).is_empty());
    }
}
