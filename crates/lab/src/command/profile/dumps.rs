//! The dumps that the processes of one run leave in a folder.
//!
//! ```text
//!  RUN.PID.NUMBER.peak.heap, RUN.PID.NUMBER.live.heap
//! ```
//!
//! `RUN` is a number that no other file of the folder has: dumps of earlier runs, and of runs at the same time, do not count.

use crate::file_pattern;
use crate::heap_profile::dump;
use crate::heap_profile::sampled::HeapProfile;
use crate::heap_profile::usage::Usage;
use anyhow::Result;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The dumps of one process.
#[derive(Default)]
pub(super) struct Dumps {
    pub(super) at_peak: HeapProfile,
    pub(super) at_end: HeapProfile,
}

impl Dumps {
    /// Bytes that were live at the peak, or allocated in total if none was.
    pub(super) fn weight(&self) -> (i64, i64) {
        let sum = |of: fn(&Usage) -> i64| -> i64 { self.at_peak.samples.iter().map(|sample| of(&sample.usage)).sum() };
        (sum(|usage| usage.live.bytes), sum(|usage| usage.total.bytes))
    }
}

/// Where the dumps of one run are.
pub(super) struct RunDumps<'a> {
    folder: &'a Path,
    /// What their names begin with.
    run: String,
}

impl<'a> RunDumps<'a> {
    /// Those of a run that begins now.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn in_folder(folder: &'a Path) -> io::Result<Self> {
        let entries = fs::read_dir(folder)?.flatten();
        let taken: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let mut run = std::process::id();
        while taken.iter().any(|name| name.starts_with(&format!("{run}."))) {
            run += 1;
        }
        Ok(Self { folder, run: run.to_string() })
    }

    /// The name, for the option `heap_profile_file`, of the dumps of all processes.
    pub(super) fn pattern(&self) -> OsString {
        file_pattern::in_folder(self.folder, &format!("{}.%p.%n.%w.heap", self.run))
    }

    /// The last ones of each process, by process: it may have written some before, if an option says so. A dump that cannot be read is named on stderr.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn read(&self) -> Result<BTreeMap<u32, Dumps>> {
        let mut last = BTreeMap::<(u32, bool), (u64, PathBuf)>::new();
        for entry in fs::read_dir(self.folder)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let parts: Vec<&str> = name.split('.').collect();
            let [run, pid, number, which, "heap"] = parts[..] else { continue };
            let (Ok(pid), Ok(number)) = (pid.parse(), number.parse()) else { continue };
            if run != self.run {
                continue;
            }
            let of_kind = last.entry((pid, which == "peak")).or_default();
            if number >= of_kind.0 {
                *of_kind = (number, entry.path());
            }
        }
        let mut processes = BTreeMap::<u32, Dumps>::new();
        for ((pid, is_peak), (_, path)) in last {
            let Ok(profile) = dump::read(&path).inspect_err(|error| eprintln!("freestone: {error:#}")) else {
                continue;
            };
            let dumps = processes.entry(pid).or_default();
            *if is_peak { &mut dumps.at_peak } else { &mut dumps.at_end } = profile;
        }
        Ok(processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_file::ScratchFolder;

    #[test]
    fn only_the_dumps_of_its_own_run_are_read() {
        let scratch = ScratchFolder::new("run-dumps").unwrap();
        let write = |name: String| {
            let text = "heap profile: 0: 0 [ 0: 0 ] @ heap_v2/1\n\nMAPPED_LIBRARIES:\n";
            fs::write(scratch.path().join(name), text).unwrap();
        };
        let first = RunDumps::in_folder(scratch.path()).unwrap();
        write(format!("{}.11.0.peak.heap", first.run));
        write("12.0.peak.heap".to_owned());
        let second = RunDumps::in_folder(scratch.path()).unwrap();
        write(format!("{}.13.0.live.heap", second.run));
        let pids = |dumps: &RunDumps<'_>| dumps.read().unwrap().into_keys().collect::<Vec<_>>();
        assert_eq!((pids(&first), pids(&second)), (vec![11], vec![13]));
        let pattern = second.pattern();
        assert_eq!(pattern, *format!("{}/{}.%p.%n.%w.heap", scratch.path().display(), second.run));
    }

    #[test]
    fn of_dumps_that_a_process_wrote_on_the_way_the_last_one_counts() {
        let scratch = ScratchFolder::new("last-dump").unwrap();
        let dumps = RunDumps::in_folder(scratch.path()).unwrap();
        for number in 1..13 {
            let text = format!("heap profile: 0: 0 [ 0: 0 ] @ heap_v2/{number}\n\nMAPPED_LIBRARIES:\n");
            let which = if number == 11 { "peak" } else { "live" };
            fs::write(scratch.path().join(format!("{}.7.{number}.{which}.heap", dumps.run)), text).unwrap();
        }
        let of_process = dumps.read().unwrap().remove(&7).unwrap();
        assert_eq!((of_process.at_peak.interval, of_process.at_end.interval), (11, 12));
    }
}
