//! Experiment B: measures the workloads under every allocator, then the remedies under Freestone.

use crate::allocator::description::Allocator;
use crate::command::experiment::session::Session;
use crate::command::options;
use crate::measure::rounds::Contender;
use crate::show::published::remedies::{FOR_REMEDIES, REMEDIES};
use anyhow::Result;

/// Measures the experiment.
pub(super) fn measure(session: &mut Session) -> Result<()> {
    let jobs = [session.job("random_mixed", &["ops=1000000"]), session.job("tiny_hot", &["ops=10000000"])];
    session.run(&jobs, Vec::new())?;
    match session.freestone() {
        Some(freestone) => remedies(session, &freestone),
        None => session.leave_out("the remedies are options of freestone, which was not selected".into()),
    }
}

fn remedies(session: &mut Session, freestone: &Allocator) -> Result<()> {
    let mut contenders = Contender::plain(std::slice::from_ref(freestone));
    for (remedy, option, values) in REMEDIES {
        if !options::exists(option) {
            session.leave_out(format!("remedy '{remedy}': this build of freestone has no option {option}"))?;
            continue;
        }
        contenders.extend(values.iter().map(|value| Contender {
            allocator: freestone.with_options(&format!("{option}={value}"), &[(option, value)]),
            params: Vec::new(),
        }));
    }
    let jobs = FOR_REMEDIES.map(|(workload, params)| session.job(workload, params));
    session.run_among(&jobs, &contenders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_remedy_is_an_option_of_the_heap() {
        assert!(REMEDIES.iter().all(|(_, option, _)| options::exists(option)));
    }
}
