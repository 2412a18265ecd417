//! Experiment A: measures all sizes in Rust and C, then runs Go's half. The C half is `malloc`, because the workload calls the C symbol.

use crate::command::experiment::go;
use crate::command::experiment::session::Session;
use crate::measure::rounds::Contender;
use crate::results::outcome::Outcome;
use crate::show::published::arena::{AMOUNTS, HEAPS, SIZES, go_subject};
use anyhow::Result;

/// Measures the experiment.
pub(super) fn measure(session: &mut Session) -> Result<()> {
    let mut jobs = Vec::new();
    for (ops, _) in AMOUNTS {
        for (bytes, _, _) in SIZES {
            jobs.push(session.job("alloc_free_pair", &[&format!("size={bytes}"), &format!("ops={ops}")]));
        }
    }
    session.run(&jobs, HEAPS.iter().map(|(name, heap)| Contender::inside(name, &[heap])).collect())?;
    let figures = match go::bench() {
        Ok(figures) => figures,
        Err(error) => {
            session.leave_out(format!("experiment A's Go half is left out: {error:#}"))?;
            Vec::new()
        }
    };
    for figure in &figures {
        let outcome = Outcome::Figure { name: "ns/op".into(), value: figure.ns };
        session.measurement.keep(&go_subject(&figure.size), &figure.allocator, 0, outcome)?;
    }
    Ok(())
}
