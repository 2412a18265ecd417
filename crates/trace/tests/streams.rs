//! Random streams of events, and damaged bytes.

use freestone_trace::chunk::{self, Chunk, Header};
use freestone_trace::encoder::EVENT_BYTES_MAX;
use freestone_trace::{Encoder, Event, Events, Kind, What, file};
use proptest::prelude::*;

const KINDS: [Kind; 6] = [Kind::C, Kind::CZeroed, Kind::Rust, Kind::RustZeroed, Kind::New, Kind::NewArray];

/// Addresses near one another, and anywhere.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (1_u64..10_000).prop_map(|granule| 0x2ab3_0000_0000 + granule * 16),
        1 => (1_u64..1 << 57).prop_map(|granule| granule * 16),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0_u64..200, 2 => 0_u64..100_000, 1 => any::<u64>()]
}

fn what() -> impl Strategy<Value = What> {
    let result = || prop_oneof![9 => address(), 1 => Just(0)];
    prop_oneof![
        6 => (0..KINDS.len(), size(), prop_oneof![4 => Just(0_u8), 1 => 0_u8..64], result()).prop_map(
            |(kind, size, align_log2, block)| What::Allocate { kind: KINDS[kind], size, align_log2, block }
        ),
        5 => address().prop_map(|block| What::Free { block }),
        2 => (address(), size(), result()).prop_map(|(from, size, block)| What::Resize { from, size, block }),
        1 => prop_oneof![Just(What::Begin), Just(What::End)],
    ]
}

/// Events as one recorder may have them: time and sequence numbers do not go back.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = (what(), 0_u64..2000, 0_u64..3, any::<bool>(), 0_u32..50);
    proptest::collection::vec(step, 0..300).prop_map(|steps| {
        let (mut thread, mut time_us, mut sequence) = (9, 100, 50);
        let event = |(what, passed, grown, takes, number): (What, u64, u64, bool, u32)| {
            if matches!(what, What::Begin | What::End) {
                thread = number;
            }
            time_us += passed;
            let ticket = takes.then_some(sequence + grown);
            sequence += grown + u64::from(takes && number > 25);
            Event { thread, time_us, sequence, ticket, what }
        };
        steps.into_iter().map(event).collect()
    })
}

fn encoded(events: &[Event]) -> Vec<u8> {
    let encoder = Encoder::new(50, 100);
    let mut bytes = Vec::new();
    for event in events {
        let before = bytes.len();
        encoder.event(event, |word| bytes.extend_from_slice(&word.bits.to_le_bytes()[..word.len]));
        assert!(bytes.len() - before + 8 <= EVENT_BYTES_MAX, "{} bytes", bytes.len() - before);
    }
    bytes
}

proptest! {
    #[test]
    fn decoding_returns_what_was_encoded(events in events()) {
        let bytes = encoded(&events);
        let decoded: Result<Vec<_>, _> = Events::new(&bytes, 9, 100, 50).collect();
        prop_assert_eq!(decoded.expect("no damage"), events);
    }

    #[test]
    fn a_stream_cut_anywhere_decodes_to_its_beginning(events in events(), cut in 0.0..1.0) {
        let bytes = encoded(&events);
        let cut = (bytes.len() as f64 * cut) as usize;
        let decoded: Vec<_> = Events::new(&bytes[..cut], 9, 100, 50).map_while(Result::ok).collect();
        prop_assert_eq!(&decoded[..], &events[..decoded.len()]);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        events in events(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let _ = Events::new(&bytes, 0, 0, 0).count();
        let header = Header { len: 1 << 16, recorder: 0, thread: 9, place: 0, time_us: 100, sequence: 50 };
        let mut trace = vec![0; file::HEADER_BYTES];
        let head = file::Header { pid: 1, began_ns: 2, end: 1, peak_rss: 3, end_us: 4, len: 5, command: b"a\0b" };
        head.write(trace.as_mut_slice().try_into().expect("a header's length"));
        prop_assert_eq!(file::Header::read(&trace), Ok(head));
        trace.extend_from_slice(&header.to_bytes());
        trace.extend(encoded(&events));
        for (index, byte) in damage {
            let at = index.index(trace.len());
            trace[at] = byte;
        }
        let _ = file::Header::read(&trace);
        for chunk in file::chunks(&trace).flatten() {
            let _ = chunk.events().count();
        }
        let _ = Chunk::read(&bytes);
    }
}

#[test]
fn a_header_that_is_none_or_cut_or_of_another_version_is_told_apart() {
    let mut bytes = vec![0; file::HEADER_BYTES];
    let head = file::Header { pid: 1, began_ns: 2, end: 0, peak_rss: 0, end_us: 0, len: 0, command: b"" };
    head.write(bytes.as_mut_slice().try_into().expect("a header's length"));
    let text = |bytes: &[u8]| file::Header::read(bytes).expect_err("damaged").to_string();
    assert_eq!(text(b""), "this is no trace of Freestone");
    assert_eq!(text(b"#!/bin/sh\n"), "this is no trace of Freestone");
    assert_eq!(text(&bytes[..100]), "the trace ends inside its header");
    bytes[8] = 9;
    assert_eq!(text(&bytes), "the trace has version 9 of the format, and this program reads version 1");
}

#[test]
fn a_damaged_chunk_is_reported_once_and_the_next_one_is_found() {
    let header = Header { len: 8192, ..Header::default() };
    let mut trace = vec![0; file::HEADER_BYTES];
    for place in 0..3 {
        trace.extend_from_slice(&Header { place, ..header }.to_bytes());
        trace.resize(trace.len() + 8192 - chunk::HEADER_BYTES, 0);
    }
    trace[file::HEADER_BYTES + 8192] = b'X';
    let found: Vec<_> = file::chunks(&trace).map(|chunk| chunk.map(|chunk| chunk.header.place).ok()).collect();
    assert_eq!(found, [Some(0), None, Some(2)]);
}
