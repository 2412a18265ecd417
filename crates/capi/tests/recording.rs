//! The option `record`: what C programs do is in their traces.

mod harness;

use freestone_trace::{Event, What, file};
use harness::{Program, Way, scratch};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A path for a trace, where there is no file.
fn trace(name: &str) -> PathBuf {
    let path = scratch("recording").join(name);
    for entry in fs::read_dir(scratch("recording")).expect("the folder exists").flatten() {
        if entry.file_name().to_string_lossy().starts_with(name) {
            let _ = fs::remove_file(entry.path());
        }
    }
    path
}

fn run(part: &str, path: &Path) -> Output {
    let program = Program::with_flags("recording.c", Way::Preload, &["-pthread"]);
    let mut command: Command = program.command();
    // The allocator's own thread would be one of the threads.
    command
        .arg(part)
        .env("FREESTONE_RECORD", path)
        .env("FREESTONE_BACKGROUND", "off")
        .output()
        .expect("the program can be run")
}

/// The events of a trace without damage, in the order of each recorder, and how it ended.
fn events(path: &Path) -> (Vec<Event>, u64) {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("no trace {}: {error}", path.display()));
    let header = file::Header::read(&bytes).expect("a trace");
    let mut chunks: Vec<_> = file::chunks(&bytes).map(|chunk| chunk.expect("no damage")).collect();
    // At a limit on the length of files, a part of a chunk may be there beside the chunk.
    chunks.sort_by_key(|chunk| (chunk.header.recorder, chunk.header.place, chunk.is_cut));
    chunks.dedup_by_key(|chunk| (chunk.header.recorder, chunk.header.place));
    let events = chunks.iter().flat_map(freestone_trace::chunk::Chunk::events).map(|event| event.expect("no damage"));
    (events.collect(), header.end)
}

fn allocated(events: &[Event], wanted: u64) -> Vec<u64> {
    let block = |event: &Event| match event.what {
        What::Allocate { size, block, .. } if size == wanted => Some(block),
        _ => None,
    };
    events.iter().filter_map(block).collect()
}

fn n_freed(events: &[Event], wanted: u64) -> usize {
    events.iter().filter(|event| event.what == What::Free { block: wanted }).count()
}

#[test]
fn every_call_of_the_family_is_in_the_trace_with_size_alignment_and_result() {
    let path = trace("calls");
    assert!(run("calls", &path).status.success());
    let (events, end) = events(&path);
    assert_eq!(end & file::end::EXITED, file::end::EXITED);
    let block_of = |size: u64| {
        let blocks = allocated(&events, size);
        assert_eq!(blocks.len(), 1, "of {size} bytes");
        blocks[0]
    };
    let one = block_of(12321);
    let resized = events.iter().find_map(|event| match event.what {
        What::Resize { from, size: 54321, block } if from == one => Some(block),
        _ => None,
    });
    for block in [block_of(12327), block_of(10_000_019), block_of(12323), resized.expect("a resized block")] {
        assert_ne!(block, 0);
        assert_eq!(n_freed(&events, block), 1, "block {block:#x}");
    }
    assert_eq!(block_of(u64::MAX / 2 - 7), 0, "an allocation that failed has no block");
    let aligned = |event: &Event| matches!(event.what, What::Allocate { size: 12323, align_log2: 12, .. });
    let zeroed = |event: &Event| matches!(event.what, What::Allocate { size: 12327, kind, .. } if kind.is_zeroed());
    assert!(events.iter().any(aligned) && events.iter().any(zeroed));
    assert_eq!(n_freed(&events, 0), 0, "a free of null does nothing");
}

#[test]
fn of_an_explicit_heap_only_frees_are_recorded() {
    let path = trace("explicit_heap");
    let output = run("explicit_heap", &path);
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).expect("two addresses");
    let blocks: Vec<u64> = said.split_whitespace().map(|block| block.parse().expect("an address")).collect();
    let (events, _) = events(&path);
    assert!(allocated(&events, 12329).is_empty() && allocated(&events, 12331).is_empty());
    assert_eq!([n_freed(&events, blocks[0]), n_freed(&events, blocks[1])], [1, 0], "blocks: {said}");
}

#[test]
fn the_sequence_orders_what_threads_pass_to_each_other() {
    let path = trace("passing");
    assert!(run("passing", &path).status.success());
    let (events, _) = events(&path);
    // By address: the places of allocations and frees alternate.
    let mut by_block: HashMap<u64, Vec<(u64, bool, bool)>> = HashMap::new();
    for event in &events {
        let place = event.ticket.map_or((event.sequence, false), |ticket| (ticket, true));
        match event.what {
            What::Allocate { size: 3001..=3007, block, .. } => {
                by_block.entry(block).or_default().push((place.0, place.1, true));
            }
            What::Free { block } if by_block.contains_key(&block) => {
                by_block.entry(block).or_default().push((place.0, place.1, false));
            }
            _ => {}
        }
    }
    assert_eq!(by_block.values().flatten().filter(|place| place.2).count(), 200_000);
    for (block, mut places) in by_block {
        places.sort_unstable();
        let kinds: Vec<bool> = places.iter().map(|place| place.2).collect();
        assert!(kinds.iter().step_by(2).all(|&is| is) && kinds.iter().skip(1).step_by(2).all(|&is| !is), "{block:#x}");
    }
    let threads: BTreeSet<u32> = events.iter().map(|event| event.thread).collect();
    assert_eq!(threads.len(), 2);
}

#[test]
fn threads_that_end_leave_their_recorders_to_others() {
    let path = trace("threads");
    assert!(run("threads", &path).status.success());
    let (events, _) = events(&path);
    let count = |what: What| events.iter().filter(|event| event.what == what).count();
    assert_eq!((count(What::Begin), count(What::End)), (201, 200));
    assert_eq!((allocated(&events, 4441).len(), allocated(&events, 4443).len()), (200, 200));
    assert!(fs::metadata(&path).expect("a trace").len() < 200 << 10, "a thread does not need a chunk of its own");
}

#[test]
fn a_thread_with_the_shortest_stack_is_recorded() {
    let path = trace("short_stack");
    let output = run("short_stack", &path);
    assert!(output.status.success(), "{}", harness::text(&output));
    let (events, _) = events(&path);
    assert_eq!(allocated(&events, 4441).len(), 1);
}

#[test]
fn a_forked_child_has_a_trace_of_its_own() {
    let path = trace("forks");
    let output = run("forks", &path);
    assert!(output.status.success());
    let child = String::from_utf8(output.stdout).expect("a number").trim().to_owned();
    let (parents, _) = events(&path);
    let (childs, end) = events(&path.with_extension(&child));
    assert_eq!((allocated(&parents, 7001).len(), allocated(&parents, 7003).len()), (1001, 0));
    assert_eq!((allocated(&childs, 7001).len(), allocated(&childs, 7003).len()), (0, 1000));
    assert_eq!(end & file::end::EXITED, file::end::EXITED);
}

#[test]
fn a_child_forked_by_a_callback_in_a_recorded_call_records_its_threads_apart() {
    let path = trace("callback");
    let output = run("callback", &path);
    assert!(output.status.success(), "{}", harness::text(&output));
    let child = String::from_utf8(output.stdout).expect("a number").trim().to_owned();
    let (childs, _) = events(&path.with_extension(&child));
    let threads_of = |wanted: u64| {
        let of =
            |event: &Event| matches!(event.what, What::Allocate { size, .. } if size == wanted).then_some(event.thread);
        childs.iter().filter_map(of).collect::<Vec<_>>()
    };
    let (first, second) = (threads_of(8001), threads_of(8003));
    assert_eq!((first.len(), second.len()), (2, 1));
    assert_eq!(first[0], first[1], "the first thread's calls stay its own");
    assert_ne!(first[0], second[0]);
}

#[test]
fn a_program_that_is_killed_leaves_all_calls_before() {
    let path = trace("killed");
    assert!(!run("killed", &path).status.success());
    let (events, end) = events(&path);
    assert_eq!(allocated(&events, 5003).len(), 20_000);
    assert_eq!(end, 0, "it did not end by itself");
}

#[test]
fn a_trace_has_less_than_eight_bytes_a_call() {
    let path = trace("many");
    assert!(run("many", &path).status.success());
    let (events, _) = events(&path);
    assert!(events.len() >= 4_000_000);
    let bytes = fs::metadata(&path).expect("a trace").len();
    assert!(bytes < 8 * events.len() as u64, "{bytes} bytes for {} calls", events.len());
}

#[test]
fn a_signal_handler_that_allocates_damages_no_event() {
    let path = trace("signals");
    assert!(run("signals", &path).status.success());
    let (events, _) = events(&path);
    assert_eq!(allocated(&events, 6001).len(), 3_000_000);
}

#[test]
fn a_path_that_cannot_be_written_is_said_once_and_the_program_goes_on() {
    for path in ["/nowhere/at/all", "/dev/full/x"] {
        let output = run("passing", Path::new(path));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        let expected = format!("freestone: cannot record to {path}: error ");
        assert!(text.starts_with(&expected) && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    let path = trace("kept");
    fs::write(&path, "mine").expect("the folder can be written");
    assert!(run("calls", &path).status.success());
    assert_eq!(fs::read(&path).expect("it exists"), b"mine");
    let folder = fs::read_dir(scratch("recording")).expect("the folder exists");
    let names: Vec<_> = folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name.starts_with("kept.")), "{names:?}");
}

#[test]
fn at_a_limit_the_trace_ends_and_the_program_goes_on() {
    let path = trace("limited");
    let program = Program::with_flags("recording.c", Way::Preload, &["-pthread"]);
    let mut command = Command::new("sh");
    let script = r#"ulimit -f 512; exec env LD_PRELOAD="$1" FREESTONE_RECORD="$2" "$3" many"#;
    command.args(["-c", script, "sh"]).arg(harness::shared_library()).arg(&path).arg(program.path());
    let output = command.output().expect("a shell can be run");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("cannot record more to") && text.lines().count() == 1, "{text}");
    let (events, end) = events(&path);
    assert!(events.len() > 10_000 && end & file::end::CUT_OFF != 0, "{} events, {end}", events.len());
}
