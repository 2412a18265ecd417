use super::*;
use crate::scratch_file::ScratchFolder;

/// A trace of process `pid` that has ended.
fn write(path: &Path, pid: u32) {
    write_from(path, pid, 0);
}

/// One that began at a time.
fn write_from(path: &Path, pid: u32, began_ns: u64) {
    let mut bytes = [0; HEADER_BYTES];
    Header { pid, began_ns, end: end::EXITED, peak_rss: 0, end_us: 0, len: 0, command: b"x" }.write(&mut bytes);
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
    fs::write(at("a.heap"), PROFILE).unwrap();
    fs::write(at("a.12.heap"), PROFILE).unwrap();
    let run = RunFolder::new(&at("a")).unwrap();
    write(&run.first(), 21);
    write(&run.path.join("a.12"), 12);
    write(&run.path.join("a.22"), 22);
    fs::write(run.path.join("a.22.heap"), PROFILE).unwrap();
    assert_eq!(publish(&run), ["a", "a.12.2", "a.22"]);
    assert_eq!(["a", "a.12", "a.12.2", "a.22"].map(|name| pid_at(&at(name))), [21, 7, 12, 22].map(Some));
    assert_eq!(["a.heap", "a.12.heap", "a.22.heap"].map(|name| at(name).exists()), [false, true, true]);
    let folder = run.path.clone();
    drop(run);
    assert!(!folder.exists());
}

#[test]
fn a_profile_goes_to_the_trace_of_the_last_program_of_its_process() {
    let scratch = ScratchFolder::new("profiles").unwrap();
    let at = |name: &str| scratch.path().join(name);
    write(&at("a.22"), 7);
    fs::write(at("a.22.heap"), PROFILE).unwrap();
    fs::write(at("a.23.heap"), "a letter").unwrap();
    let run = RunFolder::new(&at("a")).unwrap();
    for (name, pid, began_ns) in [("a", 21, 1), ("a.21", 21, 2), ("a.22", 22, 1), ("a.22.2", 22, 3), ("a.23", 23, 1)] {
        write_from(&run.path.join(name), pid, began_ns);
    }
    for pid in [21, 22] {
        fs::write(run.path.join(format!("a.{pid}.heap")), format!("{PROFILE}{pid}")).unwrap();
    }
    assert_eq!(publish(&run), ["a", "a.21", "a.22.2", "a.23", "a.22.3"]);
    let profile = |name: &str| fs::read_to_string(at(name)).ok();
    assert_eq!((profile("a.heap"), profile("a.21.heap")), (None, Some(format!("{PROFILE}21"))));
    assert_eq!((profile("a.22.heap").as_deref(), profile("a.22.2.heap")), (Some(PROFILE), None));
    assert_eq!(profile("a.22.3.heap"), Some(format!("{PROFILE}22")));
    fs::write(run.path.join("a.23"), "").unwrap();
    assert!(move_profile(&run.path.join("a.23"), &at("a.23.heap")).is_err());
    assert_eq!(profile("a.23.heap").as_deref(), Some("a letter"));
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

#[test]
fn of_runs_that_end_at_the_same_moment_every_trace_stays() {
    const N_RUNS: u32 = 8;
    for round in 0..100 {
        let scratch = ScratchFolder::new("runs-at-once").unwrap();
        let output = scratch.path().join("a");
        // In every second round there is a trace that all of them are to replace.
        if round % 2 == 0 {
            write(&output, 1);
        }
        let barrier = std::sync::Barrier::new(N_RUNS as usize);
        std::thread::scope(|scope| {
            for pid in 11..11 + N_RUNS {
                let run = RunFolder::new(&output).unwrap();
                write(&run.first(), pid);
                let barrier = &barrier;
                scope.spawn(move || {
                    let traces = run.traces().unwrap();
                    barrier.wait();
                    run.publish(traces).unwrap();
                });
            }
        });
        let mut pids: Vec<_> =
            fs::read_dir(scratch.path()).unwrap().map(|entry| pid_at(&entry.unwrap().path())).collect();
        pids.sort_unstable();
        assert_eq!(pids, (11..11 + N_RUNS).map(Some).collect::<Vec<_>>(), "round {round}");
    }
}

#[test]
fn the_trace_of_another_run_that_was_faster_is_put_aside() {
    let scratch = ScratchFolder::new("put-aside").unwrap();
    let at = |name: &str| scratch.path().join(name);
    write(&at("a"), 11);
    let run = RunFolder::new(&at("a")).unwrap();
    // What an exchange with the other run's trace leaves.
    write(&run.first(), 12);
    run.remove_if_earlier(&run.first()).unwrap();
    assert_eq!((pid_at(&at("a")), pid_at(&at("a.12"))), (Some(11), Some(12)));
    fs::rename(at("a"), run.first()).unwrap();
    run.remove_if_earlier(&run.first()).unwrap();
    assert!(!run.first().exists() && !at("a.11").exists());
}
