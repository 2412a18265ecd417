//! Experiment E: measures both sizes.

use crate::command::experiment::session::Session;
use crate::show::published::growth::{LIMITS, WORKLOAD};
use anyhow::Result;

/// Measures the experiment.
pub(super) fn measure(session: &mut Session) -> Result<()> {
    let job = |(limit, _): &(&str, &str)| session.job(WORKLOAD, &[&format!("limit={limit}")]);
    let jobs: Vec<_> = LIMITS.iter().map(job).collect();
    session.run(&jobs, Vec::new())
}
