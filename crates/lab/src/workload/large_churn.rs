//! Large buffers that are allocated, written once and freed.
//!
//! Source: image and video frames, columns of a database; reports about allocators that unmap every large block and fault it in again. A few
//! slots hold blocks of 1 to 64 MiB; each operation replaces one and writes to every OS page of the new one.
//!
//! Does not show: small blocks.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "large_churn",
    models: "frames and columns of 1 to 64 MiB, written once",
    hides: "small blocks",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [30, 200, 1000], "blocks").at_least_one(),
        Param::fixed("slots", 4, "largest number of live blocks"),
        Param::fixed("min_mib", 1, "smallest size in MiB"),
        Param::fixed("max_mib", 64, "largest size in MiB"),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (ops, slots) = (params.get("ops"), params.size("slots").max(1));
    let (min, max) = (params.size("min_mib").max(1) << 20, params.size("max_mib").max(1) << 20);
    let mut table: Vec<Option<Block>> = (0..slots).map(|_| None).collect();
    let checksum = meter.section(|_| {
        let mut random = Random::new(11);
        let mut checksum = 0_u64;
        for tag in 0..ops {
            let slot = random.below(slots);
            if let Some(old) = table[slot].take() {
                checksum = checksum.wrapping_add(CHeap.verify(&old, slot as u64));
                CHeap.release(old);
            }
            let block = CHeap.allocate(random.within(min, max.max(min)));
            block.touch(4096, tag as u8);
            block.stamp(slot as u64);
            table[slot] = Some(block);
        }
        checksum
    });
    table.into_iter().flatten().for_each(|block| CHeap.release(block));
    Outcome::new(ops, checksum)
}
