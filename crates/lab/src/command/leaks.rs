//! `freestone leaks`: the blocks that a command lost, found when its processes end.
//!
//! The command keeps its terminal, its input and its exit status. The report goes to stderr, because stdout belongs to the command, or to a file.

use crate::allocator::{preloading, selection};
use crate::leaks::attached::Attached;
use crate::leaks::examination;
use crate::leaks::findings::Findings;
use crate::leaks::stopped::StoppedProcess;
use crate::leaks::suppressions::Suppressions;
use crate::leaks::tracer::Tracer;
use crate::process::command_file::{self, Refusal};
use crate::process::{interrupt, proc_file};
use crate::show::{command_line, quantity};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The options of `freestone leaks`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Another build of Freestone to run under: NAME=PATH; or freestone; and then :OPTION=VALUE for each option
    #[arg(short, long = "allocator", value_name = "NAME=PATH", default_value = "freestone")]
    allocator: String,
    /// Exit with this status if blocks are definitely lost [default: that of the command]
    #[arg(long, value_name = "STATUS")]
    error_exitcode: Option<u8>,
    /// Whose stacks are recorded, by the sampling profiler; `all` takes a few times as long [default: sampled, or all with --suppressions]
    #[arg(long, value_enum)]
    stacks: Option<Stacks>,
    /// Leaks that are known: lines of leak:PATTERN, as LeakSanitizer reads them; they apply to blocks with stacks
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
    /// Also show the blocks that are still reachable
    #[arg(long)]
    show_reachable: bool,
    /// Write the report to this file instead of stderr
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    /// Examine this process as it is now, and let it go on; it has to run under Freestone, or be linked with it
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<i32>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "pid")]
    command: Vec<OsString>,
}

/// Which blocks have stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Stacks {
    /// None
    None,
    /// One in 512 KiB of allocations
    Sampled,
    /// All
    All,
}

/// What was found in a process, or why nothing could be.
type Examined = (i32, String, Result<Findings>);

/// Runs the command; returns the exit status.
///
/// # Errors
/// The command cannot be run or traced, or the library was in none of its processes.
pub(crate) fn main(options: &Options) -> Result<u8> {
    let suppressions = options.suppressions.as_deref().map(Suppressions::read).transpose()?.unwrap_or_default();
    if let Some(pid) = options.pid {
        return living(options, pid, &suppressions);
    }
    let Some(program) = options.command.first() else { bail!("no command was given") };
    let path = command_file::find(program)?;
    let mut command = prepare(options, program, &path)?;
    interrupt::keep_for_the_command();
    let mut tracer = Tracer::start(&mut command).with_context(|| command_line::quoted(&options.command))?;
    let mut examined = Vec::new();
    let exit = tracer.run(|process| examined.push(examine(process, &suppressions)))?;
    interrupt::continue_when_the_reader_is_gone();
    // The command has run: a file that cannot be written changes nothing about its exit status.
    if let Err(error) = report(options, &examined, Some(exit)) {
        eprintln!("freestone: {error:#}");
    }
    if !examined.iter().any(|(_, _, found)| found.is_ok()) {
        let why = preloading::obstacle(&path).map_or_else(
            || "no process of it ended with the library in it; does it clear its environment?".to_owned(),
            |obstacle| obstacle.to_string(),
        );
        let message = format!("nothing is known of the leaks of {}: {why}", path.display());
        return Err(Refusal::after_the_command(exit, message).into());
    }
    let status = exit.clamp(0, 255) as u8;
    Ok(if has_leaks(&examined) { options.error_exitcode.unwrap_or(status) } else { status })
}

/// Examines a living process, which goes on then.
fn living(options: &Options, pid: i32, suppressions: &Suppressions) -> Result<u8> {
    let attached = Attached::stop(pid)?;
    let examined = examine(attached.process(), suppressions);
    drop(attached);
    if let (_, name, Err(why)) = &examined {
        bail!("{name} ({pid}) cannot be examined: {why:#}");
    }
    let examined = [examined];
    report(options, &examined, None)?;
    Ok(if has_leaks(&examined) { options.error_exitcode.unwrap_or(0) } else { 0 })
}

fn has_leaks(examined: &[Examined]) -> bool {
    examined.iter().any(|(_, _, found)| found.as_ref().is_ok_and(Findings::has_leaks))
}

/// Writes the report to where it is to go; to stderr if that cannot be written.
///
/// # Errors
/// The file cannot be written.
fn report(options: &Options, examined: &[Examined], exit: Option<i32>) -> Result<()> {
    let text = if options.json { to_json(examined, exit) } else { to_text(examined, options.show_reachable) };
    let written = match &options.out {
        Some(file) => {
            let written = fs::write(file, &text);
            written.with_context(|| format!("the report is above, because {} cannot be written", file.display()))
        }
        None => Ok(()),
    };
    if options.out.is_none() || written.is_err() {
        eprint!("{text}");
    }
    let lost_without_stack: u64 =
        examined.iter().filter_map(|(_, _, found)| found.as_ref().ok()).map(Findings::lost_without_stack).sum();
    if options.suppressions.is_some() && lost_without_stack > 0 {
        eprintln!(
            "warning: nothing suppresses lost blocks without a stack: {}; --stacks all records those of a command",
            quantity::count(lost_without_stack)
        );
    }
    written
}

/// The command, with the library and its options in its environment.
fn prepare(options: &Options, program: &OsString, path: &Path) -> Result<Command> {
    let allocator = selection::select_one(&options.allocator)?;
    let Some(library) = allocator.library.clone() else {
        bail!("{}", selection::only_freestone("leaks are found"));
    };
    let mut preload = library.into_os_string();
    if let Some(inherited) = std::env::var_os("LD_PRELOAD").filter(|inherited| !inherited.is_empty()) {
        preload.push(":");
        preload.push(inherited);
    }
    let mut command = Command::new(path);
    command.arg0(program).args(&options.command[1..]);
    command.envs(allocator.environment.iter().map(|(name, value)| (name, value)));
    // At other levels of hardening the heap does not tell live blocks from free ones.
    command.env("LD_PRELOAD", preload).env("FREESTONE_HARDEN", "default").env_remove("FREESTONE_GUARD_SAMPLE");
    // Only what has a stack can be known.
    let default = if options.suppressions.is_some() { Stacks::All } else { Stacks::Sampled };
    let interval = match options.stacks.unwrap_or(default) {
        Stacks::None => return Ok(command),
        Stacks::Sampled => "512k",
        Stacks::All => "1",
    };
    command.env("FREESTONE_HEAP_PROFILE", "on").env("FREESTONE_HEAP_PROFILE_INTERVAL", interval);
    // The stacks are read from the process: no file is needed.
    command.env("FREESTONE_HEAP_PROFILE_FILE", "/dev/null");
    Ok(command)
}

fn examine(process: &StoppedProcess, suppressions: &Suppressions) -> Examined {
    let name = proc_file::read(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
    let found = examination::examine(process).map(|mut findings| {
        findings.suppress(suppressions);
        findings
    });
    (process.pid, name.trim().to_owned(), found)
}

fn to_text(examined: &[Examined], show_reachable: bool) -> String {
    let mut text = String::new();
    for (pid, name, found) in examined {
        // Writing to a string does not fail.
        let _ = match found {
            Ok(findings) => {
                writeln!(text, "\nfreestone: leaks of {name} ({pid})\n{}", findings.to_text(show_reachable))
            }
            Err(why) => writeln!(text, "\nfreestone: {name} ({pid}) was not examined: {why:#}"),
        };
    }
    text
}

fn to_json(examined: &[Examined], exit: Option<i32>) -> String {
    let process = |(pid, name, found): &Examined| -> Value {
        match found {
            Ok(findings) => json!({"pid": pid, "name": name, "findings": findings.to_json()}),
            Err(why) => json!({"pid": pid, "name": name, "error": format!("{why:#}")}),
        }
    };
    format!("{}\n", json!({"exit": exit, "processes": examined.iter().map(process).collect::<Vec<_>>()}))
}
