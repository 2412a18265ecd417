//! The threads of a process.

use std::fs;

/// The numbers of a process's threads; none if it has ended.
pub(crate) fn of(process: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_has_this_thread_and_others_that_do_not_exist_have_none() {
        assert!(super::of(std::process::id() as i32).contains(&(std::process::id() as i32)));
        assert!(super::of(i32::MAX).is_empty());
    }
}
