//! Experiment C: measures the program under every allocator, then the refill by itself.

use crate::command::experiment::session::Session;
use crate::command::options;
use crate::measure::rounds::Contender;
use crate::show::published::batched_refill::{BATCHED, ONE_AT_A_TIME, REFILL, TREES};
use anyhow::Result;

const BIN_MAX: &str = "FREESTONE_BIN_MAX";
const ONE_BLOCK: &str = "freestone, bins of 1";

/// Measures the experiment.
pub(super) fn measure(session: &mut Session) -> Result<()> {
    let mut more = Vec::new();
    match session.freestone() {
        Some(freestone) if options::exists(BIN_MAX) => {
            let allocator = freestone.with_options(ONE_BLOCK, &[(BIN_MAX, "1")]);
            more.push(Contender { allocator, params: Vec::new() });
        }
        Some(_) => {
            let what = "this build of freestone has no option for the capacity of bins: that row is left out";
            session.leave_out(what.into())?;
        }
        None => {}
    }
    let trees = [session.job(TREES, &[])];
    session.run(&trees, more)?;
    let ways = [ONE_AT_A_TIME, BATCHED].map(|(name, param)| Contender::inside(name, &[param]));
    let refill = [session.job(REFILL, &[])];
    session.run_among(&refill, &ways)
}
