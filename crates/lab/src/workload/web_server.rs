//! Clients that each hold a few hundred buffers and free them in a scrambled order.
//!
//! Source: experiment D, the "web server": 10 clients x 256 blocks x 4096 bytes, 512000 `calloc`s in total, freed in scrambled order. Published:
//! glibc 2.694 s, a pool with a linear search 27.79 s, a pool with power-of-two blocks 0.673 s, tcmalloc's calloc 0.618 s.
//!
//! Does not show: threads (the published program had none), or more than one size.

use crate::workload::calloc_front_end::{self, CallocFrontEnd};
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "web_server",
    models: "ten clients with 256 page-sized buffers each, freed in a scrambled order",
    hides: "threads, other sizes",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("calls", [128_000, 512_000, 5_120_000], "callocs in total").at_least_one(),
        Param::fixed("clients", 10, "clients").at_least_one(),
        Param::fixed("blocks", 256, "buffers per client"),
        Param::fixed("size", 4096, "bytes per buffer"),
        Param::fixed("front", 0, calloc_front_end::HELP),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (clients, blocks, size) = (params.size("clients").max(1), params.size("blocks").max(1), params.size("size"));
    let rounds = params.get("calls").div_ceil((clients * blocks) as u64);
    let mut front_end = CallocFrontEnd::new(params.get("front"), clients * blocks, size);
    let mut random = Random::new(3);
    let checksum = meter.section(|_| {
        let mut checksum = 0_u64;
        let mut live: Vec<(u64, Block)> = Vec::with_capacity(clients * blocks);
        for _ in 0..rounds {
            for tag in 0..(clients * blocks) as u64 {
                let block = front_end.allocate_zeroed(size);
                block.stamp(tag);
                live.push((tag, block));
            }
            while !live.is_empty() {
                let (tag, block) = live.swap_remove(random.below(live.len()));
                checksum = checksum.wrapping_add(CHeap.verify(&block, tag));
                front_end.release(block);
            }
        }
        checksum
    });
    Outcome::new(rounds * (clients * blocks) as u64, checksum)
}
