//! Many `calloc`s of one size, then a free of each: what a fixed-size pool in front of `calloc` is for.
//!
//! Source: experiment D, first test: blocks of 1024 bytes; 50, 100, 500, 1024 or 10000 calls; with `oversize=1` every second request is twice as
//! large. Blocks are freed in the order of allocation. Each is checked to be zero and then written.
//!
//! Does not show: mixed lifetimes.

use crate::workload::calloc_front_end::{self, CallocFrontEnd};
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "pool_calloc",
    models: "zeroed blocks of one size, allocated and freed in groups",
    hides: "mixed lifetimes",
    shows: PrimaryFigure::Time,
    params: &[
        Param::fixed("block", 1024, "bytes per block"),
        Param::fixed("calls", 1024, "blocks in a group").at_least_one(),
        Param::scaled("rounds", [500, 4000, 20_000], "times a group is allocated and freed").at_least_one(),
        Param::fixed("front", 0, calloc_front_end::HELP),
        Param::fixed("oversize", 0, "1: every second request is twice as large"),
    ],
    run,
    run_on_null: None,
};

/// Blocks in the published pool.
const POOL_BLOCKS: usize = 1024;

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (size, calls, rounds) = (params.size("block").max(16), params.size("calls"), params.get("rounds"));
    let oversize = params.get("oversize") != 0;
    let mut front_end = CallocFrontEnd::new(params.get("front"), POOL_BLOCKS, size);
    let mut live = Vec::with_capacity(calls);
    let checksum = meter.section(|_| {
        let mut checksum = 0_u64;
        for _ in 0..rounds {
            for index in 0..calls {
                let block = front_end.allocate_zeroed(if oversize && index % 2 == 1 { size * 2 } else { size });
                if block.ends() != (0, 0) || block.byte(block.size() / 2) != 0 {
                    broken("calloc returned memory that is not zero");
                }
                block.stamp(index as u64);
                live.push(block);
            }
            for (index, block) in live.drain(..).enumerate() {
                checksum = checksum.wrapping_add(CHeap.verify(&block, index as u64));
                front_end.release(block);
            }
        }
        checksum
    });
    Outcome::new(rounds * calls as u64, checksum)
}
