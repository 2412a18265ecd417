use super::*;

#[test]
fn starts_and_exits_are_matched_by_process_and_unknown_keys_are_allowed() {
    let report = Report::parse(
        "{\"event\":\"start\",\"pid\":7,\"version\":\"0.1.0\"}\n\
         {\"event\":\"start\",\"pid\":8,\"version\":\"0.1.0\"}\n\
         {\"event\":\"sample\",\"pid\":8,\"ms\":60,\"live_bytes\":3,\"dirty_bytes\":2,\"committed_bytes\":5,\"news\":1}\n\
         {\"event\":\"exit\",\"pid\":8,\"allocations\":5,\"frees\":4,\"news\":1,\"peak_live_bytes\":9}\n\
         not json\n",
    );
    assert_eq!((report.started, report.exits.len(), report.without_figures()), (2, 1, 1));
    assert_eq!((report.sum(|exit| exit.allocations), report.largest().map(|exit| exit.pid)), (5, Some(8)));
    let sample = Sample { pid: 8, ms: 60, live_bytes: 3, dirty_bytes: 2, committed_bytes: 5 };
    assert_eq!(report.samples, [sample]);
    assert_eq!(report.version.as_deref(), Some("0.1.0"));
}

#[test]
fn a_line_behind_a_part_of_one_counts() {
    let report = Report::parse(
        "{\"event\":\"sample\",\"pid\":7,\"ms\":60,\"live_b{\"event\":\"exit\",\"pid\":8,\"allocations\":5,\"frees\":4,\"peak_live_bytes\":9}\n\
         {\"event\":\"exit\",\"pi",
    );
    assert_eq!((report.samples.len(), report.exits.len(), report.started), (0, 1, 1));
    assert_eq!(report.sum(|exit| exit.allocations), 5);
}

#[test]
fn an_absent_file_is_no_proof() {
    assert_eq!(Report::read(Path::new("/no/such/report")), Report::default());
}
