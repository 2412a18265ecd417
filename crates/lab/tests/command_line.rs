//! The `freestone` command from a user's point of view: the main paths in their shortest form, and the advice that follows each wrong input.

mod harness;

use harness::{command, file, freestone, holds, installed, library, refuses, said, scratch, succeeded};

#[test]
fn unknown_names_are_answered_with_similar_names_and_the_list() {
    refuses(&["bench", "random_mix", "-a", "system"], &["'random_mix'", "Did you mean random_mixed", "larson"]);
    refuses(&["bench", "larson", "-a", "mimaloc"], &["'mimaloc'", "mimalloc", "jemalloc", "NAME=PATH.so"]);
    refuses(&["peers", "build", "jemaloc"], &["'jemaloc'", "Did you mean jemalloc"]);
    refuses(&["workload", "larsen"], &["'larsen'", "larson"]);
}

#[test]
fn a_file_that_is_not_an_allocator_library_is_named() {
    refuses(&["bench", "larson", "-a", "x=/no/such.so"], &["/no/such.so", "cannot be read"]);
    refuses(&["bench", "larson", "-a", "x=/etc/passwd"], &["/etc/passwd", "not a shared object"]);
    refuses(&["bench", "larson", "-a", concat!("x=", env!("CARGO_BIN_EXE_freestone"))], &["defines no malloc"]);
}

#[test]
fn wrong_parameters_say_which_there_are() {
    refuses(&["bench", "tiny_hot", "-a", "system", "-p", "tiny_hot.opps=3"], &["'opps'", "ops, batch, largest"]);
    refuses(&["bench", "tiny_hot", "-a", "system", "-p", "larson.ops=3"], &["WORKLOAD.NAME=VALUE"]);
    refuses(&["workload", "tiny_hot", "ops=many"], &["not a whole number"]);
}

#[test]
fn a_command_line_that_measures_nothing_is_refused() {
    refuses(&["bench", "tiny_hot", "-a", "system", "--rounds", "0"], &["invalid value '0'", "--rounds"]);
    refuses(&["compare", "-a", "system", "--rounds", "0", "--", "true"], &["invalid value '0'", "--rounds"]);
    refuses(&["bench", "tiny_hot", "-a", "system", "--timeout", "0"], &["invalid value '0'", "--timeout"]);
    for command in ["run", "record", "leaks", "profile"] {
        refuses(&[command, "-a", "freestone,system", "--", "true"], &["'freestone,system'", "one allocator"]);
    }
    let endless = [
        "bench",
        "idle_after_burst",
        "-a",
        "system",
        "--timeout",
        "1",
        "--no-report",
        "-p",
        "idle_after_burst.idle_ms=60000",
    ];
    refuses(&endless, &["took longer than 1 s", "nothing could be measured"]);
}

#[test]
fn commands_that_are_missing_fail_or_hang_are_named() {
    refuses(&["compare", "-a", "system", "--", "no-such-command"], &["'no-such-command'", "PATH"]);
    refuses(
        &["compare", "-a", "system", "--no-report", "--", "false"],
        &["exit status 1 (--ignore-failure", "could not be measured"],
    );
    let hang = ["compare", "-a", "system", "--no-report", "--timeout", "1", "--", "sleep", "30"];
    refuses(&hang, &["took longer than 1 s", "--timeout"]);
    let folder = scratch().join("nothing-measured");
    std::fs::create_dir_all(&folder).unwrap();
    let output = command(&hang).current_dir(&folder).output().unwrap();
    assert!(!said(&output).contains("results: "), "{}", said(&output));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "what measured nothing leaves nothing");
}

#[test]
fn a_server_is_measured_while_its_client_runs_and_is_asked_to_end() {
    if !installed("sleep") {
        return;
    }
    let out = file("server.jsonl");
    let options = ["-a", "system", "--rounds", "1", "--server", "sleep 1000", "--server-wait", "1", "--no-report"];
    let output = freestone(&[&["compare"], &options[..], &["-o", &out, "--", "sh", "-c", "exit 0"]].concat());
    succeeded(&output);
    holds(&String::from_utf8_lossy(&output.stdout), &["(server: sleep 1000)", "system"]);
    let text = std::fs::read_to_string(&out).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let run = lines.rfind(|line| line["run"].is_object()).unwrap();
    let record = &run["run"]["outcome"]["command"];
    // The server was ended by SIGTERM; the status is the client's.
    assert_eq!(record["exit"], 0, "{record}");
    assert!(record["peak_rss_bytes"].as_u64().unwrap() > 0, "{record}");
}

#[test]
fn results_that_cannot_be_read_are_named() {
    let file = scratch().join("old.jsonl");
    std::fs::write(&file, "{\"format\":\"freestone-lab-results\",\"version\":99}\n").unwrap();
    refuses(&["report", file.to_str().unwrap()], &["version 99", "measure again"]);
    refuses(&["report", "/no/such/results.jsonl"], &["cannot be read"]);
}

#[test]
fn an_allocator_is_compared_with_itself_and_leaves_a_page() {
    let out = scratch().join("self.jsonl");
    let arguments = [
        "bench",
        "random_mixed",
        "tiny_hot",
        "-a",
        "system",
        "--self-test",
        "--quick",
        "-p",
        "random_mixed.ops=200000",
        "-p",
        "tiny_hot.ops=200000",
        "--json",
        "-o",
        out.to_str().unwrap(),
    ];
    let output = freestone(&arguments);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = summary["cells"].as_array().unwrap();
    let verdicts: Vec<_> = cells.iter().filter_map(|cell| cell["cell"]["ratio"]["verdict"].as_str()).collect();
    assert!(verdicts.len() >= 6, "both workloads are compared in time, processor time, memory and faults");
    // On a busy machine a difference may be claimed by chance. This test only checks that the exit status agrees with the verdicts.
    let equal = verdicts.iter().all(|&verdict| verdict == "no_difference_seen");
    assert_eq!(output.status.success(), equal, "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.with_extension("html")).unwrap();
    assert!(page.contains("<h2>Workload by workload</h2>"));
}

#[test]
fn a_seed_repeats_the_order_within_rounds_and_is_in_the_results_and_on_the_page() {
    let order = |seed: &str, name: &str| {
        let out = file(name);
        let measured = ["bench", "tiny_hot", "-a", "system", "--self-test", "--rounds", "6", "-p", "tiny_hot.ops=2000"];
        // The verdict of a self-test with so few operations does not matter here.
        freestone(&[&measured[..], &["--seed", seed, "-o", &out]].concat());
        let text = std::fs::read_to_string(&out).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let (mut header, mut turns) = (None, Vec::new());
        for line in lines {
            match line["run"]["allocator"].as_str() {
                Some("(loop only)") => {}
                Some(allocator) => turns.push(allocator.to_owned()),
                None => header = header.or(line.get("seed").cloned()),
            }
        }
        assert_eq!(header.unwrap().to_string(), seed);
        holds(&std::fs::read_to_string(out.replace(".jsonl", ".html")).unwrap(), &[&format!("--seed {seed}")]);
        assert_eq!(turns.len(), 12);
        turns
    };
    assert_eq!(order("7", "seed-7.jsonl"), order("7", "seed-7-again.jsonl"));
    assert_ne!(order("7", "seed-7.jsonl"), order("8", "seed-8.jsonl"));
}

#[test]
fn instruction_counts_repeat_exactly() {
    if !installed("valgrind") {
        return;
    }
    // The blocks of web_server go back to the page heap, which works by the clock.
    let count = |name: &str| {
        let out = scratch().join(name);
        let output = freestone(
            &[
                &["bench", "random_mixed", "web_server", "-a", "system,freestone", "--count", "--json", "--no-report"]
                    [..],
                &["-p", "random_mixed.ops=1000", "-p", "web_server.calls=512", "-o", out.to_str().unwrap()],
            ]
            .concat(),
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let varying = summary["warnings"].as_array().unwrap().iter().filter(|warning| warning["kind"] == "counts_vary");
        assert_eq!(varying.count(), 0, "{summary}");
        let cells = summary["cells"].as_array().unwrap().iter().filter(|cell| cell["figure"] == "instructions");
        cells.map(|cell| cell["cell"]["median"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let first = count("counts-1.jsonl");
    assert_eq!(first.len(), 4, "two workloads under two allocators");
    assert!(first.iter().all(|&count| count > 10.0));
    assert_eq!(first, count("counts-2.jsonl"));
}

/// The record that a workload's process prints.
fn record(arguments: &[&str]) -> serde_json::Value {
    let output = freestone(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_workload_runs_in_small_and_reports_the_same_checksum_twice() {
    let listed = [
        "random_mixed ops=5000",
        "larson ops=4000 slots=50 rounds=10",
        "producer_consumer ops=5000",
        "realloc_growth limit=200000",
        "growing_buffers ops=2000 buffers=20",
        "burst_keep_every_20th burst_mib=4 wait_ms=60",
        "burst_keep_every_20th burst_mib=4 wait_ms=60 threads=0",
        "idle_threads threads=8 burst_kib=64 wait_ms=60",
        "idle_owner burst_mib=2 wait_ms=60 then=100",
        "many_connections threads=8 requests=100",
        "repeated_bursts bursts=3 burst_mib=2 keep=10 shuffle=1",
        "mass_frees large=100 small=2000 wait_ms=60",
        "calloc_huge ops=3",
        "large_churn ops=3",
        "free_only_consumer ops=20000",
        "shifting_sizes live_mib=8 limit_mib=64",
        "shifting_sizes live_mib=8 limit_mib=0 random=1",
    ];
    for words in listed.map(|words| words.split(' ').collect::<Vec<_>>()) {
        let run = || record(&[&["workload"], &words[..]].concat())["checksum"].clone();
        assert_eq!(run(), run(), "{words:?}");
    }
}

#[test]
fn real_programs_give_the_same_result_twice() {
    for (workload, program) in [
        ("python3_json", "python3"),
        ("sqlite3_index", "sqlite3"),
        ("gcc_compile", "gcc"),
        ("git_history", "git"),
        ("redis_benchmark", "redis-benchmark"),
    ] {
        if installed(program) {
            let once = || record(&["workload", workload, "ops=1"]);
            let (one, other) = (once(), once());
            assert_eq!(one["checksum"], other["checksum"], "{workload}");
            assert!(one["user_ns"].as_u64().unwrap() > 0 && one["peak_rss_bytes"].as_u64().unwrap() > 1 << 20, "{one}");
        }
    }
}

#[test]
fn experiment_e_has_the_published_shape() {
    let out = scratch().join("e.jsonl");
    let arguments =
        ["experiment", "E", "-a", "system,freestone", "--rounds", "1", "--no-report", "-o", out.to_str().unwrap()];
    let output = freestone(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let of_large = text.split("47 MB").nth(1).unwrap();
    let moved = |allocator: &str| {
        let row = of_large.lines().find(|line| line.trim_start().starts_with(allocator)).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        let of = words.iter().position(|&word| word == "of").unwrap();
        words[of - 1].parse::<u32>().unwrap()
    };
    assert!(of_large.contains("11 of 122") && of_large.contains("system (glibc "), "{text}");
    assert!(moved("system") <= 15 && moved("freestone") <= 15, "{text}");
}

#[test]
fn completions_and_the_manual_are_printed() {
    assert!(String::from_utf8_lossy(&freestone(&["completions", "bash"]).stdout).contains("experiment"));
    let manual = String::from_utf8_lossy(&freestone(&["man"]).stdout).into_owned();
    holds(&manual, &[".TH freestone", ".TH freestone-bench", "self\\-test", ".TH freestone-peers"]);
}

#[test]
fn a_timeline_sums_the_figures_of_kernel_and_library_over_all_processes() {
    if !installed("sh") || !installed("python3") {
        return;
    }
    // Two processes hold 40 MiB of blocks each, in sizes that python3 does not serve from its own heap, and then hold little. They read in the
    // library's report how long to wait: until each was sampled ten times while holding, and then for ten more samples.
    let program = r#"
import json, os, time
def report():
    # A process that ends, or starts another program, while it writes leaves a part of a line for good, and the next line follows it.
    lines = []
    for line in open(os.environ["FREESTONE_REPORT"]):
        try:
            lines.append(json.loads(line))
        except ValueError:
            pass
    return lines
def samples(holding):
    counts = {}
    for line in report():
        if line["event"] == "sample" and (line["live_bytes"] > 40 << 20) == holding:
            counts[line["pid"]] = counts.get(line["pid"], 0) + 1
    return counts
blocks = [bytes(1000) for _ in range(42000)]
while sum(count >= 10 for count in samples(True).values()) < 2:
    time.sleep(0.01)
del blocks
before = samples(False).get(os.getpid(), 0)
while samples(False).get(os.getpid(), 0) < before + 10:
    time.sleep(0.01)
"#;
    let script = format!("python3 -c '{program}' & python3 -c '{program}'; wait");
    let (table, picture) = (file("timeline.csv"), file("timeline.svg"));
    let said = succeeded(&freestone(&["run", "--timeline", &picture, "--", "sh", "-c", &script]));
    holds(&said, &["timeline", &table, &picture]);
    let text = std::fs::read_to_string(&table).unwrap();
    assert_eq!(text.lines().next(), Some("milliseconds,rss_bytes,live_bytes,dirty_bytes,committed_bytes"));
    let rows: Vec<Vec<u64>> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').map(|cell| cell.parse().ok()).collect::<Option<Vec<_>>>())
        .collect();
    assert!(rows.len() >= 15, "a row every 50 ms: {text}\n{said}");
    let peak = |column: usize| rows.iter().map(|row| row[column]).max().unwrap();
    let mib = |number: u64| number << 20;
    assert!(peak(1) > mib(80) && peak(2) > mib(80), "both processes count: {text}");
    assert!(rows.iter().all(|row| row[4] >= row[2] + row[3]), "committed holds live and dirty: {text}");
    let svg = std::fs::read_to_string(&picture).unwrap();
    holds(&svg, &["resident", "live", "dirty", "committed", "MiB", "</svg>"]);
}

#[test]
fn a_timeline_under_another_allocator_has_the_kernels_figures_only() {
    let table = file("timeline-system");
    succeeded(&freestone(&["run", "-a", "system", "--timeline", &table, "--", "sleep", "0.2"]));
    let text = std::fs::read_to_string(&table).unwrap();
    assert!(text.lines().skip(1).all(|line| line.ends_with(",,,")), "{text}");
    holds(&std::fs::read_to_string(format!("{table}.svg")).unwrap(), &["resident"]);
}

/// The command's own code and data are resident too: 5 MiB more in a build for tests than in a release.
const DEMO_KEEPS_AT_MOST: u64 = (30 + 5) << 20;

/// Bytes that the demo's program keeps under Freestone, a second after it dropped everything; it had more than 350 MiB.
fn kept_by_the_demo() -> u64 {
    let output = command(&["demo-program"]).env("LD_PRELOAD", library()).output().unwrap();
    succeeded(&output);
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    holds(&record["malloc_library"].to_string(), &["libfreestone.so"]);
    record["rss_after_bytes"].as_u64().unwrap()
}

/// On a busy machine the thread that gives memory back may be late: one of five runs has to be in time.
#[test]
fn the_demo_keeps_less_than_30_mib_a_second_after_its_end() {
    let mut kept = Vec::new();
    while kept.len() < 5 && kept.iter().all(|&bytes| bytes >= DEMO_KEEPS_AT_MOST) {
        kept.push(kept_by_the_demo());
    }
    assert!(kept.iter().any(|&bytes| bytes < DEMO_KEEPS_AT_MOST), "{kept:?} bytes stay resident");
}
