use super::*;

#[test]
fn what_is_written_is_read_back() {
    let mix = Mix { ids: 20, least_bytes: 1, most_bytes: 900, most_align: 256, reallocations_percent: 30 };
    let mut stream = generate(mix, 65536, 500, 7);
    stream.ops.push(Op::Grow { bytes: 64 });
    assert_eq!(Stream::parse(&stream.to_text()), Ok(stream));
}

#[test]
fn comments_and_blank_lines_are_skipped() {
    let stream = Stream::parse("# a stream\n\nregion 64\n  a 1 16 8\n").unwrap();
    assert_eq!(stream, Stream { region_bytes: 64, ops: vec![Op::Allocate { id: 1, bytes: 16, align: 8 }] });
}

#[test]
fn a_line_that_is_not_an_operation_is_named_with_its_number() {
    for wrong in ["a 1 16", "a 1 16 3", "f", "x 1", "r 1 two", "region 64 64", "f 4294967296"] {
        let error = Stream::parse(&format!("region 64\n{wrong}\n")).unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (2, wrong));
    }
    assert!(Stream::parse("f 1\nregion 64\n").is_err(), "the region comes first");
}

#[test]
fn the_same_seed_gives_the_same_stream() {
    let mix = Mix { ids: 4, least_bytes: 1, most_bytes: 9, most_align: 1, reallocations_percent: 0 };
    assert_eq!(generate(mix, 64, 50, 3), generate(mix, 64, 50, 3));
    assert_ne!(generate(mix, 64, 50, 3), generate(mix, 64, 50, 4));
}

#[test]
fn any_bytes_are_a_stream_and_every_operation_has_bytes() {
    let mut random = SplitMix(5);
    let bytes: Vec<u8> = (0..40_003).map(|_| random.next_u64() as u8).collect();
    let stream = Stream::from_bytes(64, &bytes);
    assert_eq!((stream.region_bytes, stream.ops.len()), (64, 10_000));
    assert_eq!(Stream::parse(&stream.to_text()), Ok(stream.clone()));
    let has = |wanted: fn(&Op) -> bool| assert!(stream.ops.iter().any(wanted));
    has(|op| matches!(op, Op::Allocate { bytes: 1.., align: 8192, .. }));
    has(|op| matches!(op, Op::Allocate { bytes: 0, .. }));
    has(|op| matches!(op, Op::Allocate { bytes, .. } if *bytes > usize::MAX - 4096));
    has(|op| matches!(op, Op::Reallocate { bytes: 131_072..=262_144, .. }));
    has(|op| matches!(op, Op::Deallocate { .. }));
    has(|op| matches!(op, Op::Grow { bytes: 1.. }));
}
