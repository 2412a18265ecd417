use super::*;
use crate::exit_report::Exit;

fn exit(pid: u32, peak_mib: u64, live_mib: u64) -> Exit {
    let (peak_live_bytes, live_bytes) = (peak_mib << 20, live_mib << 20);
    Exit { pid, allocations: 10, frees: 9, peak_live_bytes, live_bytes, ..Exit::default() }
}

fn told(exits: Vec<Exit>) -> Vec<String> {
    let report = Report { started: exits.len(), exits, ..Report::default() };
    memory(&report).into_iter().map(|(name, text)| format!("{name}: {text}")).collect()
}

#[test]
fn of_one_process_everything_is_its_own() {
    let lines = told(vec![exit(7, 5, 1)]);
    assert_eq!(lines[0], "allocations: 10, of which 9 were freed");
    assert_eq!(lines[1], "peak live: 5.00 MiB (1.00 MiB still live at its exit)");
}

#[test]
fn of_several_processes_blocks_are_added_up_and_memory_is_the_largest_ones() {
    let lines = told(vec![exit(7, 5, 4), exit(8, 6, 1), exit(9, 3, 3)]);
    assert_eq!(lines[0], "allocations: 30, of which 27 were freed, in 3 processes together");
    assert_eq!(lines[1], "largest: process 8, which the next two lines are about");
    assert_eq!(lines[2], "peak live: 6.00 MiB (1.00 MiB still live at its exit)");
}

#[test]
fn of_no_process_nothing_is_said() {
    assert!(told(Vec::new()).is_empty());
}
