use super::*;
use rows::{HeapKind, HeapStats};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn row(block_bytes: u64, live: u64, cached: u64) -> ClassStats {
    ClassStats { block_bytes, live, cached, ..ClassStats::default() }
}

#[test]
fn numbers_read_at_different_moments_still_add_up() {
    for (live, cached, spans) in [(96, 96, 1000), (960, 960, 1000), (0, 0, 1000), (4800, 4800, 1000), (4800, 0, 0)] {
        let mut rows = [row(16, live / 2, cached), row(48, live / 2, 0), row(0, 64, 16)];
        let stats = Stats { dirty: 10, metadata: 20, ..Stats::default() }.settle(&mut rows, spans);
        assert_eq!(stats.committed, 64 + 16 + spans + 30);
        assert_eq!(stats.live + stats.cached + stats.fragmented, 64 + 16 + spans);
        assert_eq!(
            (stats.live, stats.cached),
            rows.iter().fold((0, 0), |sum, row| (sum.0 + row.live, sum.1 + row.cached))
        );
        assert!(rows[..2].iter().all(|row| row.live % row.block_bytes == 0 && row.cached % row.block_bytes == 0));
    }
}

#[test]
fn what_is_too_much_is_taken_from_what_is_cached_first() {
    let mut rows = [row(16, 160, 160), row(48, 480, 480)];
    let stats = Stats::default().settle(&mut rows, 700);
    assert_eq!((stats.live, rows[0].live, rows[1].live), (640, 160, 480));
    assert!(stats.cached <= 60 && stats.cached + stats.fragmented == 60);
}

#[test]
fn counts_are_sums_over_the_rows() {
    let of =
        |n_allocations, n_frees, n_remote_frees| ClassStats { n_allocations, n_frees, n_remote_frees, ..row(16, 0, 0) };
    let stats = Stats::default().settle(&mut [of(1, 20, 300), of(4000, 50_000, 600_000)], 0);
    assert_eq!((stats.n_allocations, stats.n_frees, stats.n_remote_frees), (4001, 50_020, 600_300));
}

#[test]
fn the_density_is_what_is_live_in_each_part_of_what_is_resident() {
    let density = |live, committed, uncarved| Stats { live, committed, uncarved, ..Stats::default() }.density();
    assert_eq!([density(0, 0, 0), density(0, 1, 0), density(7, 7, 0), density(1, 3, 0)], [0, 0, 4096, 1365]);
    assert_eq!([density(1, 9, 6), density(0, 6, 6)], [1365, 0]);
    for (live, spans) in [(96, 1000), (960, 1000), (4800, 4800), (4800, 0)] {
        // What is never carved is counted by itself, and may be more than the rest of the spans for a moment.
        let counted = Stats { dirty: 10, metadata: 20, uncarved: 500, ..Stats::default() };
        let stats = counted.settle(&mut [row(16, live, 32)], spans);
        assert_eq!(stats.resident(), stats.committed - stats.fragmented.min(500));
        assert!(stats.density() <= 4096 * stats.live / stats.resident().max(1) && stats.density() < 4096);
    }
}

/// Rows in which no two numbers are the same.
fn some_details() -> (Stats, [ClassStats; 3], [HeapStats; 2]) {
    let small = ClassStats { block_bytes: 48, live: 96, cached: 144, n_allocations: 7, n_frees: 5, n_remote_frees: 1 };
    let never = row(64, 0, 0);
    let large =
        ClassStats { block_bytes: 0, live: 65_536, cached: 131_072, n_allocations: 9, n_frees: 8, n_remote_frees: 0 };
    let thread = HeapStats {
        number: 1,
        thread_id: 4711,
        spans: 262_144,
        cached: 144,
        n_allocations: 16,
        ..HeapStats::default()
    };
    let explicit = HeapStats {
        number: 2,
        kind: HeapKind::Explicit,
        spans: 327_680,
        live: 393_216,
        large: 458_752,
        limit: 524_288,
        ..thread
    };
    let mut classes = [small, never, large];
    let stats = Stats { dirty: 11, metadata: 12, dirty_by_age: [1, 2, 3, 4], n_threads: 2, ..Stats::default() };
    (stats.settle(&mut classes, 1000), classes, [thread, HeapStats { thread_id: 0, ..explicit }])
}

#[test]
fn open_metrics_has_each_row_under_its_family() {
    let (stats, classes, heaps) = some_details();
    let text = Details { stats, classes: &classes, heaps: &heaps }.open_metrics().to_string();
    let families = open_metrics_families(&text);
    let family = |name: &str| families.iter().find(|family| family.0 == name).expect("the family").1.clone();
    assert_eq!(family("freestone_live_bytes"), ["freestone_live_bytes 65632"]);
    assert_eq!(family("freestone_allocations"), ["freestone_allocations_total 16"]);
    assert_eq!(family("freestone_dirty_age_bytes").len(), 4);
    assert_eq!(
        family("freestone_class_live_bytes"),
        ["freestone_class_live_bytes{size=\"48\"} 96", "freestone_class_live_bytes{size=\"large\"} 65536"]
    );
    assert_eq!(family("freestone_heap_live_bytes"), ["freestone_heap_live_bytes{heap=\"2\",kind=\"explicit\"} 393216"]);
    assert_eq!(family("freestone_heap_span_bytes").len(), 2);
}

/// Checks the text against the grammar of OpenMetrics 1.0 as far as the library uses it. Returns the families with their samples.
fn open_metrics_families(text: &str) -> Vec<(String, Vec<String>)> {
    let body = text.strip_suffix("# EOF\n").expect("the text ends in `# EOF`");
    let mut families: Vec<(String, Vec<String>)> = Vec::new();
    let (mut kind, mut stage) = (String::new(), 0);
    for line in body.lines() {
        assert!(!line.is_empty() && line.trim() == line && !line.contains("  "), "{line:?}");
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            match what {
                "TYPE" => {
                    assert!(["gauge", "counter", "info"].contains(&rest), "{line}");
                    assert!(families.iter().all(|family| family.0 != name), "{name} comes twice");
                    families.push((name.to_string(), Vec::new()));
                    (kind, stage) = (rest.to_string(), 1);
                }
                "UNIT" => {
                    assert!(stage == 1 && name.ends_with(&format!("_{rest}")), "{line}");
                    stage = 2;
                }
                "HELP" => {
                    assert!(!rest.contains(['\\', '"']), "{line}");
                    assert_eq!(
                        stage,
                        if name.ends_with("_bytes") { 2 } else { 1 },
                        "a unit is in the name and in the metadata: {line}"
                    );
                    stage = 3;
                }
                _ => panic!("{line}"),
            }
            assert_eq!(families.last().unwrap().0, name, "metadata of one family stand together");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(!name.ends_with("_total"), "{name}");
            continue;
        }
        let family = families.last_mut().expect("a family comes first");
        assert_eq!(stage, 3, "samples come after the metadata: {line}");
        let suffix = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let (series, value) = line.rsplit_once(' ').expect("a value");
        assert!(value.parse::<u64>().is_ok(), "{line}");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert_eq!(name, format!("{}{suffix}", family.0));
        let labels = labels.strip_suffix('}').expect("a closing brace");
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (name, value) = label.split_once('=').expect("a label has a value");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{line}");
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect("a quoted value");
            assert!(!value.contains(['"', '\\', '\n']), "{line}");
        }
        assert!(!family.1.iter().any(|sample| sample.starts_with(&format!("{series} "))), "{series} comes twice");
        family.1.push(line.to_string());
    }
    families
}

#[test]
fn a_text_that_is_no_open_metrics_is_refused() {
    for wrong in [
        "# TYPE a gauge\n# HELP a b\na 1\n",
        "# TYPE a counter\n# HELP a b\na 1\n# EOF\n",
        "# TYPE a_bytes gauge\n# UNIT a_bytes seconds\n# HELP a_bytes b\n# EOF\n",
        "a 1\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\na{b=1} 1\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\na 1\na 2\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\na 1.5x\n# EOF\n",
    ] {
        assert!(std::panic::catch_unwind(|| open_metrics_families(wrong)).is_err(), "{wrong}");
    }
}

/// A thread is about to count the first block of the class.
#[test]
fn a_class_with_blocks_at_hand_has_a_row_before_its_first_block_is_counted() {
    let classes = [ClassStats { block_bytes: 48, cached: 480, ..ClassStats::default() }];
    let details = Details { stats: Stats { cached: 480, ..Stats::default() }, classes: &classes, heaps: &[] };
    assert!(details.open_metrics().to_string().contains("\nfreestone_class_cached_bytes{size=\"48\"} 480\n"));
    assert!(details.json().to_string().contains(r#""size":48,"live_bytes":0,"cached_bytes":480"#));
}

#[test]
fn json_has_the_same_figures() {
    let (stats, classes, heaps) = some_details();
    let text = Details { stats, classes: &classes, heaps: &heaps }.json().to_string();
    assert_eq!(
        text,
        concat!(
            r#"{"version":"VERSION","live_bytes":65632,"cached_bytes":131216,"fragmented_bytes":760,"dirty_bytes":11,"metadata_bytes":12,"#,
            r#""committed_bytes":197631,"resident_bytes":197631,"density_bytes":1360,"peak_committed_bytes":0,"peak_live_bytes":65632,"heaps":2,"purged_bytes":0,"fresh_bytes":0,"#,
            r#""allocations":16,"frees":13,"remote_frees":1,"handovers":0,"dirty_by_age_bytes":[1,2,3,4],"by_class":["#,
            r#"{"kind":"small","size":48,"live_bytes":96,"cached_bytes":144,"allocations":7,"frees":5,"remote_frees":1},"#,
            r#"{"kind":"large","live_bytes":65536,"cached_bytes":131072,"allocations":9,"frees":8,"remote_frees":0}],"by_heap":["#,
            r#"{"heap":1,"kind":"thread","thread_id":4711,"span_bytes":262144,"cached_bytes":144,"allocations":16,"frees":0,"#,
            r#""remote_frees":0,"handovers":0},"#,
            r#"{"heap":2,"kind":"explicit","span_bytes":327680,"cached_bytes":144,"live_bytes":393216,"large_bytes":458752,"#,
            r#""limit_bytes":524288,"allocations":16,"frees":0,"remote_frees":0,"handovers":0}]}"#
        )
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
    );
}

/// The page is for people; its tables have a row for each figure, and no other.
#[test]
fn every_figure_is_in_the_page_about_monitoring_and_nothing_else_is() {
    let page = include_str!("../../../../docs/monitoring.md");
    let documented: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| freestone_"))
        .filter_map(|rest| rest.split_once(' ').map(|(name, _)| format!("freestone_{name}")))
        .collect();
    let (stats, classes, heaps) = some_details();
    let text = Details { stats, classes: &classes, heaps: &heaps }.open_metrics().to_string();
    let exported: Vec<_> = open_metrics_families(&text).into_iter().map(|family| family.0).collect();
    assert_eq!(documented, exported);
}
