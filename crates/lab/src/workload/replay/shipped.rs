//! Traces of real programs that are part of the lab.
//!
//! | workload | what was recorded |
//! |---|---|
//! | `trace_python` | `python3` turning objects into JSON and back, with its own small-block allocator switched off |
//! | `trace_sqlite` | `sqlite3` filling, indexing and querying a table |
//! | `trace_gcc` | gcc's compiler of C, `cc1`, optimising a file |
//! | `trace_redis` | the server of redis, asked by `redis-benchmark` |
//!
//! `testdata/traces/README.md` has the commands. They were recorded under Freestone, and have sizes, order, threads and times, and no addresses.

use super::{PLAN, run};
use crate::scratch_file::ScratchFile;
use crate::trace::plan::{Order, Plan};
use crate::trace::recording::Recording;
use crate::trace::timeline::Timeline;
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use anyhow::{Context, Result};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, ExitCode};

const PARAMS: &[Param] = &[
    Param::scaled("ops", [2, 8, 40], "times that the trace is repeated").at_least_one(),
    Param::fixed("touch", 2, "what is written into a block: 0 nothing, 1 its first byte, 2 all of it"),
];

/// A workload that replays a shipped trace.
macro_rules! shipped {
    ($name:literal, $models:literal) => {
        Workload {
            name: $name,
            models: $models,
            hides: "what the program does between its calls",
            shows: PrimaryFigure::Time,
            params: PARAMS,
            run: |params, meter| run_shipped($name, params, meter),
            run_on_null: None,
        }
    };
}

pub(crate) static PYTHON: Workload =
    shipped!("trace_python", "python3 turning objects into JSON and back, call by call");
pub(crate) static SQLITE: Workload = shipped!("trace_sqlite", "sqlite3 filling and querying a table, call by call");
pub(crate) static GCC: Workload = shipped!("trace_gcc", "gcc's cc1 optimising a file, call by call");
pub(crate) static REDIS: Workload = shipped!("trace_redis", "redis serving requests of many kinds, call by call");

/// The traces, by the names of their workloads.
const TRACES: [(&str, &[u8]); 4] = [
    ("trace_python", include_bytes!("../../../../../testdata/traces/python.trace.gz")),
    ("trace_sqlite", include_bytes!("../../../../../testdata/traces/sqlite.trace.gz")),
    ("trace_gcc", include_bytes!("../../../../../testdata/traces/gcc.trace.gz")),
    ("trace_redis", include_bytes!("../../../../../testdata/traces/redis.trace.gz")),
];

/// Runs the workload called `name`. Another process makes the plan, so that this one's heap holds nothing of it.
fn run_shipped(name: &str, params: &Params, meter: &mut Meter) -> Outcome {
    let file = match ScratchFile::unnamed(PLAN) {
        Ok(file) => file,
        Err(error) => broken(&format!("{error:#}")),
    };
    let made = std::env::current_exe().and_then(|lab| {
        let mut command = Command::new(lab);
        command.args(["plan", name]).stdout(file.try_clone()?).env_remove("LD_PRELOAD").status()
    });
    if !made.is_ok_and(|status| status.success()) {
        broken(&format!("the plan of {name} could not be made"));
    }
    run(file, params, meter)
}

/// The process that makes the plan of a workload, on its standard output: `freestone plan NAME`.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    match make_plan(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("freestone plan: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn make_plan(arguments: &[String]) -> Result<()> {
    let [name] = arguments else { anyhow::bail!("write: plan NAME") };
    let (_, trace) = TRACES.iter().find(|(of, _)| of == name).with_context(|| format!("there is no trace {name}"))?;
    let timeline = Timeline::of(&Recording::read(trace)?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Plan::of(&timeline, Order::Turns).write(output).context("the plan cannot be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::analysis::Analysis;

    #[test]
    fn every_shipped_trace_is_whole_stripped_and_at_most_a_mebibyte() {
        for (name, bytes) in TRACES {
            assert!(bytes.len() <= 1 << 20, "{name}: {} bytes", bytes.len());
            let recording = Recording::read(bytes).unwrap();
            assert_eq!(recording.doubts(), Vec::<String>::new(), "{name}");
            assert!(recording.end & freestone_trace::file::end::STRIPPED != 0, "{name}");
            let figures = Analysis::of(&Timeline::of(&recording));
            assert!(figures.allocations > 10_000 && figures.peak_live_bytes > 100_000, "{name}: {figures:?}");
        }
    }
}
