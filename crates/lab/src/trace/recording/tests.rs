use super::*;
use crate::trace::strip::tests::encode_whole;
use freestone_trace::{Kind, What};
use std::io::Write;

/// Two blocks, one of which is freed.
pub(crate) fn small() -> Recording {
    let event = |time_us, what| Event { thread: 0, time_us, sequence: 1, ticket: None, what };
    let allocate = |size, block| What::Allocate { kind: Kind::C, size, align_log2: 0, block };
    let events =
        vec![event(1, allocate(100, 0x10)), event(2, allocate(50, 0x80)), event(3, What::Free { block: 0x10 })];
    Recording {
        command: "/bin/program --secret".into(),
        program: "/bin/program".into(),
        pid: 1,
        began_ns: 2,
        end: file::end::EXITED,
        peak_rss: 4096,
        end_us: 9,
        streams: vec![events],
        used_bytes: 0,
        damage: Vec::new(),
        is_cut: false,
    }
}

#[test]
fn a_trace_reads_back_plain_and_compressed() {
    let bytes = encode_whole(&small());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&bytes).unwrap();
    for bytes in [bytes, packed.finish().unwrap()] {
        let read = Recording::read(&bytes).unwrap();
        assert_eq!(read.streams, small().streams);
        assert_eq!((read.command.as_str(), read.peak_rss, read.doubts()), ("/bin/program --secret", 4096, vec![]));
    }
}

#[test]
fn a_compressed_file_may_have_several_parts_and_is_not_unpacked_beyond_a_length() {
    let bytes = encode_whole(&small());
    let pack = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let (head, tail) = bytes.split_at(file::HEADER_BYTES);
    let parts = [pack(head), pack(tail)].concat();
    let read = Recording::read(&parts).unwrap();
    assert_eq!((read.streams, read.is_cut), (small().streams, false));
    let len = bytes.len() as u64;
    assert_eq!(unpack(&parts, len).unwrap(), bytes);
    assert!(unpack(&parts, len - 1).unwrap_err().to_string().contains("unpack it with gunzip first"));
    assert!(bytes.starts_with(&unpack(&parts[..parts.len() - 9], len).unwrap()), "as far as possible");
}

#[test]
fn control_characters_of_a_command_line_are_escaped() {
    let command = "sh -c \u{1b}[31mred\n\u{9b}2J".to_owned();
    let read = Recording::read(&encode_whole(&Recording { command, program: "sh".into(), ..small() })).unwrap();
    assert_eq!(read.command, r"sh -c \u001b[31mred\n\u009b2J");
}

#[test]
fn what_is_no_trace_is_refused_in_one_sentence() {
    let text = |bytes: &[u8]| Recording::read(bytes).map(|_| ()).unwrap_err().to_string();
    assert_eq!(text(b"hello"), "this is no trace of Freestone");
    assert_eq!(text(&encode_whole(&small())[..9]), "the trace ends inside its header");
    let mut other = encode_whole(&small());
    other[8] = 7;
    assert_eq!(text(&other), "the trace has version 7 of the format, and this program reads version 1");
}

#[test]
fn a_trace_that_is_cut_or_damaged_is_read_as_far_as_possible() {
    let bytes = encode_whole(&small());
    let cut = Recording::read(&bytes[..file::HEADER_BYTES + 64 + 6]).unwrap();
    assert!(cut.is_cut && cut.n_events() >= 1 && cut.doubts().len() == 1, "{:?}", cut.doubts());
    let [bare, chunkless] = [&small(), &Recording { streams: Vec::new(), ..small() }]
        .map(|of| Recording::read(&encode_whole(of)[..file::HEADER_BYTES]).unwrap());
    assert!(bare.is_cut && bare.bytes_a_call("; ").is_empty(), "the file ends where a chunk begins");
    assert!(!chunkless.is_cut, "it had no chunk");
    let begun = Event { thread: 0, time_us: 0, sequence: 1, ticket: None, what: What::Begin };
    let ended = Event { time_us: 9, what: What::End, ..begun };
    let threads = Recording { streams: vec![[vec![begun], small().streams.concat(), vec![ended]].concat()], ..small() };
    assert_eq!((threads.n_events(), threads.n_calls()), (5, 3));
    let mut damaged = bytes;
    damaged[file::HEADER_BYTES + 3] = b'?';
    let damaged = Recording::read(&damaged).unwrap();
    assert_eq!((damaged.n_events(), damaged.doubts().len()), (0, 1));
}

#[test]
fn of_a_chunk_that_is_there_twice_one_is_read_and_a_part_of_it_is_no_damage() {
    let bytes = encode_whole(&small());
    let (head, chunk) = bytes.split_at(file::HEADER_BYTES);
    let joined = |chunks: &[&[u8]]| Recording::read(&[&[head], chunks].concat().concat()).unwrap();
    let mut other = joined(&[chunk]).streams.concat();
    other.truncate(1);
    let behind =
        encode_whole(&Recording { streams: vec![Vec::new(), other], ..small() })[file::HEADER_BYTES..].to_vec();
    let torn: Vec<u8> = chunk.iter().enumerate().map(|(at, &byte)| if at < 64 + 4 { byte } else { 0 }).collect();
    let (behind, torn, cut) = (behind.as_slice(), torn.as_slice(), &chunk[..64 + 4]);
    for chunks in [[chunk, chunk, behind], [chunk, torn, behind], [torn, chunk, behind], [chunk, behind, cut]] {
        let read = joined(&chunks);
        assert_eq!((read.n_events(), read.doubts()), (4, vec![]));
        assert_eq!(read.streams[0], small().streams[0]);
    }
    assert_eq!(joined(&[torn, behind]).doubts().len(), 1, "the only one");
}

#[test]
fn a_block_that_no_memory_has_room_for_is_damage_unless_its_allocation_failed() {
    let with_sizes = |size, block| {
        let mut recording = small();
        let what = What::Allocate { kind: Kind::C, size, align_log2: 0, block };
        recording.streams[0].push(Event { thread: 0, time_us: 4, sequence: 1, ticket: None, what });
        let read = Recording::read(&encode_whole(&recording)).unwrap();
        crate::trace::analysis::Analysis::of(&crate::trace::timeline::Timeline::of(&read));
        (read.n_events(), read.doubts().len())
    };
    assert_eq!(with_sizes(u64::MAX, 0x100), (3, 1));
    assert_eq!(with_sizes(u64::MAX, 0), (4, 0));
}
