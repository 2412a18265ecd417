//! The workload's process: `freestone workload NAME [--quick|--full] [--hollow] [--param name=value]…` prints one JSON record.
//!
//! Parsed by hand and before anything else of the lab, so that the process that is measured does as little as possible of its own.

use super::meter::Meter;
use super::params::{Params, Scale};
use super::process_view::{self, Usage};
use super::{Workload, find};
use crate::names;
use crate::record::WorkloadRecord;
use anyhow::{Context, Result, bail};
use std::process::ExitCode;

/// Runs the workload named in `args` and prints its record.
pub(crate) fn main(args: &[String]) -> ExitCode {
    match run(args) {
        Ok(record) => {
            println!("{record}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("freestone workload: {error:#}");
            ExitCode::from(2)
        }
    }
}

struct Request {
    workload: &'static Workload,
    scale: Scale,
    hollow: bool,
    given: Vec<String>,
}

fn run(args: &[String]) -> Result<String> {
    let Request { workload, scale, hollow, given } = parse(args)?;
    let params = Params::resolve(workload.params, scale, &given)?;
    let body = if hollow {
        workload.hollow.with_context(|| format!("{} has no loop that could run without an allocator", workload.name))?
    } else {
        workload.run
    };
    let mut meter = Meter::default();
    let outcome = body(&params, &mut meter);
    let (measured, rss_series) = meter.finish().context("the workload measured nothing")?;
    let record = WorkloadRecord {
        workload: workload.name.to_owned(),
        params: params.to_map(),
        operations: outcome.operations,
        wall_ns: measured.wall_ns,
        user_ns: measured.usage.user_ns,
        system_ns: measured.usage.system_ns,
        minor_faults: measured.usage.minor_faults,
        process_faults: Usage::of_self().minor_faults,
        peak_rss_bytes: measured.peak_rss_bytes,
        start_rss_bytes: measured.start_rss_bytes,
        checksum: outcome.checksum,
        figures: outcome.figures,
        latency: outcome.latency,
        rss_series,
        counters: measured.counters,
        malloc_library: process_view::malloc_library(),
        allocator_version: process_view::allocator_version(),
        hollow,
    };
    Ok(serde_json::to_string(&record)?)
}

fn parse(args: &[String]) -> Result<Request> {
    let mut args = args.iter();
    let name = args.next().context("which workload? `freestone bench --list` names them")?;
    let Some(workload) = find(name) else {
        bail!(names::unknown("workload", name, super::ALL.iter().map(|workload| workload.name)));
    };
    let mut request = Request { workload, scale: Scale::Normal, hollow: false, given: Vec::new() };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => request.scale = Scale::Quick,
            "--full" => request.scale = Scale::Full,
            "--hollow" => request.hollow = true,
            "--param" => request.given.push(args.next().context("--param needs name=value after it")?.clone()),
            other if other.contains('=') => request.given.push(other.trim_start_matches("--").to_owned()),
            other => bail!("'{other}' is not understood; parameters are written name=value"),
        }
    }
    Ok(request)
}
