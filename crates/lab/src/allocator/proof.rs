//! The proof that an allocator works and answers `malloc`: a very small workload is run under it.

use crate::allocator::description::Allocator;
use crate::process::workload_run;
use crate::workload::workload_record::WorkloadRecord;
use anyhow::Result;
use std::time::Duration;

/// The result of the small workload.
pub(crate) enum Proof {
    /// The allocator answered `malloc` and stated this version.
    Present {
        /// Its version.
        version: String,
    },
    /// Another library answered `malloc`.
    Absent {
        /// The file that did.
        malloc_library: String,
    },
}

/// Runs the small workload under `allocator` and checks which library answered.
///
/// # Errors
/// The workload does not run under this allocator.
pub(crate) fn prove(allocator: &Allocator) -> Result<Proof> {
    Ok(judge(run_small_workload(allocator)?, allocator))
}

/// The version that `allocator` states when it runs.
///
/// # Errors
/// The small workload does not run under this allocator.
pub(crate) fn stated_version(allocator: &Allocator) -> Result<String> {
    Ok(run_small_workload(allocator)?.allocator_version)
}

fn run_small_workload(allocator: &Allocator) -> Result<WorkloadRecord> {
    let arguments = ["random_mixed", "--quick", "ops=10000"].map(str::to_owned);
    workload_run::run(&arguments, allocator.preload(), Duration::from_secs(30))
}

fn judge(record: WorkloadRecord, allocator: &Allocator) -> Proof {
    let is_expected = match &allocator.library {
        Some(library) => library.to_string_lossy() == record.malloc_library,
        None => record.malloc_library.contains("libc.so") || record.malloc_library.contains("libc-"),
    };
    if is_expected {
        Proof::Present { version: record.allocator_version }
    } else {
        Proof::Absent { malloc_library: record.malloc_library }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn is_present(malloc_library: &str, allocator: &Allocator) -> bool {
        let record = WorkloadRecord { malloc_library: malloc_library.into(), ..WorkloadRecord::example() };
        matches!(judge(record, allocator), Proof::Present { .. })
    }

    #[test]
    fn an_allocator_is_present_only_if_its_own_library_answers() {
        let other = Allocator::in_library("other", PathBuf::from("/lib/other.so"));
        assert!(is_present("/lib/other.so", &other));
        assert!(!is_present("/lib/libc.so.6", &other) && !is_present("other.so", &other));
        assert!(
            is_present("/lib/libc.so.6", &Allocator::system()) && is_present("/lib/libc-2.31.so", &Allocator::system())
        );
        assert!(!is_present("/lib/other.so", &Allocator::system()));
    }
}
