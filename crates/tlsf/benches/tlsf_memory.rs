//! How much memory a long random mix wastes, beside rlsf: the same requests, on regions filled to 80 %.
//!
//! `cargo bench -p freestone-tlsf --bench tlsf_memory [-- OPERATIONS]` prints one JSON record an allocator. `fragmentation_permille` is
//! the part of the free memory outside the largest block that can be allocated, found by trying. One moment says little: it is the
//! mean of every five thousandth operation from the tenth part of the mix on, over several mixes, and `standard_error` is that of the mixes.
//! `largest_request` is the mean of the same moments. `unserved` counts the requests that were refused although the requested bytes, with
//! those of all live blocks, would have fitted into 80 % of the region: fragmentation is the cause.
#![allow(
    unsafe_code,
    dead_code,
    reason = "the allocators' own interfaces are unsafe; each bench uses its part of the subjects"
)]

mod subjects;

use freestone_testkit::ops::SplitMix;
use std::ptr::NonNull;
use subjects::{Footered, Freestone, Heap, Rlsf, Talc, region};

const REGION_BYTES: usize = 4 << 20;
/// Bytes that the live requests may add up to: 80 % of the region.
const LOAD_BYTES: usize = REGION_BYTES / 5 * 4;

/// How many mixes, each with random numbers of its own.
const MIXES: u64 = 12;

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

/// The result of one mix: means of its moments, and a count.
struct Mix {
    fragmentation_permille: f64,
    largest_request: f64,
    unserved: usize,
    blocks_of_1000_bytes: usize,
}

fn run<H: Heap>(operations: usize, seed: u64) -> Mix {
    let mut heap = H::over(region(REGION_BYTES));
    let mut random = SplitMix(seed);
    let mut live: Vec<(NonNull<u8>, usize)> = Vec::new();
    let (mut live_bytes, mut unserved) = (0, 0);
    let mut moments = Vec::new();
    for operation in 0..operations {
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
        if operation % 5000 == 0 && operation > operations / 10 {
            moments.push((largest(&mut heap), REGION_BYTES - live_bytes));
        }
    }
    let mean = |of: &dyn Fn(&(usize, usize)) -> f64| moments.iter().map(of).sum::<f64>() / moments.len() as f64;
    Mix {
        fragmentation_permille: mean(&|(largest, free)| (free - largest) as f64 * 1000.0 / *free as f64),
        largest_request: mean(&|(largest, _)| *largest as f64),
        unserved,
        blocks_of_1000_bytes: fill(live, &mut heap),
    }
}

fn measure<H: Heap>(operations: usize) {
    let mixes: Vec<_> = (1..=MIXES).map(|seed| run::<H>(operations, seed)).collect();
    let mean = |of: &dyn Fn(&Mix) -> f64| mixes.iter().map(of).sum::<f64>() / mixes.len() as f64;
    let fragmentation = mean(&|mix| mix.fragmentation_permille);
    let variance = mixes.iter().map(|mix| (mix.fragmentation_permille - fragmentation).powi(2)).sum::<f64>()
        / (mixes.len() - 1) as f64;
    println!(
        r#"{{"allocator":"{}","mixes":{MIXES},"operations":{operations},"fragmentation_permille":{fragmentation:.1},"standard_error":{:.1},"largest_request":{:.0},"unserved":{},"blocks_of_1000_bytes_in_4_mib":{}}}"#,
        H::NAME,
        (variance / mixes.len() as f64).sqrt(),
        mean(&|mix| mix.largest_request),
        mixes.iter().map(|mix| mix.unserved).sum::<usize>(),
        mixes[0].blocks_of_1000_bytes,
    );
}

/// Empties the heap, and counts how many blocks of 1000 bytes fit.
fn fill(live: Vec<(NonNull<u8>, usize)>, heap: &mut impl Heap) -> usize {
    live.into_iter().for_each(|(block, bytes)| heap.deallocate(block, bytes));
    std::iter::from_fn(|| heap.try_allocate(1000)).count()
}

fn main() {
    let operations = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    measure::<Freestone>(operations);
    measure::<Footered>(operations);
    measure::<Rlsf>(operations);
    measure::<Talc>(operations);
}
