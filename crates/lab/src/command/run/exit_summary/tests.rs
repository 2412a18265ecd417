use super::*;
use crate::process::exit_report::Exit;
use std::path::PathBuf;

fn exit(pid: u32, peak_mib: u64, live_mib: u64) -> Exit {
    let (peak_live_bytes, live_bytes) = (peak_mib << 20, live_mib << 20);
    Exit { pid, allocations: 10, frees: 9, peak_live_bytes, live_bytes, ..Exit::default() }
}

fn lines(exits: Vec<Exit>) -> Vec<String> {
    let report = Report { started: exits.len(), exits, ..Report::default() };
    memory(&report).into_iter().map(|(name, text)| format!("{name}: {text}")).collect()
}

#[test]
fn for_one_process_all_figures_are_its_own() {
    let lines = lines(vec![exit(7, 5, 1)]);
    assert_eq!(lines[0], "allocations: 10, of which 9 were freed");
    assert_eq!(lines[1], "peak live: 5.00 MiB (1.00 MiB still live at its exit)");
}

#[test]
fn one_block_was_freed_and_several_were() {
    let one = Exit { allocations: 1, frees: 1, ..exit(7, 1, 0) };
    assert_eq!(lines(vec![one])[0], "allocations: 1, of which 1 was freed");
}

#[test]
fn for_several_processes_blocks_are_added_up_and_memory_is_that_of_the_largest() {
    let lines = lines(vec![exit(7, 5, 4), exit(8, 6, 1), exit(9, 3, 3)]);
    assert_eq!(lines[0], "allocations: 30, of which 27 were freed, in 3 processes together");
    assert_eq!(lines[1], "largest: process 8, which the next two lines describe");
    assert_eq!(lines[2], "peak live: 6.00 MiB (1.00 MiB still live at its exit)");
}

#[test]
fn a_process_that_was_killed_has_the_figures_of_its_last_state_and_how_it_ended_is_said() {
    let mut report = Report { started: 1, ..Report::default() };
    report.add_last_states(vec![exit(7, 5, 4)]);
    let (allocator, arguments) =
        (Allocator::in_library("freestone", PathBuf::from("/lib/libfreestone.so")), ["x".into()]);
    let record = CommandRecord { exit: 137, signal: Some(9), ..CommandRecord::example(5_000_000, 1 << 20) };
    let presence = Presence::of(&allocator, &report, Some(Obstacle::Privileged));
    let ended =
        EndedCommand { arguments: &arguments, allocator: &allocator, record: &record, report: &report, presence };
    let text = ended.to_text();
    assert!(text.contains("x ran under freestone"), "{text}");
    assert!(text.contains("1 process ended by signal 9 (SIGKILL): its figures are those of its last state"), "{text}");
    assert!(text.contains("peak live      5.00 MiB (4.00 MiB live at its last state)"), "{text}");
    assert!(!text.contains("not reported"), "{text}");
    assert_eq!(ended.to_json()["last_states"][0]["pid"], 7);
}

#[test]
fn of_a_process_that_goes_on_no_end_is_said() {
    let line = |pid: u32| format!("{{\"event\":\"start\",\"pid\":{pid},\"version\":\"0.1.0\"}}\n");
    let scratch = crate::scratch_file::ScratchFile::new("goes-on").unwrap();
    std::fs::write(scratch.path(), [7, 8, 9, 10].map(line).concat()).unwrap();
    let mut report = Report::read(scratch.path());
    report.add_last_states(vec![exit(7, 5, 4), exit(8, 3, 3)]);
    report.note_running(|pid| pid == 7 || pid == 9);
    let (allocator, arguments) = (Allocator::system(), ["x".into()]);
    let record = CommandRecord { exit: 0, ..CommandRecord::example(5_000_000, 1 << 20) };
    let presence = Presence::Proven;
    let ended =
        EndedCommand { arguments: &arguments, allocator: &allocator, record: &record, report: &report, presence };
    let texts: Vec<String> = ended.unreported().into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
    let expected = [
        "last state: 1 process ended by a signal or _exit: its figures are those of its last state",
        "last state: 1 process goes on: its figures are those of its last state",
        "not reported: 1 process ended by a signal or _exit, so only the kernel's figures cover it",
        "not reported: 1 process goes on, without figures",
    ];
    assert_eq!(texts, expected);
    assert_eq!(ended.to_json()["running"], json!([7, 9]));
}

#[test]
fn of_a_process_that_reported_its_exit_no_last_state_counts() {
    let mut report = Report { started: 2, exits: vec![exit(7, 5, 1)], ..Report::default() };
    report.add_last_states(vec![exit(7, 9, 9), exit(8, 3, 3)]);
    assert_eq!(
        (report.last_states.len(), report.without_figures(), report.largest().map(|exit| exit.pid)),
        (1, 0, Some(7))
    );
    // A page whose process is in no line proves all the same that the library was there.
    let mut silent = Report::default();
    silent.add_last_states(vec![exit(9, 1, 1)]);
    assert_eq!(silent.started, 1);
}

#[test]
fn without_a_process_there_are_no_lines() {
    assert!(lines(Vec::new()).is_empty());
}

#[test]
fn the_allocator_is_proven_by_the_librarys_report_or_refuted_by_the_commands_file() {
    let freestone = Allocator::in_library("freestone", PathBuf::from("/lib/libfreestone.so"));
    let other = Allocator::in_library("other", PathBuf::from("/lib/other.so"));
    let silent = Report::default();
    let started = Report { started: 1, ..Report::default() };
    assert!(matches!(Presence::of(&Allocator::system(), &silent, None), Presence::Proven));
    assert!(matches!(Presence::of(&freestone, &started, None), Presence::Proven));
    assert!(matches!(Presence::of(&freestone, &silent, None), Presence::Unseen));
    assert!(matches!(Presence::of(&other, &silent, None), Presence::Likely));
    assert!(matches!(Presence::of(&other, &silent, Some(Obstacle::Static)), Presence::Absent(_)));
    // The bits of a file say what may happen; the report says what did.
    assert!(matches!(Presence::of(&freestone, &started, Some(Obstacle::Privileged)), Presence::Proven));
    assert!(matches!(Presence::of(&freestone, &silent, Some(Obstacle::Privileged)), Presence::Absent(_)));
    // A program with a malloc of its own may use the library's all the same: the blocks it allocated there prove it.
    let exits = vec![exit(7, 1, 1)];
    let used = Report { started: 1, exits, ..Report::default() };
    assert!(matches!(Presence::of(&freestone, &used, Some(Obstacle::OwnMalloc)), Presence::Proven));
    assert!(matches!(Presence::of(&freestone, &started, Some(Obstacle::OwnMalloc)), Presence::Absent(_)));
}

#[test]
fn an_exit_status_other_than_0_is_in_the_summary() {
    let record = CommandRecord { exit: 3, ..CommandRecord::example(5_000_000, 1 << 20) };
    let (report, allocator) = (Report::default(), Allocator::system());
    let arguments = ["ls".into(), "-l".into()];
    let ended = |record| EndedCommand {
        arguments: &arguments,
        allocator: &allocator,
        record,
        report: &report,
        presence: Presence::Proven,
    };
    let text = ended(&record).to_text();
    assert!(text.contains("freestone: ls ran under system") && text.contains("exit status 3"), "{text}");
    assert!(text.contains("peak RSS       1.00 MiB") && text.contains("5.00 ms"), "{text}");
    let succeeded = CommandRecord { exit: 0, ..record.clone() };
    assert!(!ended(&succeeded).to_text().contains("exit status"));
    assert_eq!(ended(&record).to_json()["command"], "ls -l");
}
