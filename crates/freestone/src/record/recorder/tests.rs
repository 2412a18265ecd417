#![cfg(all(target_os = "linux", not(miri)))]
extern crate std;

use super::*;
use freestone_trace::{What, file};
use std::path::PathBuf;
use std::vec::Vec;
use std::{env, format, fs};

/// The thread of each event, and what it did.
type Events = Vec<(u32, What)>;

/// A trace in a file of its own, which is removed at the end.
struct Recording {
    trace: TraceFile,
    path: PathValue,
    file: PathBuf,
}

impl Recording {
    fn new(name: &str) -> Self {
        let file = env::temp_dir().join(format!("freestone-recorder-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&file);
        Self::at(file)
    }

    fn at(file: PathBuf) -> Self {
        let (trace, path) = (TraceFile::new(), PathValue::new());
        path.set(file.to_str().unwrap().as_bytes()).unwrap();
        trace.begin(&path);
        Self { trace, path, file }
    }

    fn to(&self) -> Destination<'_> {
        Destination { trace: &self.trace, path: &self.path }
    }

    fn recorder(&self) -> Recorder {
        let recorder = Recorder::new();
        recorder.begin(&self.trace);
        recorder
    }

    /// For each chunk, in the order of recorders: its recorder, its place and its events.
    fn chunks(&self) -> Vec<(u32, u64, Events)> {
        let bytes = fs::read(&self.file).unwrap();
        let mut chunks: Vec<_> = file::chunks(&bytes)
            .map(|chunk| {
                let chunk = chunk.unwrap();
                let events = chunk.events().map(|event| event.unwrap()).map(|event| (event.thread, event.what));
                (chunk.header.recorder, chunk.header.place, events.collect())
            })
            .collect();
        chunks.sort_by_key(|&(recorder, place, _)| (recorder, place));
        chunks
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// As a thread records that it allocated: in a word if that is possible.
fn allocate_small(recorder: &Recorder, to: Destination<'_>, kind: Kind, size: usize, block: *mut u8) -> bool {
    recorder.allocated_in_a_word(to.trace, kind, size, block)
        || recorder.allocated(to, kind, Asked { size, align: 1 }, block)
}

/// As a thread records that it freed.
fn free(recorder: &Recorder, to: Destination<'_>, ticket: Option<u64>, block: *mut u8) -> bool {
    (ticket.is_none() && recorder.freed_in_a_word(to.trace, block)) || recorder.freed(to, ticket, block)
}

fn block(address: usize) -> *mut u8 {
    ptr::without_provenance_mut(address)
}

#[test]
fn what_a_thread_does_reads_back_whole_over_several_chunks() {
    let recording = Recording::new("whole");
    let (recorder, to) = (recording.recorder(), recording.to());
    recorder.thread(to, 7, false);
    let mut expected = std::vec![What::Begin];
    for n in 0..40_000_usize {
        let (size, at) = (n % 3000, 0x7000_0000_0000 + (n.wrapping_mul(0x9E37_79B9) & 0xFFF_FFFF) * 16);
        assert!(allocate_small(&recorder, to, Kind::New, size, block(at)));
        expected.push(What::Allocate { kind: Kind::New, size: size as u64, align_log2: 0, block: at as u64 });
        assert!(free(&recorder, to, (n % 100 == 0).then(|| recording.trace.take_sequence()), block(at)));
        expected.push(What::Free { block: at as u64 });
    }
    recorder.thread(to, 7, true);
    expected.push(What::End);
    let chunks = recording.chunks();
    assert!(chunks.len() > 3 && chunks.iter().map(|chunk| chunk.1).eq(0..chunks.len() as u64), "{}", chunks.len());
    let events: Vec<_> = chunks.into_iter().flat_map(|chunk| chunk.2).collect();
    assert!(events.iter().all(|event| event.0 == 7));
    assert!(events.into_iter().map(|event| event.1).eq(expected));
}

#[test]
fn alignments_failures_and_resized_blocks_are_in_the_trace() {
    let recording = Recording::new("kinds");
    let (recorder, to) = (recording.recorder(), recording.to());
    recorder.allocated(to, Kind::CZeroed, Asked { size: 1 << 20, align: 4096 }, block(0x10_0000));
    recorder.allocated(to, Kind::C, Asked { size: usize::MAX >> 1, align: 16 }, ptr::null_mut());
    let from = Resized { block: block(0x10_0000), ticket: Some(recording.trace.take_sequence()) };
    recorder.resized(to, from, Asked { size: 5, align: 1 }, block(0x20_0000));
    let what: Vec<What> = recording.chunks().remove(0).2.into_iter().map(|event| event.1).collect();
    assert_eq!(
        what,
        [
            What::Allocate { kind: Kind::CZeroed, size: 1 << 20, align_log2: 12, block: 0x10_0000 },
            What::Allocate { kind: Kind::C, size: u64::MAX >> 1, align_log2: 0, block: 0 },
            What::Resize { from: 0x10_0000, size: 5, block: 0x20_0000 },
        ]
    );
}

#[test]
fn a_child_leaves_its_parents_chunk_as_it_is_and_begins_its_own() {
    let recording = Recording::new("leave");
    let (recorder, to) = (recording.recorder(), recording.to());
    allocate_small(&recorder, to, Kind::C, 10, block(0x1000));
    recorder.leave(to);
    recorder.thread_is(3);
    allocate_small(&recorder, to, Kind::C, 20, block(0x2000));
    let sizes = |events: &[(u32, What)]| -> Vec<(u32, u64)> {
        let size = |&(thread, what): &(u32, What)| match what {
            What::Allocate { size, .. } => (thread, size),
            _ => (thread, 0),
        };
        events.iter().map(size).collect()
    };
    let chunks: Vec<_> = recording.chunks().iter().map(|chunk| (chunk.0, chunk.1, sizes(&chunk.2))).collect();
    assert_eq!(chunks, [(0, 0, std::vec![(0, 10)]), (1, 0, std::vec![(3, 20)])]);
}

#[test]
fn without_a_file_nothing_is_recorded_and_the_caller_is_told() {
    let recording = Recording::at(PathBuf::from("/dev/null/x"));
    let (recorder, to) = (recording.recorder(), recording.to());
    assert!(!allocate_small(&recorder, to, Kind::C, 10, block(0x1000)));
    assert!(!free(&recorder, to, None, block(0x1000)) && !recording.trace.is_on());
}

#[test]
fn events_have_the_sequence_numbers_that_were_seen_and_those_that_were_taken() {
    let recording = Recording::new("sequence");
    let (recorder, to) = (recording.recorder(), recording.to());
    let take = || recording.trace.take_sequence();
    recorder.thread(to, 1, false);
    allocate_small(&recorder, to, Kind::C, 10, block(0x1000));
    assert_eq!(take(), 1, "another thread's");
    allocate_small(&recorder, to, Kind::C, 10, block(0x2000));
    free(&recorder, to, Some(take()), block(0x1000));
    free(&recorder, to, None, block(0x2000));
    take();
    recorder.allocated(to, Kind::C, Asked { size: 1 << 20, align: 1 }, block(0x3000));
    recorder.resized(
        to,
        Resized { block: block(0x3000), ticket: Some(take()) },
        Asked { size: 9, align: 1 },
        block(0x10),
    );
    let bytes = fs::read(&recording.file).unwrap();
    let chunk = file::chunks(&bytes).next().unwrap().unwrap();
    let seen: Vec<_> = chunk.events().map(|event| event.unwrap()).map(|event| (event.sequence, event.ticket)).collect();
    assert_eq!(seen, [(0, Some(0)), (1, None), (2, None), (2, Some(2)), (3, None), (4, None), (5, Some(4))]);
}

#[test]
fn a_chunk_that_is_full_is_sealed_and_a_copy_added_to_the_file() {
    let recording = Recording::new("sealed");
    let (recorder, to) = (recording.recorder(), recording.to());
    let mut mapped = Vec::new();
    for n in 0..30_000_usize {
        recorder.allocated(to, Kind::C, Asked { size: 1 << 20, align: 4096 }, block((1 + n) << 12));
        mapped.push(recorder.chunk.get().start);
    }
    mapped.dedup();
    assert_eq!(mapped.len(), 1, "it stays mapped");
    let bytes = fs::read(&recording.file).unwrap();
    let chunks: Vec<_> = file::chunks(&bytes).map(|chunk| chunk.unwrap()).collect();
    assert!(chunks.len() > 3 && chunks.iter().all(|chunk| chunk.header.len as usize == CHUNK_BYTES));
    let last = chunks.len() as u64 - 1;
    assert!(chunks.iter().all(|chunk| chunk.is_sealed == (chunk.header.place != last)));
    assert_eq!(chunks[0].header.place, last, "copies of the ones before lie behind it");
}

#[test]
fn behind_the_last_word_of_a_chunk_is_nothing_of_the_chunk_before() {
    let recording = Recording::new("emptied");
    let (recorder, to) = (recording.recorder(), recording.to());
    while recorder.place.get() < 3 {
        assert!(allocate_small(&recorder, to, Kind::C, 10, block(0x7000_0000_0000)));
    }
    // So far apart that it takes a word of eight bytes, the only ones that bring no zero byte with them.
    let (encoder, far) = (Encoder::new(0, 0), 0x5800_0000_0000);
    encoder.free(0x7000_0000_0000, |_| ());
    assert_eq!(encoder.small_in_a_word(Kind::C, 11, far).unwrap().len, 8);
    assert!(allocate_small(&recorder, to, Kind::C, 11, block(far)));
    let events = recording.chunks().pop().unwrap().2;
    assert_eq!(events.last().unwrap().1, What::Allocate { kind: Kind::C, size: 11, align_log2: 0, block: far as u64 });
}

#[test]
fn when_the_file_cannot_grow_any_more_the_chunk_that_is_full_stays() {
    let recording = Recording::new("no-more");
    let (recorder, to) = (recording.recorder(), recording.to());
    let mut n = 0;
    let mut allocate = || {
        n += 1;
        allocate_small(&recorder, to, Kind::C, n % 100, block(n << 20))
    };
    while recorder.place.get() < 4 {
        assert!(allocate());
    }
    let file = fs::OpenOptions::new().write(true).open(&recording.file).unwrap();
    let end = file.metadata().unwrap().len();
    // No file is that long.
    recording.trace.end.store(1 << 62, core::sync::atomic::Ordering::Relaxed);
    while allocate() {}
    assert!(!allocate() && !recording.trace.is_on());
    assert_eq!(file.metadata().unwrap().len(), end);
    let chunks = recording.chunks();
    assert!(chunks.iter().map(|chunk| chunk.1).eq(0..4));
    assert_eq!(chunks.iter().map(|chunk| chunk.2.len()).sum::<usize>(), n - 2, "all but the calls that failed");
}

#[test]
fn a_child_does_not_keep_its_parents_chunk_mapped() {
    let recording = Recording::new("unmapped");
    let (recorder, to) = (recording.recorder(), recording.to());
    recorder.leave(to);
    allocate_small(&recorder, to, Kind::C, 10, block(0x1000));
    let start = recorder.chunk.get().start;
    assert!(crate::testing::kernel_can_read(start));
    recorder.leave(to);
    assert!(!crate::testing::kernel_can_read(start));
}

#[test]
fn a_thread_that_calls_often_reads_the_clock_seldom_and_the_other_way_round() {
    let recording = Recording::new("stride");
    let (recorder, to) = (recording.recorder(), recording.to());
    // As if so many microseconds had passed since it looked last, and a moment.
    let look = |passed_us: Option<u64>| {
        let last_us = passed_us.map_or(u64::MAX, |passed| to.trace.now_us().saturating_sub(passed));
        recorder.looked_us.set(last_us);
        assert!(recorder.look(to));
        assert!(recorder.looked_us.get() <= to.trace.now_us());
        let ahead = recorder.look.get().addr() - recorder.cursor.get().addr();
        assert_eq!(ahead, recorder.stride.get().max(1));
        recorder.stride.get()
    };
    assert!((0..8).map(|_| look(None)).eq([8, 16, 32, 64, 128, 256, 512, 512]));
    while to.trace.now_us() < 1000 {
        core::hint::spin_loop();
    }
    assert!((0..6).map(|_| look(Some(500))).eq([128, 32, 8, 2, 0, 0]));
    assert_eq!(look(None), 8);
    // Neither often nor seldom, if this thread is not interrupted for long.
    for _ in 0..1000 {
        let before_us = to.trace.now_us();
        let (before, after) = (recorder.stride.get(), look(Some(20)));
        if to.trace.now_us() - before_us < 15 {
            assert_eq!(before, after);
            break;
        }
    }
}
