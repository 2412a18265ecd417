//! Any stream on TLSF heaps of three policies, every invariant checked after each operation.
#![no_main]

#[path = "../../crates/tlsf/tests/subject/mod.rs"]
mod subject;

use freestone_testkit::ops::{Stream, play};
use freestone_tlsf::{Bounded, WithFooters, Standard};
use libfuzzer_sys::fuzz_target;
use subject::Grown;

const MOST_BYTES: usize = 1 << 17;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let stream = Stream::from_bytes(256 << (choice % 9), rest);
    let region_bytes = stream.region_bytes;
    let kept = match choice / 9 % 4 {
        0 => play(&stream, Grown::<Standard>::new(region_bytes, MOST_BYTES), 1).err(),
        1 => play(&stream, Grown::<WithFooters>::new(region_bytes, MOST_BYTES), 1).err(),
        2 => play(&stream, Grown::<Bounded, 10, 4, 1>::new(region_bytes.min(4096), 1 << 14), 1).err(),
        _ => play(&stream, Grown::<Standard>::in_regions(4, region_bytes), 1).err(),
    };
    assert_eq!(kept, None);
});
