use super::*;
use crate::{Encoder, Kind, What};
use std::vec::Vec;

fn chunk(sealed: bool) -> Vec<u8> {
    let header = Header { len: 4096, recorder: 3, thread: 7, place: 2, time_us: 11, sequence: 5 };
    let mut bytes = header.to_bytes().to_vec();
    let encoder = Encoder::new(5, 11);
    let mut put = |word: crate::word::Word| bytes.extend_from_slice(&word.bits.to_le_bytes()[..word.len]);
    put(encoder.small_in_a_word(Kind::C, 24, 0x7000_0010).unwrap());
    encoder.free(0x7000_0010, &mut put);
    let used = bytes.len();
    bytes.resize(4096, 0);
    if sealed {
        seal(&mut bytes, used);
    }
    bytes
}

#[test]
fn a_chunk_reads_back_sealed_or_not() {
    for sealed in [false, true] {
        let bytes = chunk(sealed);
        let chunk = Chunk::read(&bytes).unwrap();
        assert_eq!((chunk.is_sealed, chunk.is_cut), (sealed, false));
        let events: Vec<_> = chunk.events().map(Result::unwrap).collect();
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].what, What::Allocate { kind: Kind::C, size: 24, align_log2: 0, block: 0x7000_0010 });
        assert_eq!(events[1].what, What::Free { block: 0x7000_0010 });
        assert_eq!((events[0].thread, events[0].time_us, events[0].sequence), (7, 11, 5));
    }
}

#[test]
fn every_changed_bit_of_a_sealed_chunk_is_noticed() {
    let good = chunk(true);
    for bit in 0..(HEADER_BYTES + 8) * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let damage = Chunk::read(&bytes).map(|_| ()).expect_err("a changed bit");
        let is_in_words = bit / 8 >= HEADER_BYTES;
        let named = damage == Damage::Checksum { recorder: 3, place: 2 };
        assert!(named || (!is_in_words && damage == Damage::Chunk), "bit {bit}: {damage:?}");
    }
}

#[test]
fn a_chunk_that_is_cut_short_is_readable_up_to_the_cut() {
    let bytes = chunk(true);
    let cut = Chunk::read(&bytes[..HEADER_BYTES + 7]).unwrap();
    assert!(cut.is_cut);
    assert!(cut.events().next().is_some());
    assert_eq!(Chunk::read(&bytes[..HEADER_BYTES - 1]).err(), Some(Damage::Chunk));
}
