//! How the `freestone` command treats what users type, and what it tells them: no separator, exit statuses, names, the terminal.

mod harness;

use harness::{command, file, freestone, holds, installed, library, refuses, said, scratch, succeeded};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

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
    let output = freestone(&["run", "-a", "system", "--timeline", "/no/such/folder/x.svg", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3), "the command's status counts");
    holds(&said(&output), &["exit status 3", "not written    timeline /no/such/folder/x.csv cannot be written"]);
}

#[test]
fn control_characters_in_the_name_of_a_command_do_not_reach_the_terminal_and_its_json_is_json() {
    let program = file("red\u{1b}[31m\u{7f}");
    let _ = std::fs::remove_file(&program);
    std::os::unix::fs::symlink("/bin/true", &program).unwrap();
    let output = freestone(&["run", "-a", "system", &program]);
    holds(&succeeded(&output), &[r"red\u001b[31m\u007f ran under system"]);
    assert!(!said(&output).contains('\u{1b}'));
    let output = freestone(&["run", "--json", "-a", "system", &program]);
    let summary: serde_json::Value = serde_json::from_str(&succeeded(&output)).unwrap();
    assert!(summary["command"].as_str().unwrap().contains("red"), "{summary}");
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
fn what_takes_longer_than_its_limit_gives_the_status_of_timeout_and_the_rest_is_kept() {
    let compare = ["compare", "-a", "system", "--no-report", "--rounds", "1", "--timeout", "1", "--"];
    assert_eq!(freestone(&[&compare[..], &["sleep", "30"]].concat()).status.code(), Some(124));
    assert_eq!(freestone(&[&compare[..], &["true"]].concat()).status.code(), Some(0));
    let bench = ["bench", "tiny_hot", "random_mixed", "-a", "system", "--no-report", "--rounds", "1", "--timeout", "1"];
    let sizes = ["-p", "tiny_hot.ops=1000", "-p", "random_mixed.ops=100000000000"];
    let output = freestone(&[&bench[..], &sizes].concat());
    assert_eq!(output.status.code(), Some(124), "{}", said(&output));
    holds(&said(&output), &["random_mixed under system", "took longer than 1 s"]);
    holds(&String::from_utf8_lossy(&output.stdout), &["tiny_hot"]);
}

/// What the command prints on a terminal of 40 columns, and its status; `input` is what the user types. `None` without the program `script`.
fn on_a_terminal(arguments: &str, variables: &[(&str, &str)], input: &str) -> Option<(String, Option<i32>)> {
    if !installed("script") {
        return None;
    }
    let line = format!("stty cols 40 rows 24; exec '{}' {arguments}", env!("CARGO_BIN_EXE_freestone"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(scratch());
    let mut script =
        script.envs(variables.iter().copied()).env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
    script = script.stderr(Stdio::null());
    let mut child = script.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    Some((text, output.status.code()))
}

#[test]
fn on_a_narrow_terminal_tables_fit_and_nothing_is_cut_off() {
    let bench = "bench tiny_hot -a system,freestone --rounds 2 -p tiny_hot.ops=1000 --no-report";
    let Some((text, status)) = on_a_terminal(bench, &[], "") else { return };
    assert_eq!(status, Some(0), "{text}");
    holds(&text, &["tiny_hot", "system", "freesto", "loop"]);
    for arguments in [bench, "compare -a system,freestone --rounds 2 --no-report -- true"] {
        let (text, _) = on_a_terminal(arguments, &[], "").unwrap();
        // Lines of tables begin with a rule or a space, sentences with a letter, and the legend says what the figures are.
        let is_of_table = |line: &&str| line.starts_with(['─', ' ']) && !line.contains("figures: ");
        let of_tables = text.lines().filter(is_of_table);
        for line in of_tables {
            assert!(line.chars().count() <= 40, "{line:?} is wider than the terminal");
        }
        assert!(!text.contains('…'), "{text}");
    }
    let (options, _) = on_a_terminal("options", &[], "").unwrap();
    holds(&options, &["\nFREESTONE_DECAY_MS\n  value: 1000\n  from: default\n", "\n  range: 0 to 4294967295\n"]);
    holds(&on_a_terminal("bench --list", &[], "").unwrap().0, &["\nlarson\n  shows: time\n"]);
}

#[test]
fn a_peer_is_built_when_the_user_agrees_and_is_announced_with_its_time() {
    // What stands in for cargo makes a library that is none, so nothing is measured in the end.
    let folder = scratch().join("obliging-cargo");
    std::fs::create_dir_all(&folder).unwrap();
    let cargo = "#!/bin/sh\nmkdir -p $CARGO_TARGET_DIR/release; [ -e $CARGO_TARGET_DIR/release/libpeer_rpmalloc.so ] || : > $CARGO_TARGET_DIR/release/libpeer_rpmalloc.so\n";
    std::fs::write(folder.join("cargo"), cargo).unwrap();
    std::fs::set_permissions(folder.join("cargo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let cache = scratch().join("cache-of-peers");
    let _ = std::fs::remove_dir_all(&cache);
    let variables = [("PATH", path.as_str()), ("XDG_CACHE_HOME", cache.to_str().unwrap())];
    let bench = "bench tiny_hot -a system,rpmalloc --rounds 1 -p tiny_hot.ops=1000 --no-report";
    let Some((text, status)) = on_a_terminal(bench, &variables, "n\n") else { return };
    assert_eq!(status, Some(2), "{text}");
    holds(
        &text,
        &[
            "rpmalloc is not built yet",
            "may take minutes",
            "Build it? [Y/n]",
            "`freestone peers build rpmalloc` builds it",
        ],
    );
    assert!(!cache.exists(), "nothing is built");
    let (text, _) = on_a_terminal(bench, &variables, "y\n").unwrap();
    holds(&text, &["Build it? [Y/n]", "rpmalloc is built ("]);
    std::fs::remove_dir_all(&cache).unwrap();
    let arguments: Vec<&str> = bench.split(' ').collect();
    let unasked = said(&command(&arguments).envs(variables).env_remove("FREESTONELAB_PEERS").output().unwrap());
    holds(&unasked, &["rpmalloc is not built yet", "rpmalloc is built ("]);
    assert!(!unasked.contains("Build it?"), "without a terminal nobody can answer: {unasked}");
}

#[test]
fn a_setuid_command_is_judged_by_what_was_seen() {
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
    let output = command(&["options"]).env("FREESTONE_DECAY_MS", "soon").output().unwrap();
    holds(&succeeded(&output), &["'FREESTONE_DECAY_MS=soon' is ignored", "0 to 4294967295"]);
    let output = command(&["options"]).env("FREESTONE_LIBRARY", "/x").env("FREESTONE_DECAY_MS", "5").output().unwrap();
    assert!(!succeeded(&output).contains("warning"));
}

#[test]
fn options_have_the_values_that_the_library_takes_from_the_environment() {
    let environment = [("PROFILE", "Lean"), ("DECAY_MS", "soon"), ("BIN_MAX", "128"), ("THP", "on")];
    let mut command = command(&["options", "--json"]);
    command.envs(environment.map(|(key, value)| (format!("FREESTONE_{key}"), value)));
    let output = command.output().unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let of = |key: &str| rows.iter().find(|row| row["key"] == key).map(|row| (&row["value"], &row["source"])).unwrap();
    assert_eq!(of("decay_ms"), (&"100".into(), &"profile".into()), "an ignored value does not count");
    assert_eq!(of("dirty_max"), (&"1m".into(), &"profile".into()));
    assert_eq!(of("bin_max"), (&"128".into(), &"environment".into()));
    assert_eq!(of("thp"), (&"on".into(), &"environment".into()));
    assert_eq!(of("span_size"), (&"64k".into(), &"default".into()));
    let text = freestone(&["options"]).stdout;
    holds(&String::from_utf8_lossy(&text), &["what the option profile sets", "lean", "guard_sample=20000"]);
}

#[test]
fn a_page_never_replaces_the_results_that_it_is_made_from() {
    let (results, link) = (file("kept.jsonl"), file("link-to-kept.html"));
    let compare = ["compare", "-a", "system", "--rounds", "1"];
    succeeded(&freestone(&[&compare[..], &["--no-report", "-o", &results, "--", "true"]].concat()));
    let before = std::fs::read(&results).unwrap();
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&results, &link).unwrap();
    for page in [&results, &link, "./kept.jsonl"] {
        refuses(&["report", &results, "-o", page], &["would replace the results", "--out"]);
        assert!(std::fs::read(&results).unwrap() == before, "{page}");
    }
    // The page of a file whose name ends as a page's would be that file.
    refuses(&["report", &link], &["would replace the results", "--out"]);
    let page = file("measured.html");
    refuses(&[&compare[..], &["-o", &page, "--", "true"]].concat(), &["FILE.jsonl"]);
    assert!(!std::path::Path::new(&page).exists());
}

#[test]
fn a_command_that_leaves_nothing_to_show_keeps_its_status_and_one_that_succeeds_has_2() {
    let trace = file("nothing.trace");
    let no_profile = ["left no profile", "allocated nothing"];
    for (script, status) in [("exit 7", 7), ("exit 0", 2)] {
        let output = freestone(&["profile", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        holds(&said(&output), &no_profile);
        // It ends before or after its memory is looked at, and has the same status.
        let output = freestone(&["top", "--once", "--", "sh", "-c", script]);
        assert!(
            output.status.code() == Some(status) || (status, output.status.code()) == (2, Some(0)),
            "{}",
            said(&output)
        );
    }
    for (command, status) in [("false", 1), ("true", 2)] {
        let output = freestone(&["record", "-o", &trace, "--", command]);
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        holds(&said(&output), &["left no trace", "allocated nothing"]);
    }
    let output = freestone(&["profile", "--", "sh", "-c", "kill -INT $$"]);
    assert_eq!(output.status.code(), Some(128 + 2), "{}", said(&output));
    holds(&said(&output), &["left no profile", "SIGINT"]);
}

#[test]
fn what_only_freestone_can_do_is_refused_under_the_c_library_before_the_command_starts() {
    let started = file("started-all-the-same");
    let _ = std::fs::remove_file(&started);
    for what in ["record", "profile", "leaks"] {
        refuses(&[what, "-a", "system", "--", "touch", &started], &["has to run under Freestone", "NAME=PATH"]);
        assert!(!std::path::Path::new(&started).exists(), "{what}");
    }
}

#[test]
fn names_that_are_not_utf_8_are_names_like_others() {
    let library = library();
    let folder = scratch().join("odd-names").join(OsStr::from_bytes(b"odd-\xff"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(library, folder.join("libfreestone.so")).unwrap();
    let [ls, cat] = [OsStr::from_bytes(b"./\xff-ls"), OsStr::from_bytes(b"./\xff-cat")];
    std::fs::copy("/bin/ls", folder.join(ls)).unwrap();
    std::fs::copy("/bin/cat", folder.join(cat)).unwrap();
    let trace = file("of-an-odd-name.trace");
    let own = ["-a", "freestone=./libfreestone.so"];
    let there = |arguments: &[&str], words: &[&OsStr]| {
        let output = command(arguments).args(words).current_dir(&folder).output().unwrap();
        (succeeded(&output), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let run = there(&[&["run", "--json"], &own[..]].concat(), &[ls]).0;
    holds(&run, &["\"in_process\":true", "\"allocations\":", "odd-\u{fffd}/libfreestone.so"]);
    let compare = ["compare", "-a", "system,freestone=./libfreestone.so", "--rounds", "1", "--ignore-failure"];
    let (said, shown) = there(&[&compare[..], &["-o", "odd.jsonl", "--"]].concat(), &[ls, OsStr::from_bytes(b"\xff")]);
    assert!(!said.contains("was not"), "{said}");
    holds(&shown, &["\u{fffd}-ls", "freestone"]);
    // The library takes no such name for its files.
    for arguments in [["record", "-o"], ["profile", "--dumps"]] {
        let started = ["touch", "started"].map(OsStr::new);
        let mut refused = command(&arguments);
        let refused = refused.arg(OsStr::from_bytes(b"\xff.out")).args(started).current_dir(&folder).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        holds(&harness::said(&refused), &["is not UTF-8", arguments[1]]);
        assert!(!folder.join("started").exists() && !folder.join(OsStr::from_bytes(b"\xff.out")).exists());
    }
    there(&[&["record", "--stacks=1", "-o", &trace], &own[..]].concat(), &[ls]);
    holds(&there(&["trace", &trace], &[]).1, &["Call sites"]);
    let profile = there(&[&["profile", "--interval", "1"], &own[..]].concat(), &[ls]);
    holds(&profile.1, &["At the peak"]);
    holds(&there(&[&["leaks"], &own[..]].concat(), &[ls]).0, &["leaks of \u{fffd}-ls"]);
    let mut living = Command::new(cat);
    living.env("LD_PRELOAD", folder.join("libfreestone.so")).env("FREESTONE_LIVE", "on").current_dir(&folder);
    let mut living = living.stdin(Stdio::piped()).spawn().unwrap();
    let pid = living.id().to_string();
    // Its page is made a moment after its start.
    let looks = || freestone(&["top", "--once", "--delay", "0.1", &pid]);
    let seen = (0..100).map(|_| looks()).find(|output| output.status.success()).expect("a page");
    holds(&String::from_utf8_lossy(&seen.stdout), &["\u{fffd}-cat", "committed"]);
    drop(living.stdin.take());
    living.wait().unwrap();
}
