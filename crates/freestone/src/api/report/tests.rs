use super::*;
use crate::config::Settings;
use std::fs;
use std::string::String;

#[test]
fn the_longest_line_there_can_be_is_not_cut() {
    const MOST: u64 = u64::MAX;
    let stats = Stats {
        live: MOST,
        cached: MOST,
        fragmented: MOST,
        dirty: MOST,
        metadata: MOST,
        committed: MOST,
        peak_committed: MOST,
        peak_live: MOST,
        purged: MOST,
        fresh: MOST,
        n_allocations: MOST,
        n_frees: MOST,
        n_remote_frees: MOST,
        n_handovers: MOST,
        n_threads: u32::MAX,
        ..Stats::default()
    };
    let line = stats_line(Event::Sample, i32::MIN, MOST, &stats);
    let text = str::from_utf8(line.as_bytes()).unwrap();
    assert!(text.starts_with(r#"{"event":"sample","pid":-2147483648,"#), "{text}");
    assert!(text.ends_with("\"threads\":4294967295}\n"), "{text}");
    assert_eq!(text.matches(&std::format!("{MOST}")).count(), 16);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "no file is appended to there")]
#[cfg_attr(miri, ignore = "calls the kernel")]
fn lines_are_appended_in_order_and_statistics_are_taken_only_for_a_report() {
    let settings = Settings::new();
    let report = settings.report_file();
    append_stats(report, Event::Sample, || panic!("there is no report"));
    let path = std::env::temp_dir().join(std::format!("freestone-report-{}", std::process::id()));
    report.set(path.as_os_str().as_encoded_bytes()).unwrap();
    append_start(report);
    append_stats(report, Event::Exit, || (7, Stats { live: 24, ..Stats::default() }));
    let text: String = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let (start, exit) = text.trim_end().split_once('\n').unwrap();
    assert!(start.starts_with(r#"{"event":"start","pid":"#), "{start}");
    assert!(exit.starts_with(r#"{"event":"exit","pid":"#), "{exit}");
    assert!(exit.contains(r#""ms":7,"#) && exit.contains(r#""live_bytes":24,"#), "{exit}");
}
