//! How the `freestone` command treats what users type, and what it tells them: no separator, exit statuses, names, the terminal.

mod harness;

use harness::{command, file, freestone, holds, refuses, said, scratch, succeeded};

#[test]
fn a_command_needs_no_separator_and_keeps_its_own_options() {
    let output = freestone(&["run", "-a", "system", "echo", "-n", "--json", "one"]);
    holds(&succeeded(&output), &["freestone: echo ran under system"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--json one");
}

#[test]
fn the_summary_of_a_run_is_written_as_json_where_out_says_and_says_how_the_command_ended() {
    let out = file("summary.json");
    let output = freestone(&["run", "-a", "system", "-o", &out, "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(output.status.code(), Some(139));
    holds(&said(&output), &["ended by signal 11 (SIGSEGV)"]);
    let summary: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!((&summary["kernel"]["signal"], &summary["kernel"]["exit"]), (&11.into(), &139.into()), "{summary}");
    let output = freestone(&["run", "-a", "system", "-o", "/no/such/folder/x", "sh", "-c", "exit 139"]);
    assert_eq!(output.status.code(), Some(139), "the command's status counts");
    holds(&said(&output), &["exit status 139", "cannot be written to /no/such/folder/x"]);
}

#[test]
fn what_keeps_run_from_starting_the_command_has_the_statuses_of_env() {
    let status = |arguments: &[&str]| freestone(&[&["run"], arguments].concat()).status.code();
    assert_eq!(status(&["--no-such-option", "true"]), Some(125));
    assert_eq!(status(&["-a", "x=/no/such.so", "true"]), Some(125));
    assert_eq!(status(&["-a", "system", "/etc/passwd"]), Some(126));
    assert_eq!(status(&["-a", "system", "no-such-command"]), Some(127));
    assert_eq!((status(&["-a", "system", "sh", "-c", "exit 7"]), status(&["--help"])), (Some(7), Some(0)));
}

#[test]
fn a_setuid_command_is_judged_by_what_was_seen() {
    use std::os::unix::fs::PermissionsExt;
    // Its owner starts it, so it gets no more rights than it has, and the loader preloads into it.
    let copy = scratch().join("setuid-ls");
    std::fs::copy("/bin/ls", &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let copy = copy.to_str().unwrap();
    holds(&succeeded(&freestone(&["run", copy, "/"])), &["ran under freestone", "allocations"]);
    let out = file("setuid.jsonl");
    let compare = ["compare", "-a", "system,freestone", "--rounds", "1", "--no-report", "-o", &out, copy, "/"];
    let output = freestone(&compare);
    assert!(!succeeded(&output).contains("was not in the process"));
    holds(&String::from_utf8_lossy(&output.stdout), &["freestone"]);
}

#[test]
fn an_option_that_does_not_exist_is_named_as_typed_with_the_nearest() {
    refuses(&["bench", "larson", "-a", "freestone:hardn=checks"], &["'hardn'", "Did you mean harden"]);
    let output = command(&["options"]).env("FREESTONE_DECAI_MS", "5").output().unwrap();
    holds(&succeeded(&output), &["'FREESTONE_DECAI_MS'", "Did you mean FREESTONE_DECAY_MS"]);
    let output = command(&["options"]).env("FREESTONE_LIBRARY", "/x").env("FREESTONE_DECAY_MS", "5").output().unwrap();
    assert!(!succeeded(&output).contains("warning"));
}
