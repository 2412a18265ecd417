//! Heaps that are built and dropped, one after the other: does each burst find the memory of the last one, and what stays when they end?
//!
//! Source: services whose requests each build a tree of their own, compilers with many files, batch programs. An allocator that gives memory back as soon as it is
//! free pays with a page fault for each 4 KiB of every burst; one that keeps all holds the memory of the largest burst until the process ends.
//!
//! Does not show: what happens if some blocks stay (`burst_keep_every_20th` does), or a burst that comes after a longer pause.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "repeated_bursts",
    models: "a service whose requests each build a heap and drop it",
    hides: "blocks that stay",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("bursts", [10, 30, 100], "bursts"),
        Param::scaled("burst_mib", [64, 64, 256], "size of a burst in MiB"),
        Param::fixed("size", 1024, "largest block, in bytes").at_least_one(),
    ],
    run,
    run_on_null: None,
};

/// Least size of a block.
const LEAST: usize = 16;

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (bursts, burst_bytes) = (params.get("bursts"), params.size("burst_mib") << 20);
    let most = params.size("size").max(LEAST);
    let (ops, checksum, kept) = meter.section(|sampler| {
        let rss_before_bytes = sampler.sample();
        let mut random = Random::new(57);
        let (mut ops, mut checksum) = (0_u64, 0_u64);
        let mut blocks = Vec::<Block>::new();
        for _ in 0..bursts {
            let mut bytes = 0;
            while bytes < burst_bytes {
                let block = CHeap.allocate(random.within(LEAST, most));
                block.stamp(ops);
                bytes += block.size();
                ops += 1;
                blocks.push(block);
            }
            sampler.sample();
            let first = ops - blocks.len() as u64;
            for (tag, block) in (first..).zip(blocks.drain(..)) {
                checksum = checksum.wrapping_add(CHeap.verify(&block, tag));
                CHeap.release(block);
            }
        }
        (ops, checksum, sampler.sample() as f64 - rss_before_bytes as f64)
    });
    Outcome::new(ops, checksum).with("RSS kept after the last burst, MiB", kept / f64::from(1 << 20))
}
