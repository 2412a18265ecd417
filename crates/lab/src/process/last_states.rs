//! What processes held last that left no report of their exit: a signal ended them, or they left through `_exit`.
//!
//! Each process of the command keeps a page of statistics (option `live` of the library) in a folder of the lab's. A process that reports its exit
//! removes its page; the page of another one stays, with its last whole state.

use crate::file_pattern;
use crate::process::exit_report::Exit;
use crate::process::live_process;
use crate::scratch_file::ScratchFolder;
use anyhow::Result;
use freestone::door::live::LiveState;
use std::ffi::OsString;
use std::{env, fs};

/// The folder of the pages.
pub(crate) struct LastStates(ScratchFolder);

impl LastStates {
    /// A folder for the pages; `None` if the user's environment says where they are, or that there are none.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn new() -> Result<Option<Self>> {
        if env::var_os(live_process::VARIABLE).is_some() {
            return Ok(None);
        }
        Ok(Some(Self(ScratchFolder::new("last-states")?)))
    }

    /// The variable that makes the library keep its page there.
    pub(crate) fn variable(&self) -> (String, OsString) {
        (live_process::VARIABLE.into(), file_pattern::in_folder(self.0.path(), "%p.live"))
    }

    /// The last states of the processes whose pages are there, by number.
    pub(crate) fn read(&self) -> Vec<Exit> {
        let entries = fs::read_dir(self.0.path()).into_iter().flatten().flatten();
        let mut states: Vec<_> =
            entries.filter_map(|entry| live_process::left_behind(&entry.path())).map(|state| of(&state)).collect();
        states.sort_by_key(|state| state.pid);
        states
    }
}

/// The figures of a state.
fn of(state: &LiveState) -> Exit {
    let stats = &state.stats;
    Exit {
        pid: state.process,
        allocations: stats.n_allocations,
        frees: stats.n_frees,
        live_bytes: stats.live,
        peak_live_bytes: stats.peak_live,
        committed_bytes: stats.committed,
        peak_committed_bytes: stats.peak_committed,
        purged_bytes: stats.purged,
        threads: u64::from(stats.n_threads),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_pages_are_in_a_folder_of_their_own_and_what_is_no_page_is_no_state() {
        let states = LastStates(ScratchFolder::new("states-test").unwrap());
        let (name, value) = states.variable();
        assert_eq!(name, "FREESTONE_LIVE");
        let value = value.into_string().unwrap();
        assert!(value.ends_with("/%p.live"), "{value}");
        fs::write(value.replace("%p", "7"), "no page").unwrap();
        assert!(states.read().is_empty());
    }
}
