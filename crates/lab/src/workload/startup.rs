//! An empty program, started many times: what it costs to have the allocator in every process.
//!
//! Source: freestone's own goal (`/bin/true` 500 times). The children inherit the preloaded library; their processor time and page faults are
//! counted. An operation is one process from spawn to exit.
//!
//! Does not show: anything that the allocator does after the first few allocations.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::own_process::Usage;
use crate::workload::params::{Param, Params};
use std::process::{Command, Stdio};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "startup",
    models: "an empty program that is started again and again, as shells and build tools do",
    hides: "everything after the first allocations",
    shows: PrimaryFigure::Time,
    params: &[Param::scaled("ops", [60, 500, 2000], "processes").at_least_one()],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let ops = params.get("ops");
    meter.count_children();
    let before = Usage::of_children();
    meter.section(|_| {
        for _ in 0..ops {
            match Command::new("/bin/true").stdin(Stdio::null()).status() {
                Ok(status) if status.success() => {}
                Ok(status) => broken(&format!("/bin/true ended with {status}")),
                Err(error) => broken(&format!("/bin/true could not be started: {error}")),
            }
        }
    });
    let faults = Usage::of_children().since(before).minor_faults;
    Outcome::new(ops, 0).with("faults per process", faults as f64 / ops.max(1) as f64)
}
