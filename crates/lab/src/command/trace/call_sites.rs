//! The call sites of a trace: from the profile of the same run that `freestone record --stacks` leaves beside it.
//!
//! A trace has no stacks. The profile has each stack once, however often it allocated, and costs the trace no byte; a trace that is handed on without it has
//! no addresses of code.

use crate::heap_profile::dump;
use crate::heap_profile::named::NamedProfile;
use crate::heap_profile::table as profile_table;
use crate::heap_profile::usage::Measure;
use crate::show::table;
use crate::trace::profile_beside;
use anyhow::Result;
use serde_json::Value;
use std::path::Path;

/// Most call sites in the table.
const MOST: usize = 20;

/// What the call sites of a forked child are not its own in.
pub(super) const INHERITED: &str =
    "the process was forked from another: its call sites include what that had allocated until then";

/// The functions that allocated.
pub(super) struct CallSites(NamedProfile);

impl CallSites {
    /// Those of the trace in `trace`; `None` if there is no profile of it.
    ///
    /// # Errors
    /// There is a profile, and it cannot be read.
    pub(super) fn beside(trace: &Path) -> Result<Option<Self>> {
        let path = profile_beside::path(trace);
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(Self(NamedProfile::new(&dump::read(&path)?))))
    }

    /// Prints those that allocated most.
    pub(super) fn print(&self) {
        let Self(profile) = self;
        let sum = profile.sum().of(Measure::Total);
        let mut rows = profile_table::rows(profile, Measure::Total);
        rows.retain(|row| row.own.bytes != 0);
        rows.truncate(MOST);
        let cells: Vec<Vec<String>> = rows.iter().map(|row| profile_table::cells(row, sum)).collect();
        println!("\nCall sites, by what they allocated, estimated from samples of one byte in {}", profile.interval);
        table::print(&profile_table::header(Measure::Total), &cells, 1);
        profile.warnings().iter().for_each(|warning| eprintln!("{warning}"));
    }

    /// All stacks.
    pub(super) fn to_json(&self) -> Value {
        profile_table::to_json(&self.0)
    }
}
