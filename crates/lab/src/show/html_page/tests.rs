mod browser;

use super::*;
use crate::allocator::description::Allocator;
use crate::results::file_header::{Header, Seed};
use crate::results::machine::Machine;
use crate::results::outcome::{Outcome, Run};
use crate::results::warning::Warning;
use crate::workload::workload_record::{Latency, WorkloadRecord};
use std::collections::{BTreeMap, BTreeSet};

/// Results of two allocators on one workload, the second half as fast.
fn sample() -> Results {
    sample_of(&[(1, "system"), (2, "<other>")])
}

/// Results of allocators on one workload, each so many times as slow and as large as the first.
fn sample_of(allocators: &[(u64, &str)]) -> Results {
    let library = |name| Allocator::in_library(name, PathBuf::from("/lib/other.so"));
    let described: Vec<Allocator> = allocators.iter().map(|&(_, name)| library(name)).collect();
    let header = Header::new(Machine::here(), Seed(7), &described);
    let mut runs = Vec::new();
    for round in 0..7 {
        for &(factor, allocator) in allocators {
            let record = WorkloadRecord {
                wall_ns: factor * 100_000 + round as u64,
                peak_rss_bytes: Some(factor << 20),
                figures: BTreeMap::from([("kept, MiB".to_owned(), factor as f64)]),
                latency: Some(Latency {
                    count: 10,
                    percentiles: vec![(50.0, 20 * factor), (99.0, 100 * factor), (100.0, 9000 * factor)],
                    max_ns: 9000,
                    clock_ns: 19,
                }),
                rss_series: (0..20).map(|step| (step * 50, (factor << 20) * (20 - step))).collect(),
                ..WorkloadRecord::example()
            };
            let outcome = Outcome::Workload(Box::new(record));
            runs.push(Run { subject: "latency_tail".into(), allocator: allocator.into(), round, outcome });
        }
    }
    Results { header, runs, warnings: vec![Warning::HugePagesAlways] }
}

fn page_of(all: &[(PathBuf, Results)]) -> String {
    render(&all.last().unwrap().1, all).unwrap()
}

#[test]
fn the_page_has_every_section_and_no_outside_references() {
    let html = page_of(&[(PathBuf::from("one.jsonl"), sample())]);
    for heading in [
        "Summary",
        "Workload by workload",
        "Latency",
        "Memory over time",
        "What the workloads report",
        "Warnings",
        "Machine and versions",
        "Raw numbers",
        "Measure it again",
    ] {
        assert!(html.contains(&format!("<h2>{heading}</h2>")), "no section {heading}");
    }
    assert!(html.matches("<svg").count() >= 4, "two ratio charts, a latency curve and a memory curve");
    let fetching = ["<link", "<script", "<img", "<iframe", "url(", "@import", "src="];
    assert!(fetching.iter().all(|tag| !html.contains(tag)), "the page would fetch something");
    let addresses = html.matches("://").count() - html.matches("http://www.w3.org/").count();
    assert_eq!(addresses, 0, "only the name of the SVG namespace may look like an address");
    assert!(html.contains(skeleton::POLICY), "and the browser is told so");
}

#[test]
fn names_are_escaped_and_ratios_are_right() {
    let html = page_of(&[(PathBuf::from("one.jsonl"), sample())]);
    assert!(html.contains("&lt;other&gt;") && !html.contains("<other>"));
    assert!(html.contains("<strong>2.00×</strong>"));
    assert!(html.contains("<span>slower in 1</span>") && html.contains("<span>larger in 1</span>"));
    assert!(html.contains("Least time: <b>system</b>. Least peak memory: <b>system</b>."));
}

#[test]
fn the_page_begins_with_how_much_freestone_takes_and_every_picture_says_where_it_is_from() {
    let mut results = sample_of(&[(2, "system"), (1, "freestone")]);
    results.header.allocators[0].version = Some("glibc 2.36".into());
    results.header.command = ["/x/freestone", "bench", "a b"].map(str::to_owned).into();
    let html = page_of(&[(PathBuf::from("one.jsonl"), results)]);
    assert!(
        html.contains("<h1>Freestone takes 0.50 × the time and 0.50 × the peak memory of glibc 2.36</h1>"),
        "{html}"
    );
    assert_eq!(html.matches("<figure>").count(), html.matches("<code>freestone bench 'a b'</code> · ").count());
    let alone = page_of(&[(PathBuf::from("one.jsonl"), sample())]);
    assert!(alone.contains("<h1>Memory allocators, measured</h1>"), "without Freestone there is no such answer");
}

#[test]
fn latencies_are_shown_without_the_clock_and_grey_where_they_are_mostly_the_clocks() {
    let html = page_of(&[(PathBuf::from("one.jsonl"), sample_of(&[(1, "system"), (3, "freestone")]))]);
    let section = html.split("<h2>Latency</h2>").nth(1).unwrap();
    assert!(
        section.contains("<td><span class=\"same\">1.00 ns</span></td>"),
        "20 ns, of which 19 are the clock's: {section}"
    );
    assert!(section.contains("<td>81.0 ns</td>") && section.contains("<td>281 ns</td>"), "{section}");
}

#[test]
fn below_a_curve_is_what_is_left_at_its_end() {
    let html = page_of(&[(PathBuf::from("one.jsonl"), sample_of(&[(1, "system"), (2, "freestone")]))]);
    let section = html.split("<h2>Memory over time</h2>").nth(1).unwrap();
    assert!(section.contains("<td>40.0 MiB</td><td>2.00 MiB</td><td>5 %</td>"), "{section}");
}

#[test]
fn differences_that_chance_explains_are_not_in_the_summary() {
    let mut results = sample();
    for (number, run) in results.runs.iter_mut().enumerate() {
        if let Outcome::Workload(record) = &mut run.outcome {
            record.wall_ns = 100_000 * [1, 3, 9, 2, 7][number % 5];
        }
    }
    let html = page_of(&[(PathBuf::from("one.jsonl"), results)]);
    assert!(
        html.contains("No difference in time was seen. Least peak memory: <b>system</b>.")
            && html.contains("<span>no difference seen in 1</span>")
    );
}

#[test]
fn several_files_become_a_trend_and_different_versions_are_named() {
    let (mut older, newer) = (sample(), sample());
    older.header.started_unix -= 86_400;
    older.header.allocators[1].version = Some("1".into());
    let mut newer = newer;
    newer.header.allocators[1].version = Some("2".into());
    let html = page_of(&[(PathBuf::from("a.jsonl"), older), (PathBuf::from("b.jsonl"), newer)]);
    assert!(html.contains("<h2>Trend</h2>"));
    assert!(html.contains("different versions: 1; 2"));
}

#[test]
fn a_curve_is_drawn_for_every_allocator_or_for_none() {
    let mut results = sample_of(&[(1, "system"), (1, "freestone")]);
    for run in &mut results.runs {
        if let (Outcome::Workload(record), "freestone") = (&mut run.outcome, run.allocator.as_str()) {
            record.rss_series.truncate(5);
        }
    }
    let html = page_of(&[(PathBuf::from("one.jsonl"), results)]);
    let curves = html.split("<h2>Memory over time</h2>").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(curves.contains("</i>freestone</li>") && curves.contains("</i>system</li>"), "{curves}");
}

#[test]
fn contenders_with_long_names_are_distinguishable() {
    let names = ["linear pool", "power-of-two pool", "power-of-two pool, no lock", "shared pool, lock-free"];
    let html = page_of(&[(PathBuf::from("one.jsonl"), sample_of(&[1, 2, 3, 4].map(|n| (n, names[n as usize - 1]))))]);
    assert!(names[1..].iter().all(|name| html.contains(&format!("</i>{name}</li>"))));
    assert_eq!(names.map(crate::show::plot::colour).iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn allocators_are_in_the_requested_order_with_their_versions_whichever_ran_first() {
    let mut results = sample_of(&[(1, "system"), (2, "mimalloc"), (3, "jemalloc")]);
    results.header.allocators[1].version = Some("mimalloc 3.3.2 (libmimalloc-sys 0.1.49)".into());
    results.runs.reverse();
    let summary = Summary::of(&results.runs, "system").with_versions(&results.header.allocators);
    assert_eq!(summary.allocators(), ["system", "mimalloc", "jemalloc"]);
    let html = page_of(&[(PathBuf::from("one.jsonl"), results)]);
    assert!(html.contains("<th>mimalloc<br>3.3.2</th>") && html.contains("</i>mimalloc 3.3.2</li>"));
}

#[test]
fn both_themes_have_their_colours() {
    let html = page_of(&[(PathBuf::from("one.jsonl"), sample())]);
    assert!(html.contains("prefers-color-scheme: dark"));
    assert!(html.contains("var(--ink)") && !html.contains("#010203"), "the plots follow the page's colours");
}

#[test]
fn counted_events_are_on_the_page() {
    let mut results = sample();
    let outcome = Outcome::Figure { name: "per 1000 operations".into(), value: 41.5 };
    let subject = "larson, 8 threads: futex calls".to_owned();
    results.runs.push(Run { subject, allocator: "system".into(), round: 0, outcome });
    let html = page_of(&[(PathBuf::from("one.jsonl"), results)]);
    assert!(html.contains("<td>larson, 8 threads: futex calls</td><td>41.5</td><td>failed</td>"), "{html}");
}

#[test]
fn the_command_that_measures_again_has_the_seed_once_whatever_options_the_measured_command_has() {
    let again = |command: &[&str]| {
        let mut results = sample();
        results.header.seed = Some(Seed(7));
        results.header.command = command.iter().map(|&word| word.to_owned()).collect();
        let html = page_of(&[(PathBuf::from("one.jsonl"), results)]);
        html.split("<pre>").nth(1).unwrap().split("</pre>").next().unwrap().to_owned()
    };
    assert_eq!(again(&["x", "compare", "p", "--seed", "5"]), "freestone compare --seed 7 p --seed 5");
    assert_eq!(again(&["x", "compare", "--seed", "7", "p"]), "freestone compare --seed 7 p");
    assert_eq!(again(&["x", "bench", "--seed=7"]), "freestone bench --seed=7");
}
