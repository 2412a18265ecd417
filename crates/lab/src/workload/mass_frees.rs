//! Thousands of large blocks and hundreds of thousands of small ones are freed together: how long does the slowest single call take, then and afterwards?
//!
//! Source: caches that are dropped, tables that are rebuilt, requests that end together in services with gigabytes of memory. An allocator that does the work that
//! has piled up in one call stops a thread for as long as that takes, and all threads if it holds a lock meanwhile.
//!
//! Does not show: throughput; and where the work is done that a call leaves to later ones or to another thread.

use crate::workload::call_times::CallTimes;
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::thread;
use std::time::Duration;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "mass_frees",
    models: "a service that drops gigabytes, and must go on answering",
    hides: "throughput: reading the clock costs more than most allocations",
    shows: PrimaryFigure::Latency,
    params: &[
        Param::scaled(
            "large",
            [20_000, 60_000, 100_000],
            "large blocks, of which the first and the last bytes are written",
        ),
        Param::fixed("kib", 64, "a large block has up to twice this many KiB").at_least_one(),
        Param::scaled("small", [500_000, 2_000_000, 4_000_000], "small blocks that another thread frees"),
        Param::fixed("wait_ms", 1200, "pause after the frees of large blocks in ms"),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (n_large, least, n_small) = (params.size("large"), params.size("kib") << 10, params.size("small"));
    let wait = Duration::from_millis(params.get("wait_ms"));
    let [mut frees, mut after_wait, mut after_others] = [(); 3].map(|()| CallTimes::new());
    let checksum = meter.section(|sampler| {
        let mut random = Random::new(51);
        let mut checksum = 0_u64;
        // The second time, the allocator has seen that such blocks come and go.
        for _ in 0..2 {
            let mut blocks = allocate(&mut random, n_large, least);
            random.shuffle(&mut blocks);
            checksum = checksum.wrapping_add(free_all(blocks, &mut frees));
        }
        sampler.sleep(wait, Duration::from_millis(50));
        checksum = checksum.wrapping_add(go_on(&mut random, &mut after_wait));
        let small = allocate(&mut random, n_small, 32);
        let freed = thread::spawn(move || free_all(small, &mut CallTimes::new())).join();
        checksum = checksum.wrapping_add(freed.unwrap_or(0));
        checksum.wrapping_add(go_on(&mut random, &mut after_others))
    });
    let slowest = [&frees, &after_wait, &after_others].map(CallTimes::slowest_ms);
    let latency = frees.with(&after_wait).with(&after_others).latency();
    let outcome = Outcome { latency: Some(latency), ..Outcome::new((2 * n_large + n_small) as u64, checksum) };
    ["of large blocks", "after the wait", "after others freed"]
        .iter()
        .zip(slowest)
        .fold(outcome, |outcome, (when, slowest)| outcome.with(&format!("slowest call {when}, ms"), slowest))
}

fn allocate(random: &mut Random, n: usize, least: usize) -> Vec<(u64, Block)> {
    let one = |tag| {
        let block = CHeap.allocate(random.within(least, 2 * least));
        block.stamp(tag);
        (tag, block)
    };
    (0..n as u64).map(one).collect()
}

/// Verifies and frees blocks. Returns their checksum.
fn free_all(blocks: Vec<(u64, Block)>, times: &mut CallTimes) -> u64 {
    blocks.into_iter().fold(0, |sum, (tag, block)| {
        let sum = sum.wrapping_add(CHeap.verify(&block, tag));
        times.time(|| CHeap.release(block));
        sum
    })
}

/// Allocates and frees 2000 blocks of up to 64 KiB, one after the other.
fn go_on(random: &mut Random, times: &mut CallTimes) -> u64 {
    (0..2000).fold(0, |sum, tag| {
        let size = random.within(16, 64 << 10);
        let block = times.time(|| CHeap.allocate(size));
        block.stamp(tag);
        let sum = sum.wrapping_add(CHeap.verify(&block, tag));
        times.time(|| CHeap.release(block));
        sum
    })
}
