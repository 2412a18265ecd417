//! `freestone profile PID`: what a process holds that is running, and took requests from its start on.
//!
//! If it samples already, its profile is shown at once. Otherwise it samples for some seconds, and no longer than it is asked to.

use crate::command::profile::output::{Output, Shown};
use crate::heap_profile::dump;
use crate::heap_profile::named::NamedProfile;
use crate::heap_profile::page::Titled;
use crate::process::interrupt;
use crate::process::profiled_process::ProfiledProcess;
use anyhow::{Result, bail};
use freestone::door::profile_page::Request;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Shows what the process `pid` holds, sampled for `time` if it does not sample already.
///
/// # Errors
/// There is no such process, it takes no requests or ends, or a file cannot be written.
pub(super) fn show(pid: u32, time: Duration, output: &Output) -> Result<()> {
    let process = ProfiledProcess::attach(pid)?;
    let was_on = process.is_on()?;
    if !was_on {
        // Before the process is asked to begin: whatever ends the command later has it asked to stop.
        interrupt::listen();
        process.request(Request::Start)?;
        wait(&process, time)?;
    }
    let read = |request| process.profile(request, dump::read);
    let profiles = read(Request::Live).and_then(|live| read(Request::Peak).map(|peak| [live, peak]));
    if !was_on {
        process.request(Request::Stop)?;
    }
    let [now, peak] = profiles?.map(|profile| NamedProfile::new(&profile));
    output.present(&Shown {
        of: format!("{} ({pid})", process.name),
        main: Titled { title: "Now", profile: &now },
        other: Some(Titled { title: "At the peak", profile: &peak }),
        change: None,
        timeline: Vec::new(),
    })
}

/// Waits until the time is over, or the user ends it.
fn wait(process: &ProfiledProcess, time: Duration) -> Result<()> {
    eprintln!(
        "freestone: {} ({}) samples its allocations for {} s; Ctrl-C shows what there is before that",
        process.name,
        process.pid,
        time.as_secs_f64()
    );
    let begin = Instant::now();
    while begin.elapsed() < time && !interrupt::asked() {
        if !process.is_running() {
            bail!(
                "process {} ({}) has ended; it has written its profile itself, if it ended by exit",
                process.pid,
                process.name
            );
        }
        sleep(Duration::from_millis(50).min(time.saturating_sub(begin.elapsed())));
    }
    Ok(())
}
