use super::*;
use std::ffi::CString;
use std::fs;
use std::string::String;

fn path_of(report: &Report) -> Option<CString> {
    report.get().map(|path| CStr::from_bytes_until_nul(&path).unwrap().to_owned())
}

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
    assert_eq!(text.matches(&std::format!("{MOST}")).count(), 15);
}

#[test]
fn the_last_path_counts_and_an_empty_one_turns_the_report_off() {
    let report = Report::new();
    assert_eq!(path_of(&report), None);
    report.set(b"/tmp/a-longer-path").unwrap();
    report.set(b"/tmp/short").unwrap();
    assert_eq!(path_of(&report).as_deref(), Some(c"/tmp/short"));
    assert_eq!(report.set(&[b'x'; REPORT_PATH_BYTES]), Err(Mistake::OutOfRange));
    assert_eq!(path_of(&report).as_deref(), Some(c"/tmp/short"));
    report.set(b"").unwrap();
    assert_eq!(path_of(&report), None);
}

#[test]
fn the_longest_path_is_kept_whole() {
    let (report, path) = (Report::new(), [b'x'; REPORT_PATH_BYTES - 1]);
    report.set(&path).unwrap();
    assert_eq!(path_of(&report), Some(CString::new(path).unwrap()));
}

#[test]
#[cfg_attr(miri, ignore = "calls the kernel")]
fn lines_are_appended_in_order_and_statistics_are_taken_only_for_a_report() {
    let report = Report::new();
    report.append_stats(Event::Sample, 1, || panic!("there is no report"));
    let path = std::env::temp_dir().join(std::format!("freestone-report-{}", std::process::id()));
    report.set(path.as_os_str().as_encoded_bytes()).unwrap();
    report.append_start();
    report.append_stats(Event::Exit, 7, || Stats { live: 24, ..Stats::default() });
    let text: String = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let (start, exit) = text.trim_end().split_once('\n').unwrap();
    assert!(start.starts_with(r#"{"event":"start","pid":"#), "{start}");
    assert!(exit.starts_with(r#"{"event":"exit","pid":"#), "{exit}");
    assert!(exit.contains(r#""ms":7,"#) && exit.contains(r#""live_bytes":24,"#), "{exit}");
}
