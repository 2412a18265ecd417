//! `freestone leaks --pid` on processes that are running, and go on then.

mod harness;

use harness::{command, freestone, holds, leaks_program, refuses, said, succeeded, without_permission_to_trace};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A case that goes on until it is killed, and its process.
fn living(case: &str) -> (Child, String) {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| leaks_program("leaks-living", &[]).expect("g++ is part of the tests"));
    let program = built.to_str().unwrap();
    let mut run = command(&["run", "--", program, case]);
    let mut lab = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(lab.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (lab, line.trim().to_owned())
}

fn status_of_killed(mut lab: Child, pid: &str) -> Option<i32> {
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    lab.wait().unwrap().code()
}

#[test]
fn a_process_that_is_examined_loses_no_signal() {
    let (lab, pid) = living("raising");
    for _ in 0..20 {
        succeeded(&freestone(&["leaks", "--pid", &pid]));
    }
    assert_eq!(status_of_killed(lab, &pid), Some(7));
}

#[test]
fn a_process_whose_first_thread_has_ended_is_examined() {
    let (lab, pid) = living("without_first_thread");
    let has_ended = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ");
    while !has_ended() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    holds(&succeeded(&freestone(&["leaks", "--pid", &pid])), &["definitely lost  64.0 B in 1 block"]);
    assert_eq!(status_of_killed(lab, &pid), Some(128 + 15));
}

#[test]
fn a_living_process_is_examined_and_goes_on() {
    let (lab, pid) = living("living");
    let output = freestone(&["leaks", "--pid", &pid, "--error-exitcode", "9"]);
    holds(&said(&output), &["definitely lost  64.0 B in 1 block"]);
    assert_eq!(output.status.code(), Some(9));
    let refused = without_permission_to_trace(&["leaks", "--pid", &pid]);
    assert!(!refused.status.success());
    holds(&said(&refused), &["cannot be traced", &pid, "/proc/sys/kernel/yama/ptrace_scope"]);
    assert_eq!(status_of_killed(lab, &pid), Some(128 + 15));
    refuses(&["leaks", "--pid", "999999999"], &["no process 999999999"]);
    refuses(&["leaks", "--pid", &std::process::id().to_string()], &["the library is not in it"]);
}
