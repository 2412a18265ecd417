//! How much memory a long random mix wastes, beside rlsf: the same requests, on regions filled to 80 %.
//!
//! `cargo bench -p freestone-tlsf --bench tlsf_memory [-- OPERATIONS]` prints one JSON record an allocator. `unserved` counts the requests
//! that were refused although the bytes asked for, with those of all live blocks, would have fitted into 80 % of the region:
//! fragmentation is what refused them. `fragmentation_permille` is the part of the free memory that the largest block that
//! could still be had leaves out, at the end, found by asking.
#![allow(
    unsafe_code,
    dead_code,
    reason = "the allocators' own interfaces are unsafe; each bench uses its part of the subjects"
)]

mod subjects;

use freestone_testkit::ops::SplitMix;
use std::ptr::NonNull;
use subjects::{Freestone, Heap, Rlsf, Talc, WithFooters, region};

const REGION_BYTES: usize = 4 << 20;
/// Bytes that the live requests may add up to: 80 % of the region.
const LOAD_BYTES: usize = REGION_BYTES / 5 * 4;

/// The largest request that still succeeds.
fn largest(heap: &mut impl Heap) -> usize {
    let (mut served, mut refused) = (0, REGION_BYTES);
    while refused - served > 1 {
        let bytes = served.midpoint(refused);
        match heap.try_allocate(bytes) {
            Some(block) => {
                heap.deallocate(block, bytes);
                served = bytes;
            }
            None => refused = bytes,
        }
    }
    served
}

fn measure<H: Heap>(operations: usize) {
    let mut heap = H::over(region(REGION_BYTES));
    let mut random = SplitMix(0xF4A6);
    let mut live: Vec<(NonNull<u8>, usize)> = Vec::new();
    let (mut live_bytes, mut unserved) = (0, 0);
    for _ in 0..operations {
        let bytes = 16 + random.below(4096);
        if live_bytes + bytes > LOAD_BYTES {
            let (block, bytes) = live.swap_remove(random.below(live.len()));
            heap.deallocate(block, bytes);
            live_bytes -= bytes;
        } else if let Some(block) = heap.try_allocate(bytes) {
            live.push((block, bytes));
            live_bytes += bytes;
        } else {
            unserved += 1;
        }
    }
    let largest = largest(&mut heap);
    let free = REGION_BYTES - live_bytes;
    println!(
        r#"{{"allocator":"{}","operations":{operations},"live_bytes":{live_bytes},"unserved":{unserved},"largest_request":{largest},"fragmentation_permille":{}}}"#,
        H::NAME,
        (free - largest) * 1000 / free
    );
    let overhead = fill(live, &mut heap);
    println!(r#"{{"allocator":"{}","blocks_of_1000_bytes_in_4_mib":{overhead}}}"#, H::NAME);
}

/// Empties the heap, and counts how many blocks of 1000 bytes fit.
fn fill(live: Vec<(NonNull<u8>, usize)>, heap: &mut impl Heap) -> usize {
    live.into_iter().for_each(|(block, bytes)| heap.deallocate(block, bytes));
    std::iter::from_fn(|| heap.try_allocate(1000)).count()
}

fn main() {
    let operations = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    measure::<Freestone>(operations);
    measure::<WithFooters>(operations);
    measure::<Rlsf>(operations);
    measure::<Talc>(operations);
}
