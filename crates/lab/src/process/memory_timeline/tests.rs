use super::*;

fn sample(pid: u32, ms: u64, live_bytes: u64) -> Sample {
    Sample { pid, ms, live_bytes, dirty_bytes: 1, committed_bytes: live_bytes + 1 }
}

fn live(observations: &[Observation], samples: Vec<Sample>) -> Vec<Option<u64>> {
    let report = Report { samples, ..Report::default() };
    rows(observations, &report).iter().map(|row| row.heap.map(|heap| heap.live_bytes)).collect()
}

fn observation(ms: u64, pids: &[u32]) -> Observation {
    Observation { ms, rss_bytes: 4096, pids: pids.to_vec() }
}

#[test]
fn a_row_holds_the_latest_sample_of_each_process_alive() {
    let observations =
        [observation(1000, &[7]), observation(1050, &[7, 8]), observation(1100, &[7, 8]), observation(1150, &[8])];
    let samples = vec![sample(7, 1040, 10), sample(8, 1060, 100), sample(7, 1090, 20), sample(8, 1110, 300)];
    assert_eq!(live(&observations, samples), [None, Some(10), Some(120), Some(300)]);
}

#[test]
fn rows_count_from_the_first_observation_and_sum_every_figure() {
    let observations = [observation(1000, &[]), observation(1050, &[7, 8])];
    let samples = vec![sample(7, 1010, 10), sample(8, 1010, 100)];
    let rows = rows(&observations, &Report { samples, ..Report::default() });
    let heap = HeapBytes { live_bytes: 110, dirty_bytes: 2, committed_bytes: 112 };
    assert_eq!(rows, [Row { ms: 0, rss_bytes: 4096, heap: None }, Row { ms: 50, rss_bytes: 4096, heap: Some(heap) }]);
}
