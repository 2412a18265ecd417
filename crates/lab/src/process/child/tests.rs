use super::*;
use crate::scratch_file::ScratchFile;
use std::fs;

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

#[test]
fn output_and_status_of_a_child_are_kept() {
    let finished = run(&mut shell("echo out; echo err >&2; exit 3"), Duration::from_secs(60)).unwrap();
    assert!(matches!(finished.end, End::Exited(status) if status.code() == Some(3)));
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn more_output_than_a_pipe_holds_does_not_block_the_child() {
    let finished =
        run(&mut shell("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"), Duration::from_secs(60)).unwrap();
    assert_eq!((finished.stdout.len(), finished.stderr.len()), (300_000, 300_000));
}

#[test]
fn a_child_that_takes_too_long_is_killed_with_what_it_started() {
    for end in ["sleep 1000", "exit"] {
        let file = ScratchFile::new("sleeper").unwrap();
        let script = format!("sleep 1000 & echo $! > {}; {end}", file.path().display());
        let finished = run(&mut shell(&script), Duration::from_millis(500)).unwrap();
        assert!(matches!(finished.end, End::TimedOut), "{end}");
        let sleeper = fs::read_to_string(file.path()).unwrap();
        // The arguments of a process are gone when it is, whether or not it has been waited for.
        let is_there = || fs::read(format!("/proc/{}/cmdline", sleeper.trim())).is_ok_and(|words| !words.is_empty());
        while is_there() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn the_output_of_what_a_child_started_belongs_to_it() {
    let finished = run(&mut shell("{ sleep 0.1; echo late; } & echo early"), Duration::from_secs(60)).unwrap();
    assert!(matches!(finished.end, End::Exited(_)));
    assert_eq!(finished.stdout, b"early\nlate\n");
}

#[test]
fn of_more_errors_than_are_kept_the_last_ones_are() {
    let script = format!("head -c {} /dev/zero >&2; echo end >&2", 3 * KEPT_ERRORS);
    let finished = run(&mut shell(&script), Duration::from_secs(60)).unwrap();
    assert!(finished.stderr.len() <= KEPT_ERRORS && finished.stderr.ends_with(b"end\n"));
}

/// A process outside the child's group survives its end, and may hold the pipes.
#[test]
fn output_that_cannot_be_closed_is_left_alone_at_the_limit() {
    let mut command = shell("setsid sleep 5 & exit");
    assert!(matches!(run(&mut command, Duration::from_millis(300)).unwrap().end, End::TimedOut));
}

#[test]
fn a_command_that_does_not_exist_is_an_error() {
    assert!(run(&mut Command::new("/no/such/command"), Duration::from_secs(1)).is_err());
}
