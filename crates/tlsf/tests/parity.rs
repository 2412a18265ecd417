//! The streams shared with the Go module give the same offsets in both languages.

mod subject;

use freestone_testkit::ops::{Op, Outcome, Player, Stream};
use freestone_tlsf::Standard;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use subject::Grown;

fn streams() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ops");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ops"))
        .collect();
    files.sort();
    files
}

/// The `.offsets` text that this crate gives for a stream.
fn offsets_of(stream: &Stream) -> String {
    let mut player = Player::new(Grown::<Standard>::new(stream.region_bytes, 1 << 23));
    let base = player.subject.memory.start.addr().get();
    let mut text = String::new();
    for op in &stream.ops {
        let outcome = player.step(*op).unwrap();
        if matches!(op, Op::Allocate { .. } | Op::Reallocate { .. }) {
            match outcome {
                Outcome::At(address) => writeln!(text, "{}", address - base).unwrap(),
                Outcome::Nothing | Outcome::Done => writeln!(text, "-").unwrap(),
            }
        }
    }
    player.subject.heap.check().unwrap();
    let stats = player.subject.heap.stats();
    writeln!(text, "end {} {} {}", stats.used_blocks, stats.free_blocks, stats.free_bytes).unwrap();
    text
}

#[test]
#[cfg_attr(miri, ignore = "reads files, and adds nothing to the streams Miri plays")]
fn every_shared_stream_gives_the_offsets_that_stand_beside_it() {
    let files = streams();
    assert!(files.len() >= 8, "the shared streams are missing: {files:?}");
    for file in files {
        let stream = Stream::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let expected = std::fs::read_to_string(file.with_extension("offsets")).unwrap();
        let ours = offsets_of(&stream);
        let differs = ours.lines().zip(expected.lines()).position(|(ours, theirs)| ours != theirs);
        assert_eq!(differs, None, "{}: line {differs:?} (from 0) differs", file.display());
        assert_eq!(ours.lines().count(), expected.lines().count(), "{}", file.display());
    }
}
