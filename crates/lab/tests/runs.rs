//! What counts as a run of a command: which allocator it has, how it may end, what it reads and what it leaves open.

mod harness;

use harness::{
    command, file, freestone, holds, installed, library, refuses, said, scratch, succeeded, without_permission_to_trace,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_command_does_not_inherit_an_allocator_that_the_user_preloads_but_other_libraries() {
    let library = library();
    let preloaded = format!("{} libm.so.6", library.display());
    for (allocator, list) in [("system", "libm.so.6"), ("freestone", &format!("{}:libm.so.6", library.display()))] {
        let mut run = command(&["run", "-a", allocator, "--", "sh", "-c", "echo $LD_PRELOAD"]);
        let output = run.env("LD_PRELOAD", &preloaded).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), list);
        let has_report = succeeded(&output).contains("library        freestone");
        assert_eq!(has_report, allocator == "freestone", "{}", said(&output));
    }
}

#[test]
fn a_run_that_fails_after_the_warm_up_is_not_measured_unless_failures_are_ignored() {
    let [count, out] = ["failing-later.count", "failing-later.jsonl"].map(file);
    // Under Freestone, the first run alone does not fail.
    let script = format!("case $LD_PRELOAD in *libfreestone*) [ ! -e {count} ] || kill -SEGV $$; touch {count};; esac");
    let measured = |options: &[&str]| {
        let _ = fs::remove_file(&count);
        let compare = ["compare", "-a", "system,freestone", "-r", "2", "--no-report", "-o", &out];
        let output = freestone(&[&compare, options, &["--", "sh", "-c", &script]].concat());
        (succeeded(&output), fs::read_to_string(&out).unwrap().matches(r#""allocator":"freestone","round""#).count())
    };
    let (told, n_runs) = measured(&[]);
    holds(&told, &["under freestone: ended by signal 11 (SIGSEGV)", "--ignore-failure"]);
    assert_eq!(n_runs, 0);
    assert_eq!(measured(&["--ignore-failure"]).1, 2);
}

#[test]
fn a_background_process_that_holds_the_output_counts_against_the_time_limit() {
    let options = ["compare", "-a", "system", "--timeout", "1", "--no-report", "--", "sh", "-c"];
    let output = freestone(&[&options[..], &["sleep 30 & echo hi"]].concat());
    assert_eq!(output.status.code(), Some(124), "{}", said(&output));
    holds(&said(&output), &["has ended, but a process that it started held its output for more than 1 s"]);
}

#[test]
fn the_output_of_a_command_is_not_kept_in_memory() {
    // More than the lab may have.
    let shell = "ulimit -v 1000000; exec \"$0\" \"$@\"";
    let compare = ["compare", "-a", "system", "-r", "1", "--no-report", "--", "head", "-c", "1200000000", "/dev/zero"];
    let mut lab = Command::new("sh");
    lab.args(["-c", shell, env!("CARGO_BIN_EXE_freestone")]).args(compare).current_dir(scratch());
    succeeded(&lab.output().unwrap());
}

#[test]
fn where_tracing_is_forbidden_a_command_is_measured_and_a_warning_says_that_it_was_not_watched() {
    let options = ["compare", "-a", "system,freestone", "-r", "1", "--no-report", "-o", &file("not-watched.jsonl")];
    let output = without_permission_to_trace(&[&options[..], &["--", "ls"]].concat());
    let told = succeeded(&output);
    holds(&told, &["ls: the command could not be watched, so whether each allocator was in it is not known"]);
    assert!(!told.contains("was not in the process"), "{told}");
    holds(&String::from_utf8_lossy(&output.stdout), &["freestone"]);
}

#[test]
fn a_command_keeps_its_status_and_figures_if_nothing_can_be_written() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_freestone")]);
    let output = shell.args(["run", "-a", "system", "--", "sh", "-c", "exit 7"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    holds(&said(&output), &["exit status 7", "peak RSS"]);
}

/// An empty folder for the temporary files of one run.
fn empty(name: &str) -> PathBuf {
    let folder = scratch().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_process_of_a_recorded_workload_leaves_nothing_when_it_is_killed() {
    let temporary = empty("killed-replay");
    let options = ["bench", "trace_sqlite", "-a", "system", "-r", "1", "--timeout", "1", "--no-report"];
    let mut bench = command(&[&options[..], &["-p", "trace_sqlite.ops=100000000"]].concat());
    let output = bench.env("TMPDIR", &temporary).output().unwrap();
    holds(&said(&output), &["took longer than 1 s"]);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_signal_while_a_server_starts_ends_it() {
    let temporary = empty("starting-server");
    let [script, pipe] = ["starting-server.sh", "starting-server.pipe"].map(file);
    fs::write(&script, format!("echo $$ > {pipe}; exec sleep 1000")).unwrap();
    let _ = fs::remove_file(&pipe);
    succeeded(&Command::new("mkfifo").arg(&pipe).output().unwrap());
    let server = format!("sh {script}");
    let options = ["compare", "-a", "system", "--server", &server, "--server-wait", "200000", "--no-report"];
    let mut lab = command(&[&options[..], &["--", "true"]].concat());
    let lab = lab.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let server = fs::read_to_string(&pipe).unwrap();
    let asked = Instant::now();
    succeeded(&Command::new("kill").arg(lab.id().to_string()).output().unwrap());
    let output = lab.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + libc::SIGTERM), "{}", said(&output));
    assert!(asked.elapsed() < Duration::from_secs(100));
    // The arguments of a process are gone when it is, whether or not it has been waited for.
    let is_there = || fs::read(format!("/proc/{}/cmdline", server.trim())).is_ok_and(|words| !words.is_empty());
    while is_there() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn each_run_reads_the_input_from_its_beginning_and_input_that_nobody_reads_is_said() {
    let input = file("input.txt");
    fs::write(&input, "one\ntwo\n").unwrap();
    let script = "[ \"$(cat | wc -l)\" = \"$0\" ]";
    let compare = |options: &[&str], lines: &str| {
        let compare = ["compare", "-a", "system", "-r", "2", "--no-report", "-o", &file("input.jsonl")];
        let mut compare = command(&[&compare[..], options, &["--", "sh", "-c", script, lines]].concat());
        succeeded(&compare.stdin(fs::File::open(&input).unwrap()).output().unwrap())
    };
    assert!(!compare(&["--input", &input], "2").contains("the command got no input"));
    holds(&compare(&[], "0"), &["the command got no input", "--input FILE"]);
    refuses(&["compare", "--input", "/no/such/file", "--", "true"], &["--input /no/such/file cannot be read"]);
}

#[test]
fn options_in_the_environment_are_in_the_results_and_said() {
    let out = file("options.jsonl");
    let options =
        ["bench", "tiny_hot", "-a", "freestone", "-r", "1", "-p", "tiny_hot.ops=1000", "--no-report", "-o", &out];
    let bench = |value: Option<&str>| {
        let mut bench = command(&options);
        bench.env_remove("FREESTONE_HARDEN").envs(value.map(|value| ("FREESTONE_HARDEN", value)));
        (succeeded(&bench.output().unwrap()), fs::read_to_string(&out).unwrap())
    };
    let (told, results) = bench(Some("full"));
    holds(&told, &["the environment sets FREESTONE_HARDEN=full, which counts in all runs under Freestone"]);
    holds(&results, &[r#""environment":[["FREESTONE_HARDEN","full"]]"#]);
    assert!(!bench(None).0.contains("the environment sets"));
}

#[test]
fn a_server_that_crashes_while_its_client_runs_has_no_figures() {
    let script = file("crashing-server.sh");
    fs::write(&script, "sleep 0.2; kill -SEGV $$").unwrap();
    let server = format!("sh {script}");
    let options = ["compare", "-a", "system", "-r", "1", "--server", &server, "--server-wait", "1", "--no-report"];
    let out = file("crashing-server.jsonl");
    let compare = [&options[..], &["-o", &out]].concat();
    let client = ["--", "sleep", "0.6"];
    refuses(&[&compare[..], &client].concat(), &["ended by signal 11 (SIGSEGV): that is how the server ended"]);
    succeeded(&freestone(&[&compare[..], &["--ignore-failure"], &client].concat()));
}

#[test]
fn what_fails_under_the_first_allocator_is_not_what_the_others_are_to_agree_with() {
    let script = "case $LD_PRELOAD in *freestone*) echo no; exit 1;; esac; echo yes";
    let out = file("first-fails.jsonl");
    let options = ["compare", "-a", "freestone,system", "-r", "1", "--no-report", "-o", &out];
    let told = succeeded(&freestone(&[&options[..], &["--", "sh", "-c", script]].concat()));
    holds(&told, &["under freestone: exit status 1"]);
    assert!(!told.contains("differs from the baseline's"), "{told}");
}

/// A library with a `malloc` that writes down which programs it is in.
const WITNESS: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
void *__libc_malloc(size_t);
void *malloc(size_t size) { return __libc_malloc(size); }
__attribute__((constructor)) static void begin(void) {
    char name[256];
    long length = readlink("/proc/self/exe", name, sizeof name - 1);
    int file = open(getenv("WITNESS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    name[length] = '\n';
    write(file, name, length + 1);
    close(file);
}
"#;

#[test]
fn the_programs_of_the_suite_run_under_the_c_librarys_allocator_although_the_lab_runs_under_another() {
    if !installed("cc") || !installed("perl") {
        return;
    }
    let [source, library, seen] = ["witness.c", "witness.so", "witness.txt"].map(file);
    fs::write(&source, WITNESS).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).output().unwrap();
    succeeded(&compiled);
    let _ = fs::remove_file(&seen);
    let options = ["bench", "--programs", "perl", "-a", "system", "-r", "1", "--no-report"];
    let out = file("witness.jsonl");
    let mut bench = command(&[&options[..], &["-o", &out]].concat());
    succeeded(&bench.env("LD_PRELOAD", &library).env("WITNESS", &seen).output().unwrap());
    let programs = fs::read_to_string(&seen).unwrap();
    holds(&programs, &["/freestone\n"]);
    assert!(!programs.contains("/perl"), "{programs}");
}

#[test]
fn results_for_a_device_are_measured_and_shown_and_have_no_page() {
    let options = ["bench", "tiny_hot", "-a", "system", "-r", "1", "-p", "tiny_hot.ops=1000", "-o", "/dev/null"];
    let told = succeeded(&freestone(&options));
    assert!(!told.contains("report:"), "{told}");
}

#[test]
fn a_program_of_the_suite_that_is_interrupted_has_not_failed() {
    let [folder, pipe] = ["interrupted-program", "interrupted-program.pipe"].map(|name| scratch().join(name));
    fs::create_dir_all(&folder).unwrap();
    let _ = fs::remove_file(&pipe);
    succeeded(&Command::new("mkfifo").arg(&pipe).output().unwrap());
    fs::write(folder.join("jq"), format!("#!/bin/sh\necho > {}; exec sleep 1000\n", pipe.display())).unwrap();
    fs::set_permissions(folder.join("jq"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut bench = command(&["bench", "--programs", "jq", "-a", "system", "-o", &file("interrupted-program.jsonl")]);
    bench.env("PATH", format!("{}:/usr/bin:/bin", folder.display())).stdout(Stdio::null()).stderr(Stdio::piped());
    let bench = bench.spawn().unwrap();
    fs::read(&pipe).unwrap();
    succeeded(&Command::new("kill").arg(bench.id().to_string()).output().unwrap());
    let told = said(&bench.wait_with_output().unwrap());
    holds(&told, &["interrupted before anything was measured"]);
    assert!(!told.contains("jq under system"), "{told}");
}
