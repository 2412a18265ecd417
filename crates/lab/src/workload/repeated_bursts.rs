//! Heaps that are built and dropped, one after the other: does each burst find the memory of the last one, and what stays when they end?
//!
//! Source: services whose requests each build a tree of their own, compilers with many files, batch programs. An allocator that gives memory back as soon as it is
//! free pays with a page fault for each 4 KiB of every burst; one that keeps all holds the memory of the largest burst until the process ends.
//!
//! `keep=10` lets some blocks stay from one burst to the next, here and there, so that hardly any span or slab becomes empty.
//!
//! `shuffle=1` frees the blocks of a burst in a random order: spans or slabs become empty together at its end, with most of their OS pages free long before.
//!
//! Does not show: a burst that comes after a longer pause.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "repeated_bursts",
    models: "a service whose requests each build a heap and drop it",
    hides: "pauses between bursts",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("bursts", [10, 30, 100], "bursts"),
        Param::scaled("burst_mib", [64, 64, 256], "size of a burst in MiB"),
        Param::fixed("size", 1024, "largest block, in bytes").at_least_one(),
        Param::fixed("keep", 0, "percent of the blocks that stay, chosen at random"),
        Param::fixed("shuffle", 0, "0: freed in the order of allocation; 1: in a random order"),
    ],
    run,
    run_on_null: None,
};

/// Least size of a block.
const LEAST: usize = 16;

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (bursts, burst_bytes) = (params.get("bursts"), params.size("burst_mib") << 20);
    let (most, keep) = (params.size("size").max(LEAST), params.size("keep"));
    let is_shuffled = params.get("shuffle") != 0;
    let (ops, checksum, kept) = meter.section(|sampler| {
        let rss_before_bytes = sampler.sample();
        let mut random = Random::new(57);
        let (mut ops, mut checksum, mut bytes) = (0_u64, 0_u64, 0);
        // They do not grow: large blocks that come and go may let an allocator keep more.
        let [mut blocks, mut stay] =
            [(); 2].map(|()| Vec::<(u64, Block)>::with_capacity(burst_bytes * 5 / (2 * (LEAST + most))));
        for burst in 1..=bursts {
            while bytes < burst_bytes {
                let block = CHeap.allocate(random.within(LEAST, most));
                block.stamp(ops);
                bytes += block.size();
                blocks.push((ops, block));
                ops += 1;
            }
            sampler.sample();
            if is_shuffled {
                random.shuffle(&mut blocks);
            }
            for (tag, block) in blocks.drain(..) {
                if burst < bursts && random.below(100) < keep {
                    stay.push((tag, block));
                    continue;
                }
                checksum = checksum.wrapping_add(CHeap.verify(&block, tag));
                bytes -= block.size();
                CHeap.release(block);
            }
            std::mem::swap(&mut blocks, &mut stay);
        }
        (ops, checksum, sampler.sample() as f64 - rss_before_bytes as f64)
    });
    Outcome::new(ops, checksum).with("RSS kept after the last burst, MiB", kept / f64::from(1 << 20))
}
