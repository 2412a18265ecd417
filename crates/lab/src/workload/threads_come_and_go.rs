//! Short-lived threads, each of which allocates a little and leaves one block behind.
//!
//! Source: freestone's own goal (100 000 threads that leave a live block and exit). The main thread frees these blocks at the end, and the
//! resident size is then compared with that at the start. An operation is one thread.
//!
//! Does not show: threads that live long.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "threads_come_and_go",
    models: "a thread for every request, each of which leaves a block behind",
    hides: "threads that live long",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [5000, 15_000, 100_000], "threads, four at a time").at_least_one(),
        Param::fixed("blocks", 100, "blocks that each thread allocates and frees"),
        Param::fixed("max", 1000, "largest size in bytes"),
    ],
    run,
    run_on_null: None,
};

const AT_A_TIME: u64 = 4;

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (rounds, blocks, max) =
        (params.get("ops").div_ceil(AT_A_TIME), params.get("blocks"), params.size("max").max(16));
    let mut left_behind: Vec<Block> = Vec::with_capacity((rounds * AT_A_TIME) as usize);
    let (checksum, growth_bytes) = meter.section(|sampler| {
        let rss_before_bytes = sampler.sample();
        let mut checksum = 0_u64;
        for round in 0..rounds {
            let live: Vec<_> =
                (0..AT_A_TIME).map(|n| thread::spawn(move || visit(round * AT_A_TIME + n, blocks, max))).collect();
            for (block, sum) in live.into_iter().filter_map(|visitor| visitor.join().ok()) {
                left_behind.push(block);
                checksum = checksum.wrapping_add(sum);
            }
        }
        for (index, block) in left_behind.drain(..).enumerate() {
            checksum = checksum.wrapping_add(CHeap.verify(&block, index as u64));
            CHeap.release(block);
        }
        (checksum, sampler.sample() as f64 - rss_before_bytes as f64)
    });
    Outcome::new(rounds * AT_A_TIME, checksum).with("RSS kept at the end, MiB", growth_bytes / f64::from(1 << 20))
}

/// What one thread does; returns the block that it leaves behind, and its checksum.
fn visit(tag: u64, blocks: u64, max: usize) -> (Block, u64) {
    let mut random = Random::new(tag);
    let mut checksum = 0_u64;
    let mine: Vec<Block> = (0..blocks)
        .map(|_| {
            let block = CHeap.allocate(random.within(16, max));
            block.stamp(tag);
            block
        })
        .collect();
    for block in mine {
        checksum = checksum.wrapping_add(CHeap.verify(&block, tag));
        CHeap.release(block);
    }
    let keepsake = CHeap.allocate(random.within(16, max));
    keepsake.stamp(tag);
    (keepsake, checksum)
}
