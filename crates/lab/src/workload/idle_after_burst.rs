//! A burst, then nothing: does the resident size fall by itself?
//!
//! Source: the most frequent complaint about fast allocators, that RSS does not fall when the load falls. A burst of small blocks is allocated
//! and all of it is freed. Then the process sleeps while its resident size is sampled.
//!
//! Does not show: what happens if some blocks stay (`burst_keep_every_20th` does).

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::time::Duration;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "idle_after_burst",
    models: "a service after its busiest hour",
    hides: "blocks that stay",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::scaled("burst_mib", [256, 256, 1024], "size of the burst in MiB"),
        Param::scaled("idle_ms", [1500, 3000, 10_000], "time asleep after the burst in ms"),
    ],
    run,
    run_on_null: None,
};

/// Blocks between two samples of the resident size: some hundred samples for the smallest burst.
const SAMPLED_EVERY: usize = 4096;

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (burst_bytes, idle) = (params.size("burst_mib") << 20, Duration::from_millis(params.get("idle_ms")));
    let (ops, checksum, rss_before_bytes, rss_after_bytes) = meter.section(|sampler| {
        let rss_before_bytes = sampler.sample();
        let mut random = Random::new(9);
        let (mut bytes, mut blocks) = (0, Vec::<Block>::new());
        while bytes < burst_bytes {
            let block = CHeap.allocate(random.within(16, 1039));
            block.stamp(blocks.len() as u64);
            bytes += block.size();
            blocks.push(block);
            if blocks.len() % SAMPLED_EVERY == 0 {
                sampler.sample();
            }
        }
        let ops = blocks.len() as u64;
        let mut checksum = 0_u64;
        for (tag, block) in blocks.into_iter().enumerate() {
            checksum = checksum.wrapping_add(CHeap.verify(&block, tag as u64));
            CHeap.release(block);
            if tag % SAMPLED_EVERY == 0 {
                sampler.sample();
            }
        }
        sampler.sleep(idle, Duration::from_millis(20));
        (ops, checksum, rss_before_bytes, sampler.sample())
    });
    Outcome::new(ops, checksum)
        .with("RSS kept at the end, MiB", (rss_after_bytes as f64 - rss_before_bytes as f64) / f64::from(1 << 20))
}
