//! The `freestone` command when something is missing, fails, or is interrupted: it says what to do, and measures the rest.

mod harness;

use harness::{command, file, freestone, holds, library, refuses, said, scratch, succeeded};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A short measurement of one workload.
const SHORT: [&str; 8] = ["bench", "tiny_hot", "-a", "system", "--rounds", "2", "-p", "tiny_hot.ops=20000"];

/// A folder to be used as the whole PATH, with `program` in it, if one is given.
fn path_with(name: &str, program: Option<(&str, &str)>) -> PathBuf {
    let folder = scratch().join(name);
    fs::create_dir_all(&folder).unwrap();
    if let Some((program, script)) = program {
        fs::write(folder.join(program), script).unwrap();
        fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[test]
fn a_peer_that_does_not_build_is_named_with_its_log_and_the_others_go_on() {
    let cargo = "#!/bin/sh
        case \"$*\" in *mimalloc*) echo 'error: no C compiler' >&2; exit 101;; esac
        library=$CARGO_TARGET_DIR/release/libpeer_jemalloc.so
        [ -e $library ] || { mkdir -p $CARGO_TARGET_DIR/release; : > $library; }\n";
    let path = path_with("failing-cargo", Some(("cargo", cargo)));
    let path = format!("{}:/usr/bin:/bin", path.display());
    let cache = scratch().join("cache");
    let _ = fs::remove_dir_all(&cache);
    let build = |cache: &str| {
        let mut build = command(&["peers", "build", "mimalloc", "jemalloc"]);
        build.env("PATH", &path).env("XDG_CACHE_HOME", cache).env_remove("FREESTONELAB_PEERS").output().unwrap()
    };
    let output = build(cache.to_str().unwrap());
    assert!(!output.status.success());
    let said = said(&output);
    holds(&said, &["mimalloc is left out", "did not build", "peer-mimalloc.log"]);
    let kept = cache.join("freestone/peers/libpeer_jemalloc.so");
    holds(&String::from_utf8_lossy(&output.stdout), &["jemalloc: ", kept.to_str().unwrap()]);
    assert!(kept.is_file(), "built peers are kept in the user's cache");
    let log = said.split_whitespace().find(|word| word.ends_with("peer-mimalloc.log")).unwrap();
    holds(&fs::read_to_string(log).unwrap(), &["no C compiler"]);
    let unwritable = harness::said(&build("/dev/null"));
    holds(&unwritable, &["jemalloc is left out", "FREESTONELAB_PEERS", "/dev/null/freestone/peers cannot be made"]);
}

#[test]
fn without_network_a_peer_is_refused_with_the_way_out_and_nothing_is_left() {
    // cargo's own cache is empty, and nothing listens where its requests go.
    let [home, cache] = ["empty-cargo-home", "cache-without-network"].map(|name| scratch().join(name));
    let out = file("no-network.jsonl");
    let bench = [&SHORT[..2], &["-a", "system,snmalloc", "--no-report", "-o", &out]].concat();
    for offline in ["false", "true"] {
        [&home, &cache].iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
        for (arguments, status) in [(&["peers", "build", "snmalloc"][..], 1), (&bench[..], 2)] {
            let mut command = command(arguments);
            command.env("CARGO_HOME", &home).env("XDG_CACHE_HOME", &cache).env_remove("FREESTONELAB_PEERS");
            command
                .env("CARGO_NET_OFFLINE", offline)
                .env("CARGO_NET_RETRY", "0")
                .env("CARGO_HTTP_PROXY", "127.0.0.1:1");
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", said(&output));
            let way_out = ["peer-snmalloc", "could not download", "--allocator NAME=PATH.so", "peer-snmalloc.log"];
            holds(&said(&output), &way_out);
            assert!(!cache.exists() && !PathBuf::from(&out).exists(), "something is left");
        }
    }
    drop(fs::remove_dir_all(&home));
}

#[test]
fn a_peer_behind_a_symbolic_link_is_found_in_the_process() {
    // The C library stands in for a peer: it defines malloc and need not be built.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let Some(libc) = maps.split_whitespace().find(|word| word.ends_with("/libc.so.6")) else {
        println!("skipped: no libc.so.6 among the mappings");
        return;
    };
    let peers = scratch().join("linked-peers");
    fs::create_dir_all(&peers).unwrap();
    let peer = peers.join("libpeer_jemalloc.so");
    let _ = fs::remove_file(&peer);
    std::os::unix::fs::symlink(libc, &peer).unwrap();
    let arguments =
        ["compare", "-a", "jemalloc", "--no-report", "--rounds", "1", "-o", &file("linked.jsonl"), "--", "sleep", "0"];
    let output = command(&arguments).env("FREESTONELAB_PEERS", &peers).output().unwrap();
    assert!(!succeeded(&output).contains("was not in the process"));
    holds(&String::from_utf8_lossy(&output.stdout), &["jemalloc"]);
}

#[test]
fn without_valgrind_nothing_is_counted_and_the_warning_says_how_to_get_it() {
    let path = path_with("empty", None);
    let out = file("no-valgrind.jsonl");
    let arguments = ["bench", "tiny_hot", "-a", "system", "--count", "--no-report", "-o", &out];
    let output = command(&arguments).env("PATH", path).output().unwrap();
    assert!(!output.status.success());
    holds(&String::from_utf8_lossy(&output.stderr), &["valgrind is not installed (apt install valgrind)"]);
}

#[test]
fn a_program_that_is_not_installed_is_left_out() {
    let path = path_with("empty", None);
    let out = file("no-sqlite3.jsonl");
    let arguments = [&SHORT[..1], &["sqlite3_index"], &SHORT[1..], &["--no-report", "-o", &out]].concat();
    let output = command(&arguments).env("PATH", path).output().unwrap();
    holds(&succeeded(&output), &["sqlite3_index is left out: sqlite3 is not installed (apt install sqlite3)"]);
    holds(&String::from_utf8_lossy(&output.stdout), &["tiny_hot"]);
}

#[test]
fn without_go_the_rest_of_experiment_a_is_measured() {
    let path = path_with("empty", None);
    let out = file("no-go.jsonl");
    let arguments = ["experiment", "A", "-a", "system", "--rounds", "1", "--timeout", "1", "--no-report", "-o", &out];
    let output = command(&arguments).env("PATH", path).output().unwrap();
    // A busy machine may take longer than the limit for some of the runs.
    assert!(matches!(output.status.code(), Some(0 | 124)), "{}", said(&output));
    holds(&said(&output), &["Go is not installed (go.dev/dl)"]);
    holds(&String::from_utf8_lossy(&output.stdout), &["published, TLSF"]);
}

#[test]
fn without_a_terminal_there_are_no_bars_and_no_colours() {
    let output = freestone(&[&SHORT[..], &["--no-report", "-o", &file("no-terminal.jsonl")]].concat());
    let all = format!("{}{}", succeeded(&output), String::from_utf8_lossy(&output.stdout));
    assert!(!all.contains(['\r', '\u{1b}']), "{all:?}");
}

#[test]
fn a_reader_that_closes_the_pipe_causes_no_panic() {
    let mut list = command(&["bench", "--list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(list.stdout.take());
    let output = list.wait_with_output().unwrap();
    assert!(!said(&output).contains("panicked"), "{}", said(&output));
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let out = file("interrupted.jsonl");
    let _ = fs::remove_file(&out);
    // Many short rounds: however slow the machine is, a round is over long before its time limit, and the last one far away.
    let rounds = ["--rounds", "100000", "-p", "tiny_hot.ops=20000", "--timeout", "3600"];
    let mut long = command(&[&["bench", "tiny_hot", "larson", "-a", "system", "-o", &out], &rounds[..]].concat());
    let mut lab = long.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = || fs::read_to_string(&out).unwrap_or_default().matches("\"round\":").count();
    while lines() < 3 {
        assert!(lab.try_wait().unwrap().is_none(), "the lab ended before it was asked to");
        std::thread::sleep(Duration::from_millis(20));
    }
    succeeded(&Command::new("kill").args(["-INT", &lab.id().to_string()]).output().unwrap());
    let output = lab.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "as a shell reports a command ended by Ctrl-C");
    holds(&said(&output), &["interrupted: the figures rest on the rounds that were finished", "results: "]);
    holds(&String::from_utf8_lossy(&output.stdout), &["tiny_hot"]);
    assert!(fs::metadata(out.replace(".jsonl", ".html")).is_ok(), "the page is there");
    let again = freestone(&["report", &out, "-o", &file("interrupted-again.html")]);
    assert!(!succeeded(&again).contains("damaged"));
}

#[test]
fn several_results_become_a_trend_and_a_damaged_one_costs_a_line() {
    let [first, second] = ["trend-1.jsonl", "trend-2.jsonl"].map(file);
    for out in [&first, &second] {
        // The verdict of a self-test with two rounds does not matter here.
        let output = freestone(&[&SHORT[..], &["--self-test", "--no-report", "-o", out]].concat());
        holds(&said(&output), &["in 2 rounds only the steadiest differences", "8 or more"]);
    }
    let text = fs::read_to_string(&second).unwrap();
    fs::write(&second, &text[..text.len() - 30]).unwrap();
    let page = file("trend.html");
    let output = freestone(&["report", &first, &second, "/no/such.jsonl", "-o", &page]);
    holds(&succeeded(&output), &["/no/such.jsonl cannot be read", "left out"]);
    let html = fs::read_to_string(&page).unwrap();
    holds(&html, &["<h2>Trend</h2>", "tiny_hot, system again", "is cut short or damaged"]);
}

#[test]
fn a_command_that_crashes_is_named_with_its_signal() {
    let arguments =
        ["compare", "-a", "system", "--no-report", "-o", &file("crash.jsonl"), "--", "sh", "-c", "kill -SEGV $$"];
    refuses(&arguments, &["ended by signal 11 (SIGSEGV)"]);
}

#[test]
fn a_command_that_sends_itself_a_trap_gets_it_in_the_warm_up_as_well() {
    let script = "got=no; trap got=yes TRAP; kill -TRAP $$; test $got = yes";
    let out = file("trap.jsonl");
    let arguments = ["-a", "system,freestone", "--rounds", "1", "--no-report", "-o", &out, "--", "sh", "-c", script];
    let said = succeeded(&freestone(&[&["compare"], &arguments[..]].concat()));
    assert!(!said.contains("exit status"), "{said}");
}

/// The command in a shell, which puts its output where `shell` says.
fn in_a_shell(arguments: &[&str], shell: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", &format!("\"$0\" \"$@\" {shell}"), env!("CARGO_BIN_EXE_freestone")]);
    command.args(arguments).current_dir(scratch()).output().unwrap()
}

#[test]
fn an_output_that_cannot_be_written_is_said_and_has_a_status_and_changes_no_other_status() {
    let commands: [&[&str]; 7] = [
        &["options"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["bench", "--list"],
        &["peers", "list"],
        &["compare", "-a", "system", "--rounds", "1", "--no-report", "--", "true"],
    ];
    for arguments in commands {
        let output = in_a_shell(arguments, ">/dev/full");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        holds(&said(&output), &["freestone: the output could not be written: No space left on device"]);
        let output = in_a_shell(arguments, "2>/dev/full");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
    let statuses = [(&["run", "--", "/nonexistent"][..], 127), (&["run", "-a", "system", "sh", "-c", "exit 7"], 7)];
    for (arguments, status) in statuses {
        assert_eq!(in_a_shell(arguments, ">/dev/full 2>/dev/full").status.code(), Some(status), "{arguments:?}");
    }
}

#[test]
fn a_command_that_was_recorded_or_profiled_keeps_its_status_and_its_files_if_nobody_reads_what_is_printed() {
    let (trace, profile) = (file("unread.trace"), file("unread-profile"));
    let script = "exit 7";
    let record = ["record", "-o", &trace, "--", "bash", "-c", script];
    let of_profile = ["profile", "--interval", "1", "-o", &profile, "--", "bash", "-c", script];
    let written = [trace.clone(), format!("{profile}.html")];
    for shell in ["2>/dev/full", ">/dev/full 2>/dev/full", "2>&1 | true"] {
        for (arguments, written) in [&record, &of_profile as &[&str]].into_iter().zip(&written) {
            let _ = fs::remove_file(written);
            let output = in_a_shell(arguments, shell);
            assert_eq!(output.status.code(), Some(7), "{arguments:?} {shell}: {}", said(&output));
            assert!(fs::metadata(written).is_ok_and(|facts| facts.len() > 0), "{written} is missing: {shell}");
        }
    }
}

#[test]
fn files_that_a_run_with_the_same_process_number_left_are_no_obstacle_and_are_left_alone() {
    if !Command::new("unshare").args(["-rpf", "true"]).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no process namespace can be made");
        return;
    }
    library();
    let folder = path_with("same-number", None);
    let left = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let victim = file("victim");
    // In its own process namespace the command always has the same number.
    let run = |command: &[&str], script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rpf", "--mount-proc", "sh", "-c", "exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_freestone")]);
        unshare.args(command).args(["--", "sh", "-c", script]).env("TMPDIR", &folder).output().unwrap()
    };
    left().for_each(|path| drop(fs::remove_dir_all(path)));
    fs::write(&victim, "untouched").unwrap();
    for what in ["launch", "report", "last-states", "profile", "live"] {
        for serial in 0..4 {
            std::os::unix::fs::symlink(&victim, folder.join(format!("freestone-{what}-1-{serial}"))).unwrap();
        }
    }
    let n_left = left().count();
    for command in [&["run"][..], &["profile"], &["top", "--once"]] {
        let output = run(command, "/bin/true; exit 3");
        assert_eq!(output.status.code(), Some(3), "{command:?}: {}", said(&output));
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(left().count(), n_left, "{:?}", left().collect::<Vec<_>>());
}

#[test]
fn a_command_keeps_its_status_if_what_was_recorded_or_profiled_cannot_be_shown() {
    let trace = file("vanished.trace");
    let script = format!("rm -r '{trace}'.*.recording; exit 6");
    let commands: [(&[&str], &str); 2] = [
        (&["record", "-o", &trace, "--", "sh", "-c", &script], ".recording cannot be read"),
        (&["profile", "-o", "/no/such/folder/x", "--", "bash", "-c", "exit 6"], "/no/such/folder/x.pb.gz cannot be"),
    ];
    for (arguments, message) in commands {
        let output = freestone(arguments);
        assert_eq!(output.status.code(), Some(6), "{arguments:?}: {}", said(&output));
        holds(&said(&output), &[message]);
    }
}

#[test]
fn a_recording_into_a_folder_that_is_not_there_is_refused_before_the_command_runs() {
    let output = freestone(&["record", "-o", "/no/such/folder/x", "--", "sh", "-c", "echo ran"]);
    assert_eq!(output.status.code(), Some(2));
    holds(&said(&output), &["/no/such/folder/x", "check its folder"]);
    assert!(output.stdout.is_empty());
}

/// Runs `freestone ARGUMENTS` as a process for whose number `beforehand`, a command of the shell, has made files in the folder for temporary ones, which it
/// starts in.
fn after(beforehand: &str, temporary: &Path, arguments: &[&str]) -> Output {
    let script = format!("{beforehand}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_freestone")]).args(arguments);
    shell.current_dir(temporary).env("TMPDIR", temporary).output().unwrap()
}

/// Those that have a process's number in their names are made for the process that is to take them for its own.
#[test]
fn files_that_others_have_made_in_the_temporary_folder_are_not_used() {
    let temporary = scratch().join("not-ours");
    let _ = fs::remove_dir_all(&temporary);
    let victim = temporary.join("victim");
    fs::create_dir_all(&victim).unwrap();
    let trap = "ln -s victim freestone-program-$$";
    succeeded(&after(trap, &temporary, &["workload", "gcc_compile", "--quick", "ops=1"]));
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    let trap = "mkdir freestone-plan-$$";
    succeeded(&after(trap, &temporary, &["workload", "trace_sqlite", "--quick", "ops=1"]));
    let left = fs::read_dir(&temporary).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let known = ["victim", "freestone-program-", "freestone-plan-"];
    assert_eq!(left.filter(|name| known.iter().any(|known| name.starts_with(known))).count(), 3);
}
