//! How long allocation takes, beside rlsf and talc, in one process and interleaved round by round.
//!
//! `cargo bench -p freestone-tlsf --bench tlsf_speed [-- ROUNDS]` prints one JSON record a line: a workload, an allocator, the
//! median ns an operation, and the median over rounds of its time divided by Freestone's in the same round.
#![allow(unsafe_code, reason = "the allocators' own interfaces are unsafe")]

mod subjects;

use freestone_testkit::ops::SplitMix;
use std::hint::black_box;
use std::time::Instant;
use subjects::{Freestone, Heap, Rlsf, Talc, Unchecked, WithFooters, region};

const REGION_BYTES: usize = 64 << 20;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Allocates and frees one block, over and over.
fn pairs(heap: &mut impl Heap, bytes: usize) -> f64 {
    const PAIRS: usize = 400_000;
    let start = Instant::now();
    for _ in 0..PAIRS {
        let block = heap.allocate(black_box(bytes));
        heap.deallocate(black_box(block), bytes);
    }
    start.elapsed().as_nanos() as f64 / PAIRS as f64
}

/// 4096 slots, 16 to 4111 bytes: each step frees a random slot's block or fills an empty one.
fn mix(heap: &mut impl Heap) -> f64 {
    const STEPS: usize = 1_000_000;
    let mut random = SplitMix(0xC0FFEE);
    let mut slots = vec![None; 4096];
    let start = Instant::now();
    for _ in 0..STEPS {
        let bits = random.next_u64();
        let slot = &mut slots[(bits & 4095) as usize];
        match slot.take() {
            Some((block, bytes)) => heap.deallocate(block, bytes),
            None => {
                let bytes = 16 + (bits >> 32 & 4095) as usize;
                *slot = Some((heap.allocate(bytes), bytes));
            }
        }
    }
    let elapsed = start.elapsed().as_nanos() as f64 / STEPS as f64;
    for (block, bytes) in slots.into_iter().flatten() {
        heap.deallocate(block, bytes);
    }
    elapsed
}

/// One heap of each kind, alive through all rounds.
struct Heaps {
    freestone: Freestone,
    unchecked: Unchecked,
    guarded: WithFooters,
    rlsf: Rlsf,
    talc: Talc,
}

const NAMES: [&str; 5] = [Freestone::NAME, Unchecked::NAME, WithFooters::NAME, Rlsf::NAME, Talc::NAME];

/// Runs a workload on each heap, starting with another one each round; times in the order of [`NAMES`].
fn round(heaps: &mut Heaps, number: usize, bytes: Option<usize>) -> [f64; 5] {
    let mut times = [0.0; 5];
    for turn in 0..5 {
        let which = (turn + number) % 5;
        times[which] = match (which, bytes) {
            (0, Some(bytes)) => pairs(&mut heaps.freestone, bytes),
            (1, Some(bytes)) => pairs(&mut heaps.unchecked, bytes),
            (2, Some(bytes)) => pairs(&mut heaps.guarded, bytes),
            (3, Some(bytes)) => pairs(&mut heaps.rlsf, bytes),
            (_, Some(bytes)) => pairs(&mut heaps.talc, bytes),
            (0, None) => mix(&mut heaps.freestone),
            (1, None) => mix(&mut heaps.unchecked),
            (2, None) => mix(&mut heaps.guarded),
            (3, None) => mix(&mut heaps.rlsf),
            (_, None) => mix(&mut heaps.talc),
        };
    }
    times
}

fn main() {
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(15);
    let mut heaps = Heaps {
        freestone: Freestone::over(region(REGION_BYTES)),
        unchecked: Unchecked::over(region(REGION_BYTES)),
        guarded: WithFooters::over(region(REGION_BYTES)),
        rlsf: Rlsf::over(region(REGION_BYTES)),
        talc: Talc::over(region(REGION_BYTES)),
    };
    let kib = |kib: usize| (format!("pair-{kib}KiB"), Some(kib << 10));
    let workloads = [kib(1), kib(10), kib(100), kib(500), ("mix-16-4111".to_owned(), None)];
    let mut freestone_pairs = Vec::new();
    for (name, bytes) in workloads {
        let _warm_up = round(&mut heaps, 0, bytes);
        let times: Vec<_> = (0..rounds).map(|number| round(&mut heaps, number, bytes)).collect();
        for (which, allocator) in NAMES.iter().enumerate() {
            let ns = median(times.iter().map(|round| round[which]).collect());
            let ratio = median(times.iter().map(|round| round[which] / round[0]).collect());
            println!(
                r#"{{"workload":"{name}","allocator":"{allocator}","ns_per_op":{ns:.2},"over_freestone":{ratio:.3},"rounds":{rounds}}}"#
            );
        }
        if bytes.is_some() {
            freestone_pairs.push(median(times.iter().map(|round| round[0]).collect()));
        }
    }
    let most = freestone_pairs.iter().copied().fold(f64::MIN, f64::max);
    let least = freestone_pairs.iter().copied().fold(f64::MAX, f64::min);
    println!(r#"{{"workload":"pair-flatness","allocator":"freestone","max_over_min":{:.3}}}"#, most / least);
}
