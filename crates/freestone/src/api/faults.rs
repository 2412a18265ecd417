//! Faults: what happens when the program accesses a guarded block that it must not access.
//!
//! Called in a signal handler: takes no lock, allocates nothing.

use crate::config::MisusePolicy;
use crate::misuse::crime::Touch;
use crate::misuse::finding::{Finding, Site};
use crate::shared::Shared;
use freestone_os::fault::{Fault, Outcome};
use freestone_os::stack::Stack;
use freestone_os::{Os, process};

/// Reports a fault in a guarded block, or beside one, by the thread whose heap has the number `thread`. If the option `misuse` says to go on, the access
/// succeeds after that.
pub(super) fn judge<O: Os>(shared: &Shared<O>, thread: u32, fault: &Fault) -> Outcome {
    let Some(crime) = shared.guarded.judge(fault.address, Touch::new(fault.is_write)) else {
        return Outcome::Foreign;
    };
    let site = Site { thread: process::thread_id(), stack: fault.registers.map_or(Stack::EMPTY, Stack::at) };
    let finding = Finding::new(crime.what, crime.block, thread).at(site).with_history(&crime.history);
    match finding.report(shared.settings()) {
        MisusePolicy::Report | MisusePolicy::Ignore if shared.guarded.give_up(fault.address) => Outcome::Resume,
        _ => Outcome::Fatal,
    }
}

#[cfg(test)]
mod tests;
