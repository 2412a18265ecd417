use super::*;

fn sample(pid: u32, ms: u64, live_bytes: u64) -> Sample {
    Sample { pid, ms, live_bytes, dirty_bytes: 1, committed_bytes: live_bytes + 1 }
}

fn live(observations: &[Observation], samples: Vec<Sample>) -> Vec<Option<u64>> {
    let report = Report { samples, ..Report::default() };
    rows(observations, &report).iter().map(|row| row.heap.map(|heap| heap.live_bytes)).collect()
}

fn seen(ms: u64, pids: &[u32]) -> Observation {
    Observation { ms, rss_bytes: 4096, pids: pids.to_vec() }
}

#[test]
fn a_row_holds_the_latest_sample_of_each_process_alive() {
    let observations = [seen(1000, &[7]), seen(1050, &[7, 8]), seen(1100, &[7, 8]), seen(1150, &[8])];
    let samples = vec![sample(7, 1040, 10), sample(8, 1060, 100), sample(7, 1090, 20), sample(8, 1110, 300)];
    assert_eq!(live(&observations, samples), [None, Some(10), Some(120), Some(300)]);
}

#[test]
fn without_the_library_the_resident_size_stands_alone() {
    let rows = rows(&[seen(1000, &[7]), seen(1050, &[7])], &Report::default());
    assert_eq!(csv(&rows).lines().last(), Some("50,4096,,,"));
    assert_eq!(series(&rows).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["resident"]);
}

#[test]
fn the_plot_is_beside_the_table_whichever_is_named() {
    let text = |file: &str| names(Path::new(file)).map(|name| name.to_string_lossy().into_owned());
    assert_eq!(text("a/memory.csv"), ["a/memory.csv", "a/memory.csv.svg"]);
    assert_eq!(text("memory"), ["memory", "memory.svg"]);
    assert_eq!(text("memory.svg"), ["memory.csv", "memory.svg"]);
}
