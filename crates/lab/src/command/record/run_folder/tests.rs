use super::*;
use crate::process::scratch_file::ScratchFolder;

/// A trace of process `pid` that has ended.
fn write(path: &Path, pid: u32) {
    let mut bytes = [0; HEADER_BYTES];
    Header { pid, began_ns: 0, end: end::EXITED, peak_rss: 0, end_us: 0, len: 0, command: b"x" }.write(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn pid_at(path: &Path) -> Option<u32> {
    header(path, |header| header.pid)
}

fn publish(run: &RunFolder) -> Vec<String> {
    let published = run.publish(run.traces().unwrap()).unwrap();
    published.iter().map(|trace| trace.path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// A profile without samples.
const PROFILE: &str = "heap profile: 0: 0 [ 0: 0 ] @ heap_v2/1\n\nMAPPED_LIBRARIES:\n";

#[test]
fn a_run_replaces_the_trace_that_it_found_and_nothing_else() {
    let scratch = ScratchFolder::new("run-folder").unwrap();
    let at = |name: &str| scratch.path().join(name);
    write(&at("a"), 11);
    write(&at("a.12"), 7);
    fs::write(at("a.11.heap"), PROFILE).unwrap();
    fs::write(at("a.12.heap"), PROFILE).unwrap();
    let run = RunFolder::new(&at("a")).unwrap();
    write(&run.first(), 21);
    write(&run.path.join("a.12"), 12);
    write(&run.path.join("a.22"), 22);
    fs::write(run.path.join("a.21.heap"), PROFILE).unwrap();
    assert_eq!(publish(&run), ["a", "a.12.2", "a.22"]);
    assert_eq!(["a", "a.12", "a.12.2", "a.22"].map(|name| pid_at(&at(name))), [21, 7, 12, 22].map(Some));
    assert_eq!(["a.11.heap", "a.12.heap", "a.21.heap"].map(|name| at(name).exists()), [false, true, true]);
    let folder = run.path.clone();
    drop(run);
    assert!(!folder.exists());
}

#[test]
fn of_two_runs_at_once_the_second_to_end_has_its_number_in_the_name() {
    let scratch = ScratchFolder::new("run-folders").unwrap();
    let output = scratch.path().join("a");
    let [one, other] = [(); 2].map(|()| RunFolder::new(&output).unwrap());
    write(&one.first(), 31);
    write(&other.first(), 32);
    assert_eq!((publish(&other), publish(&one)), (vec!["a".to_owned()], vec!["a.31".to_owned()]));
    assert_eq!(pid_at(&output), Some(32));
}
