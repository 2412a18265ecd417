//! Experiment D: measures the web server and the pool under every allocator and every pool in front of `calloc`.

use crate::command::experiment::session::Session;
use crate::measure::rounds::{Contender, Job};
use crate::show::published::pools::{CALLS, FRONT_ENDS, OVERSIZE, POOL, WEB_SERVER, pool_params};
use anyhow::Result;

/// Measures the experiment.
pub(super) fn measure(session: &mut Session) -> Result<()> {
    let mut jobs = vec![session.job(WEB_SERVER, &[])];
    jobs.extend(pool_jobs(session));
    session.run(&jobs, FRONT_ENDS.iter().map(|(name, front)| Contender::inside(name, &[front])).collect())
}

fn pool_jobs(session: &Session) -> Vec<Job> {
    let job = |(calls, rounds), oversize| {
        session.job(POOL, &pool_params(calls, rounds, oversize).each_ref().map(String::as_str))
    };
    CALLS.iter().flat_map(|&calls| OVERSIZE.map(|(oversize, _)| job(calls, oversize))).collect()
}
