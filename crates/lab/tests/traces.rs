//! `freestone record`, `trace` and `replay` from a user's point of view, with C programs.

mod harness;

use harness::{command, figures, file, freestone, holds, names_beside, printed, program, refuses, said, succeeded};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;

/// What a figure is in each of the results.
fn numbers<'a>(results: &'a str, name: &str) -> impl Iterator<Item = f64> + 'a {
    let after = results.split(&format!("\"{name}\":")).skip(1).collect::<Vec<_>>();
    after.into_iter().map(|rest| rest.split([',', '}']).next().and_then(|text| text.parse().ok()).expect("a number"))
}

/// A queue of blocks between two threads.
const PASSING: &str = r"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void *passed[1000];
static pthread_barrier_t barrier;
static void *frees(void *unused) {
    for (int round = 0; round < 20; round++) {
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 1000; i++) free(passed[i]);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, frees, NULL);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 1000; i++) passed[i] = malloc(3000 + i);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, NULL);
    return 7;
}";

#[test]
fn a_program_is_recorded_looked_at_and_replayed_with_the_same_peak() {
    let Some(program) = program("passing", PASSING) else { return };
    let trace = file("passing.trace");
    let recorded = command(&["record", "-o", &trace, "--", &program]).output().expect("the lab runs");
    assert_eq!(recorded.status.code(), Some(7), "the command's status: {}", said(&recorded));
    holds(&said(&recorded), &["recorded ", " calls of ", "live"]);

    let seen = figures(&trace);
    let of = |name: &str| seen["figures"][name].as_u64().expect("a number");
    assert!(of("passed_blocks") >= 20_000 && of("allocations") >= 20_000);
    assert!(of("peak_live_bytes") >= 3_000_000 && of("live_at_end_bytes") < 100_000, "{seen}");
    assert_eq!((seen["frees_of_unrecorded_blocks"].as_u64(), seen["unrecorded_frees"].as_u64()), (Some(0), Some(0)));
    holds(&printed(&["trace", &trace]), &["peak live", "Sizes", "Lifetimes", "Threads"]);

    for order in ["turns", "free"] {
        let out = file(&format!("passing-{order}.jsonl"));
        let arguments = ["replay", &trace, "-a", "system", "-r", "2", "--no-report", "--order", order, "--out", &out];
        holds(&printed(&arguments), &["passing.trace", "calls, at most"]);
        let results = fs::read_to_string(&out).expect("results");
        if order == "turns" {
            holds(&results, &[&format!("\"replayed_peak_live_bytes\":{}.0", of("peak_live_bytes"))]);
        }
        // Threads that count blocks at once lose no count: more were freed than are allocated, else.
        for (peak, density) in numbers(&results, "replayed_peak_live_bytes").zip(numbers(&results, "live / RSS, mean"))
        {
            assert!(peak < 100e6 && density < 1.0, "{order}: {results}");
        }
    }
}

/// Holds 160 MiB in small blocks.
const HOLDING: &str = r"
#include <stdlib.h>
#include <string.h>
int main(void) {
    for (int i = 0; i < 160 << 10; i++) memset(malloc(1000), 1, 1000);
    return 0;
}";

#[test]
fn a_replay_leaves_no_plan_if_nobody_reads_the_output() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/traces/sqlite.trace.gz");
    let (out, temporary) = (file("unread-replay.jsonl"), file("unread-replay"));
    let _ = fs::remove_dir_all(&temporary);
    fs::create_dir_all(&temporary).expect("a folder");
    let mut replay = command(&["replay", trace, "-a", "system", "-r", "1", "--no-report", "--out", &out]);
    replay.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = replay.spawn().expect("it runs");
    drop((process.stdout.take(), process.stderr.take()));
    let status = process.wait().expect("it ends");
    let left: Vec<_> = fs::read_dir(&temporary).expect("the folder is there").flatten().collect();
    assert!(left.is_empty(), "{status}: {left:?}");
    refuses(&["replay", trace, "--repeat", "18446744073709551615"], &["--repeat", "1..=1099511627776"]);
}

#[test]
fn a_replay_under_the_recorded_allocator_is_as_large_as_the_program_was() {
    let Some(program) = program("holding", HOLDING) else { return };
    let (trace, out) = (file("holding.trace"), file("holding.jsonl"));
    succeeded(&command(&["record", "-o", &trace, "--", &program]).output().expect("the lab runs"));
    printed(&["replay", &trace, "-a", "freestone", "-r", "1", "--no-report", "--out", &out]);
    let results = fs::read_to_string(&out).expect("results");
    let replayed = numbers(&results, "peak_rss_bytes").next().expect("a replay says how large it was");
    let recorded = figures(&trace)["peak_rss_bytes"].as_f64();
    let ratio = replayed / recorded.expect("a number");
    assert!((0.9..1.1).contains(&ratio), "{ratio}: {replayed}");
}

#[test]
fn a_stripped_trace_has_the_same_figures_and_a_plot_is_a_picture() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/traces/sqlite.trace.gz");
    let (stripped, plot) = (file("stripped.trace"), file("live.svg"));
    succeeded(&freestone(&["trace", trace, "--strip", &stripped, "--plot", &plot]));
    assert_eq!(figures(trace)["figures"], figures(&stripped)["figures"]);
    holds(&fs::read_to_string(&plot).expect("a plot"), &["<svg", "Live memory of sqlite3"]);
}

#[test]
fn the_files_of_a_trace_are_there_also_if_nobody_reads_the_output() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/traces/sqlite.trace.gz");
    let files = [file("unread.trace"), file("unread.svg")];
    let mut process = command(&["trace", trace, "--strip", &files[0], "--plot", &files[1]])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(process.stdout.take());
    assert_eq!(process.wait().expect("it ends").signal(), Some(libc::SIGPIPE));
    assert!(files.iter().all(|file| fs::metadata(file).is_ok_and(|file| file.len() > 1000)));
}

#[test]
fn what_is_wrong_with_a_trace_is_one_sentence() {
    let whole = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/traces/sqlite.trace.gz"));
    let stripped = file("whole.trace");
    let packed = file("packed.gz");
    fs::write(&packed, whole.expect("the trace")).expect("the folder can be written");
    succeeded(&freestone(&["trace", &packed, "--strip", &stripped]));
    let bytes = fs::read(&stripped).expect("the trace");
    let written = |name: &str, bytes: &[u8]| {
        let path = file(name);
        fs::write(&path, bytes).expect("the folder can be written");
        path
    };
    refuses(&["trace", "/no/such.trace"], &["/no/such.trace", "cannot be read"]);
    refuses(&["replay", &written("text", b"hello"), "-a", "system"], &["this is no trace of Freestone"]);
    refuses(&["trace", &written("head", &bytes[..100])], &["ends inside its header"]);
    let mut other = bytes.clone();
    other[8] = 9;
    refuses(&["trace", &written("other", &other)], &["version 9", "version 1"]);
    let cut = freestone(&["trace", &written("cut", &bytes[..100_000])]);
    holds(&said(&cut), &["the file is cut short"]);
    let mut damaged = bytes;
    damaged[50_000] ^= 0x55;
    let damaged = freestone(&["trace", &written("damaged", &damaged)]);
    holds(&said(&damaged), &["damaged"]);
    for shown in [&cut, &damaged] {
        holds(&String::from_utf8_lossy(&shown.stdout), &["peak live"]);
    }
    assert!(cut.status.success() && damaged.status.success(), "what there is is shown");
}

#[test]
fn a_file_that_is_no_trace_is_not_replaced() {
    let path = file("letter");
    fs::write(&path, "dear reader").expect("the folder can be written");
    refuses(&["record", "-o", &path, "--", "true"], &["exists and is no trace"]);
    assert_eq!(fs::read(Path::new(&path)).expect("it exists"), b"dear reader");
}

#[test]
fn a_recording_takes_no_files_but_the_trace_that_it_replaces() {
    let trace = file("kept.trace");
    let dated = format!("{trace}.20261126");
    for path in [&trace, &dated] {
        let _ = fs::remove_file(path);
    }
    let record = || command(&["record", "-o", &trace, "--", "sort", "/dev/null"]);
    succeeded(&record().output().expect("the lab runs"));
    fs::copy(&trace, &dated).expect("a copy");
    let first = fs::read(&trace).expect("a trace");
    let nothing = record().env("FREESTONE_SANDBOX", "on").output().expect("the lab runs");
    holds(&said(&nothing), &["left no trace"]);
    assert_eq!((nothing.status.success(), fs::read(&trace).expect("it is kept")), (false, first.clone()));
    let summary = succeeded(&record().output().expect("the lab runs"));
    assert_eq!(summary.matches("recorded ").count(), 1, "{summary}");
    assert_ne!(fs::read(&trace).expect("a trace"), first);
    assert_eq!(fs::read(&dated).expect("the copy is kept"), first);
    assert!(!names_beside(&trace).iter().any(|name| name.ends_with(".recording")), "the folder of the run is gone");
}

#[test]
fn of_a_program_that_ends_through_exit_without_handlers_no_end_by_a_signal_is_claimed() {
    let source = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { free(malloc(10)); _exit(0); }";
    let Some(program) = program("quick", source) else { return };
    let summary = succeeded(&freestone(&["record", "-o", &file("quick.trace"), "--", &program]));
    holds(&summary, &["warning: the program ended through _exit or by a signal, ", "goes on to its last calls"]);
}

#[test]
fn two_recordings_at_once_into_one_name_leave_both_traces() {
    let trace = file("both.trace");
    for old in names_beside(&trace) {
        fs::remove_file(file(&old)).expect("an old trace");
    }
    // It has recorded before the second begins, and reads until that has ended.
    let mut first = command(&["record", "-o", &trace, "--", "sh", "-c", "sort /dev/null; echo begun; read line; true"]);
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut begun = [0; 6];
    first.stdout.as_mut().expect("a pipe").read_exact(&mut begun).expect("it has begun");
    let second = succeeded(&command(&["record", "-o", &trace, "--", "sort", "/dev/null"]).output().expect("it runs"));
    assert_eq!((second.matches("recorded ").count(), second.contains("of sort")), (1, true), "{second}");
    let after_second = fs::read(&trace).expect("its trace");
    let first = succeeded(&first.wait_with_output().expect("it ends"));
    assert_eq!((first.matches("recorded ").count(), first.contains("of sh")), (2, true), "{first}");
    assert_eq!(fs::read(&trace).expect("it is kept"), after_second);
    assert_eq!(names_beside(&trace).len(), 3, "{first}");
}

/// Ends when its child has recorded a little; the child allocates much when the input has ended.
const DAEMON: &str = r"
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    char byte;
    int begun[2];
    if (pipe(begun) != 0) return 1;
    free(malloc(10));
    if (fork() != 0) return read(begun[0], &byte, 1) != 1;
    free(malloc(10));
    if (write(begun[1], &byte, 1) != 1) return 1;
    while (read(0, &byte, 1) == 1) { }
    for (int i = 0; i < 200000; i++) free(malloc(1 + i % 1000));
    return 0;
}";

#[test]
fn the_trace_of_a_process_that_outlives_the_command_goes_on_where_it_is() {
    let Some(program) = program("daemon", DAEMON) else { return };
    let trace = file("daemon.trace");
    for old in names_beside(&trace) {
        let _ = fs::remove_dir_all(file(&old));
    }
    let mut recorded = command(&["record", "-o", &trace, "--", &program]);
    let recorded = recorded.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recorded = recorded.spawn().expect("it runs");
    let input = recorded.stdin.take();
    let mut summary = String::new();
    // The child has the pipe, too, so it does not end: the last line is the warning about the child's trace.
    let mut lines = BufReader::new(recorded.stderr.take().expect("a pipe")).lines();
    while !summary.contains("is still running") {
        summary.push_str(&lines.next().expect("more is said").expect("text"));
    }
    assert!(recorded.wait().expect("it ends").success());
    holds(&summary, &["goes on: its trace stays "]);
    let after = summary.split("its trace stays ").nth(1).expect("a path");
    let path = &after[..after.find("recorded ").expect("a summary behind it")];
    drop(input);
    // Its standard error ends with it.
    assert_eq!(lines.count(), 0);
    let seen = figures(path);
    assert!(seen["events"].as_u64().expect("a number") >= 400_000 && seen["warnings"] == json!([]), "{seen}");
    fs::remove_dir_all(Path::new(path).parent().expect("the folder of the run")).expect("it can be removed");
}

#[test]
fn a_shipped_trace_is_a_workload() {
    let text = printed(&["workload", "trace_sqlite", "--quick", "ops=1"]);
    let record: Value = serde_json::from_str(&text).expect("JSON");
    assert!(record["operations"].as_u64().expect("a number") > 100_000, "{record}");
    assert!(record["figures"]["replayed_peak_live_bytes"].as_f64().expect("a number") > 1e6, "{record}");
}
