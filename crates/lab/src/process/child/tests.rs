use super::*;

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
    // The pipes are held open by the inner sleep too, so `run` returns only if that is killed as well.
    let finished = run(&mut shell("sleep 1000 & echo begun; sleep 1000"), Duration::from_millis(200)).unwrap();
    assert!(matches!(finished.end, End::TimedOut));
}

#[test]
fn a_command_that_does_not_exist_is_an_error() {
    assert!(run(&mut Command::new("/no/such/command"), Duration::from_secs(1)).is_err());
}
