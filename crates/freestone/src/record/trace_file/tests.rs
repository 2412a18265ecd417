extern crate std;
use super::*;
use freestone_trace::chunk::{self, Header};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::vec::Vec;
use std::{env, format, fs, hint};

/// A trace whose file has a folder of its own, which is removed at the end.
struct Recording {
    trace: TraceFile,
    path: PathValue,
    folder: PathBuf,
}

impl Recording {
    /// `name` is different in each test.
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("freestone-trace-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = PathValue::new();
        path.set(folder.join("t").to_str().unwrap().as_bytes()).unwrap();
        Self { trace: TraceFile::new(), path, folder }
    }

    fn begun(name: &str) -> Self {
        let recording = Self::new(name);
        recording.trace.begin(&recording.path);
        recording
    }

    /// The file that the attempt of this number makes.
    fn file(&self, attempt: u32) -> PathBuf {
        let mut name = TraceName::new();
        name.set(self.folder.join("t").to_str().unwrap().as_bytes(), attempt).unwrap();
        name.as_text().into()
    }

    fn next_chunk(&self, header: Header) -> Option<MappedChunk> {
        let chunk = self.trace.next_chunk(&self.path, header.len as usize)?;
        // SAFETY: the chunk is mapped, longer than a header, and no other code uses it.
        unsafe { chunk.start.cast::<[u8; chunk::HEADER_BYTES]>().write(header.to_bytes()) };
        Some(chunk)
    }

    /// The headers of the chunks in a file.
    fn chunks(&self, attempt: u32) -> Vec<Header> {
        let bytes = fs::read(self.file(attempt)).unwrap();
        file::chunks(&bytes).map(|chunk| chunk.unwrap().header).collect()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn header(len: u32, recorder: u32) -> Header {
    Header { len, recorder, thread: 5, place: 6, time_us: 7, sequence: 8 }
}

fn with_header<R>(path: &Path, read: impl FnOnce(file::Header<'_>) -> R) -> R {
    read(file::Header::read(&fs::read(path).unwrap()).unwrap())
}

fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

/// Lets at least so many microseconds pass.
fn pass(us: u128) {
    let begun = Instant::now();
    while begun.elapsed().as_micros() < us {
        hint::spin_loop();
    }
}

#[test]
fn the_header_says_what_was_recorded_and_how_it_ended() {
    let (before, begun) = (now_ns(), Instant::now());
    let recording = Recording::begun("header");
    let program = env::args().next().unwrap();
    with_header(&recording.file(0), |header| {
        assert_eq!((u64::from(header.pid), header.end), (process::id() as u64, 0));
        assert!((before..=now_ns()).contains(&u128::from(header.began_ns)));
        assert_eq!((header.peak_rss, header.end_us, header.len), (0, 0, 0));
        assert!(header.command.starts_with(program.as_bytes()));
    });
    pass(1000);
    recording.trace.finish();
    with_header(&recording.file(0), |header| {
        assert_eq!(header.end, file::end::EXITED);
        assert!(header.peak_rss > 1 << 20, "{}", header.peak_rss);
        assert_eq!(header.len, fs::metadata(recording.file(0)).unwrap().len());
        assert!((1000..=begun.elapsed().as_micros() + 1).contains(&u128::from(header.end_us)), "{}", header.end_us);
    });
}

#[test]
fn chunks_lie_one_behind_the_other_and_numbers_count_from_zero() {
    let recording = Recording::begun("chunks");
    let headers = [header(8192, 1), header(4096, 2), header(16384, 3)];
    for header in headers {
        let chunk = recording.next_chunk(header).unwrap();
        assert_eq!(chunk.bytes, header.len as usize);
        // SAFETY: the chunk is mapped, and no other code uses it.
        unsafe { chunk.start.wrapping_add(chunk.bytes - 1).write(0) };
        // SAFETY: as above.
        unsafe { growing_file::unmap(chunk.start, chunk.bytes) };
    }
    assert_eq!(recording.chunks(0), headers);
    assert_eq!(fs::metadata(recording.file(0)).unwrap().len(), (file::HEADER_BYTES + 28_672) as u64);
    let trace = &recording.trace;
    assert_eq!([0, 1].map(|_| trace.take_sequence()), [0, 1]);
    assert_eq!(trace.sequence(), 2);
    assert_eq!([0, 1].map(|_| trace.number_recorder()), [0, 1]);
    assert_eq!([0, 1].map(|_| trace.number_thread()), [0, 1]);
}

#[test]
fn a_chunk_that_is_whole_lies_behind_the_others() {
    let recording = Recording::begun("append");
    recording.next_chunk(header(8192, 1)).unwrap();
    let mut whole = [0; 4096];
    whole[..chunk::HEADER_BYTES].copy_from_slice(&header(4096, 2).to_bytes());
    assert!(recording.trace.append(&whole));
    recording.next_chunk(header(4096, 3)).unwrap();
    assert_eq!(recording.chunks(0), [header(8192, 1), header(4096, 2), header(4096, 3)]);
    // No file is that long.
    recording.trace.end.store(1 << 62, Ordering::Relaxed);
    assert!(!recording.trace.append(&whole) && !recording.trace.is_on());
    assert!(!recording.trace.append(&whole), "for good");
}

#[test]
fn a_child_begins_another_file_with_all_numbers_at_zero() {
    let recording = Recording::begun("child");
    let trace = &recording.trace;
    recording.next_chunk(header(4096, 1)).unwrap();
    trace.take_sequence();
    trace.number_recorder();
    trace.number_thread();
    pass(3000);
    let forked = Instant::now();
    trace.forked();
    assert!(u128::from(trace.now_us()) <= forked.elapsed().as_micros() + 1, "time starts again");
    assert!(trace.is_on() && !recording.file(1).exists(), "the file is made when there is something to write");
    assert_eq!((trace.sequence(), trace.number_recorder(), trace.number_thread()), (0, 0, 0));
    recording.next_chunk(header(4096, 2)).unwrap();
    assert_eq!((recording.chunks(0), recording.chunks(1)), (std::vec![header(4096, 1)], std::vec![header(4096, 2)]));
    with_header(&recording.file(1), |header| assert_eq!(header.end, 0));
    trace.finish();
    assert_eq!([0, 1].map(|attempt| with_header(&recording.file(attempt), |header| header.end)), [0, 1]);
}

#[test]
fn without_a_path_there_is_no_trace_in_a_child_either() {
    let (trace, path) = (TraceFile::new(), PathValue::new());
    trace.begin(&path);
    assert!(!trace.is_on());
    trace.forked();
    assert!(!trace.is_on() && trace.next_chunk(&path, 4096).is_none());
    trace.finish();
}

#[test]
fn while_another_thread_makes_the_file_there_is_no_chunk_for_now() {
    let recording = Recording::new("opening");
    recording.trace.state.store(OPENING, Ordering::Relaxed);
    assert!(recording.next_chunk(header(4096, 1)).is_none());
    recording.trace.open(&recording.path);
    assert!(recording.trace.is_on() && !recording.file(0).exists(), "one thread makes it");
}

#[test]
fn names_of_existing_files_are_passed_over_until_there_are_no_more() {
    for n_taken in [1, 3, 10] {
        let recording = Recording::new(&format!("taken-{n_taken}"));
        let taken: Vec<PathBuf> = (0..n_taken).map(|attempt| recording.file(attempt)).collect();
        taken.iter().for_each(|file| fs::write(file, "mine").unwrap());
        recording.trace.begin(&recording.path);
        assert_eq!(recording.trace.is_on(), n_taken < 10);
        assert_eq!(recording.next_chunk(header(4096, 1)).is_some(), n_taken < 10);
        if n_taken < 10 {
            assert_eq!(recording.chunks(n_taken), [header(4096, 1)]);
        }
        assert!(taken.iter().all(|file| fs::read(file).unwrap() == b"mine"));
        assert_eq!(fs::read_dir(&recording.folder).unwrap().count() as u32, 10.min(n_taken + 1));
    }
}

#[test]
fn a_trace_whose_file_cannot_grow_is_cut_off_and_over() {
    let recording = Recording::begun("full");
    recording.next_chunk(header(4096, 1)).unwrap();
    // No file is that long.
    recording.trace.end.store(1 << 62, Ordering::Relaxed);
    assert!(recording.next_chunk(header(4096, 2)).is_none() && !recording.trace.is_on());
    recording.trace.end.store(file::HEADER_BYTES as u64, Ordering::Relaxed);
    assert!(recording.next_chunk(header(4096, 3)).is_none(), "for good");
    assert_eq!(recording.chunks(0), [header(4096, 1)]);
    recording.trace.finish();
    with_header(&recording.file(0), |header| assert_eq!((header.end, header.end_us), (file::end::CUT_OFF, 0)));
}

#[test]
fn a_file_that_took_the_name_is_left_alone() {
    let recording = Recording::begun("other");
    fs::rename(recording.file(0), recording.folder.join("moved")).unwrap();
    fs::write(recording.file(0), "mine").unwrap();
    assert!(recording.next_chunk(header(4096, 1)).is_none() && !recording.trace.is_on());
    recording.trace.finish();
    assert_eq!(fs::read(recording.file(0)).unwrap(), b"mine");
}

#[test]
fn a_trace_whose_file_cannot_be_opened_any_more_says_so() {
    let recording = Recording::begun("moved");
    let moved = recording.folder.join("moved");
    fs::rename(recording.file(0), &moved).unwrap();
    assert!(recording.next_chunk(header(4096, 1)).is_none() && !recording.trace.is_on());
    recording.trace.finish();
    with_header(&moved, |header| assert_eq!(header.end, file::end::CUT_OFF));
}
