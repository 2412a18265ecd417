//! The process of a workload: `freestone workload NAME [--quick|--full] [--null-allocator] [name=value]…` prints one JSON record.
//!
//! The arguments are parsed by hand and before anything else of the lab runs, so that the measured process does as little work of its own
//! as possible.

use crate::suggestion;
use crate::workload::definition::Workload;
use crate::workload::meter::Meter;
use crate::workload::own_process::Usage;
use crate::workload::params::{Params, Scale};
use crate::workload::workload_record::WorkloadRecord;
use crate::workload::{catalogue, loaded_allocator};
use anyhow::{Context, Result, bail};
use std::process::ExitCode;

/// The argument that makes a workload run over the null allocator.
pub(crate) const NULL_ALLOCATOR: &str = "--null-allocator";

/// Runs the workload that `args` name and prints its record.
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
    on_null_allocator: bool,
    params: Vec<String>,
}

fn run(args: &[String]) -> Result<String> {
    let Request { workload, scale, on_null_allocator, params } = parse(args)?;
    let params = Params::resolve(workload.params, scale, &params)?;
    let body = if on_null_allocator {
        workload.run_on_null.with_context(|| format!("{} cannot run over the null allocator", workload.name))?
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
        malloc_library: loaded_allocator::malloc_library(),
        allocator_version: loaded_allocator::version(),
        on_null_allocator,
    };
    Ok(serde_json::to_string(&record)?)
}

fn parse(args: &[String]) -> Result<Request> {
    let mut args = args.iter();
    let name = args.next().context("which workload? `freestone bench --list` names them")?;
    let Some(workload) = catalogue::find(name) else {
        bail!(suggestion::unknown("workload", name, catalogue::ALL.iter().map(|workload| workload.name)));
    };
    let mut request = Request { workload, scale: Scale::Normal, on_null_allocator: false, params: Vec::new() };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => request.scale = Scale::Quick,
            "--full" => request.scale = Scale::Full,
            NULL_ALLOCATOR => request.on_null_allocator = true,
            "--param" => request.params.push(args.next().context("--param needs name=value after it")?.clone()),
            other if other.contains('=') => request.params.push(other.trim_start_matches("--").to_owned()),
            other => bail!("'{other}' is not understood; parameters are written name=value"),
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Request> {
        parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn scale_null_allocator_and_parameters_are_understood_in_any_order() {
        let request =
            parsed(&["tiny_hot", "ops=1", NULL_ALLOCATOR, "--param", "batch=2", "--quick", "--largest=8"]).unwrap();
        assert_eq!(request.workload.name, "tiny_hot");
        assert!(request.scale == Scale::Quick && request.on_null_allocator);
        assert_eq!(request.params, ["ops=1", "batch=2", "largest=8"]);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let error = |args: &[&str]| parsed(args).map(|_| ()).unwrap_err().to_string();
        assert!(error(&[]).contains("which workload?"));
        assert!(error(&["tiny_hat"]).contains("Did you mean tiny_hot"));
        assert!(error(&["tiny_hot", "fast"]).contains("'fast' is not understood"));
        assert!(error(&["tiny_hot", "--param"]).contains("--param needs name=value"));
    }

    #[test]
    fn a_workload_without_a_loop_of_its_own_refuses_the_null_allocator() {
        let error = run(&["startup".to_owned(), NULL_ALLOCATOR.to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "startup cannot run over the null allocator");
    }
}
