//! `freestone profile -- CMD`: a command with the profiler on, and what its processes held.
//!
//! Each process writes two dumps when it exits: what was live at its peak, and what is live then. The one that held most is shown.

use crate::allocator::{option_value, preloading, selection};
use crate::command::profile::dumps::RunDumps;
use crate::command::profile::living;
use crate::command::profile::output::{Output, Shown};
use crate::heap_profile::named::NamedProfile;
use crate::heap_profile::page::Titled;
use crate::process::command_file::{self, Refusal};
use crate::process::command_record::CommandRecord;
use crate::process::{command_run, interrupt};
use crate::scratch_file::ScratchFolder;
use crate::show::command_line;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of a run.
#[derive(clap::Args)]
pub(super) struct RunOptions {
    /// Another build of Freestone to run under: NAME=PATH; or freestone; and then :OPTION=VALUE for each option
    #[arg(short, long = "allocator", value_name = "NAME=PATH", default_value = "freestone")]
    allocator: String,
    /// One byte in so many is sampled, on average; 1 samples all that there is room for
    #[arg(long, value_name = "BYTES", default_value = "512k", value_parser = option_value::sampling_interval)]
    interval: String,
    /// Keep the dumps of all processes in this folder, beside those of other runs
    #[arg(long, value_name = "FOLDER")]
    dumps: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// With a PID: seconds for which a process samples that does not do so already
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// The command and its arguments; or the number of a process that was started with FREESTONE_HEAP_PROFILE=ready
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND|PID")]
    command: Vec<OsString>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("from 0 to 86400".into()),
    }
}

/// Runs the command, or asks the process; returns the exit status.
///
/// # Errors
/// The command cannot be run, or left no profile.
pub(super) fn run(options: &RunOptions) -> Result<u8> {
    let Some(program) = options.command.first() else { bail!("no command was given") };
    if let (1, Some(pid)) = (options.command.len(), program.to_str().and_then(|text| text.parse().ok())) {
        return living::show(pid, Duration::from_secs_f64(options.seconds), &options.output).map(|()| 0);
    }
    let path = command_file::find(program).map_err(|error| match program.to_str().map(str::parse::<u32>) {
        Some(Ok(pid)) => {
            let message = format!("options come before the number of a process: freestone profile OPTIONS {pid}");
            Refusal::new(error.status, message)
        }
        _ => error,
    })?;
    let mut allocator = selection::select_one(&options.allocator)?;
    if allocator.library.is_none() {
        bail!("{}", selection::only_freestone("profiles are made"));
    }
    let scratch = ScratchFolder::new("profile")?;
    let folder = match &options.dumps {
        Some(folder) => std::path::absolute(folder)?,
        None => scratch.path().to_path_buf(),
    };
    if folder.to_str().is_none() {
        bail!("{} is not UTF-8; choose another: --dumps FOLDER", folder.display());
    }
    fs::create_dir_all(&folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    let variable = |name: &str, value: OsString| (format!("FREESTONE_HEAP_PROFILE{name}"), value);
    let dumps = RunDumps::in_folder(&folder)?;
    allocator.environment.extend([
        variable("", "on".into()),
        variable("_INTERVAL", options.interval.clone().into()),
        variable("_FILE", dumps.pattern()),
    ]);
    interrupt::keep_for_the_command();
    let record = command_run::run_attached(&options.command, allocator.preload(), |_| {})?;
    interrupt::continue_when_the_reader_is_gone();
    show(options, &dumps, &path, &record)
        .map_err(|error| Refusal::after_the_command(record.exit, format!("{error:#}")))?;
    Ok(record.exit.clamp(0, 255) as u8)
}

/// Shows the dumps of the process that held most. `path` is the command's file, and `record` how it ended.
fn show(options: &RunOptions, dumps: &RunDumps<'_>, path: &Path, record: &CommandRecord) -> Result<()> {
    let processes = dumps.read()?;
    let Some((pid, dumps)) = processes.iter().max_by_key(|(_, dumps)| dumps.weight()) else {
        let why = match preloading::obstacle(path) {
            Some(obstacle) => obstacle.to_string(),
            None if record.exit > 128 => format!("{}, before it could write one", record.ending()),
            None => "it allocated nothing, or none of its processes that did ended through exit".to_owned(),
        };
        bail!("{} left no profile: {why}", path.display());
    };
    if processes.len() > 1 {
        eprintln!("freestone: {} processes left profiles; this is process {pid}, which held most", processes.len());
    }
    let [peak, end] = [&dumps.at_peak, &dumps.at_end].map(NamedProfile::new);
    options.output.present(&Shown {
        of: command_line::quoted(&options.command),
        main: Titled { title: "At the peak", profile: &peak },
        other: Some(Titled { title: "At the end", profile: &end }),
        change: None,
        timeline: Vec::new(),
    })
}
