use super::*;
use crate::results::outcome::{Outcome, Run};
use crate::workload::workload_record::WorkloadRecord;

fn machine() -> Machine {
    Machine { processors: 4, load: 0.0, governor: None, transparent_huge_pages: "madvise".into(), ..Machine::here() }
}

#[test]
fn a_quiet_machine_gives_no_reason_for_doubt_and_each_property_gives_its_own() {
    assert_eq!(of_machine(&machine()), []);
    assert_eq!(of_machine(&Machine { load: 2.0, ..machine() }), [], "half of the processors");
    let loaded = of_machine(&Machine { load: 2.5, ..machine() });
    assert_eq!(loaded, [Warning::Loaded { load_hundredths: 250, processors: 4 }]);
    let scaled = of_machine(&Machine { governor: Some("powersave".into()), ..machine() });
    assert_eq!(scaled, [Warning::FrequencyScaling { governor: "powersave".into() }]);
    assert_eq!(of_machine(&Machine { governor: Some("performance".into()), ..machine() }), []);
    let huge = of_machine(&Machine { transparent_huge_pages: "always".into(), ..machine() });
    assert_eq!(huge, [Warning::HugePagesAlways]);
}

fn summary_of(runs: &[(&str, u64, u64)]) -> Summary {
    let run = |(round, &(allocator, wall_ns, checksum)): (usize, &(&str, u64, u64))| {
        let record = WorkloadRecord { wall_ns, checksum, ..WorkloadRecord::example() };
        let outcome = Outcome::Workload(Box::new(record));
        Run { subject: "x".into(), allocator: allocator.into(), round, outcome }
    };
    Summary::of(&runs.iter().enumerate().map(run).collect::<Vec<_>>(), "system")
}

#[test]
fn rounds_that_differ_by_more_than_a_tenth_are_noisy() {
    let steady = summary_of(&[("system", 100_000, 7), ("system", 101_000, 7), ("system", 99_000, 7)]);
    assert_eq!(of_figures(&steady), []);
    let noisy = summary_of(&[("system", 100_000, 7), ("system", 150_000, 7), ("system", 50_000, 7)]);
    let expected = Warning::NoisyRounds { subject: "x".into(), allocator: "system".into(), spread_percent: 50 };
    assert_eq!(of_figures(&noisy), [expected]);
}

#[test]
fn a_result_that_differs_from_the_baselines_is_named() {
    let differing = summary_of(&[("system", 100_000, 7), ("other", 100_000, 8)]);
    let expected = Warning::ResultsDiffer { subject: "x".into(), allocator: "other".into() };
    assert_eq!(of_figures(&differing), [expected]);
}
