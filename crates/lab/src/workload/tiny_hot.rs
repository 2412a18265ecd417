//! The same few tiny blocks again and again: the hottest path of an allocator.
//!
//! Source: experiment B (HAKMEM's `tiny_hot`, sizes 8 to 128 bytes). A batch of blocks of one size is allocated and then freed in reverse order;
//! the next batch has the next size. An operation is one allocation and its free.
//!
//! Does not show: anything but the fast path; the caches of every allocator are warm throughout.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::null_allocator::NullAllocator;
use crate::workload::params::{Param, Params};
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "tiny_hot",
    models: "short-lived objects of 8 to 128 bytes, freed in reverse order",
    hides: "everything but the fast path",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [8_000_000, 60_000_000, 300_000_000], "pairs of allocation and free").at_least_one(),
        Param::fixed("batch", 100, "largest number of live blocks"),
        Param::fixed("largest", 128, "largest size in bytes"),
    ],
    run: |params, meter| run(params, meter, CHeap),
    run_on_null: Some(|params, meter| run(params, meter, NullAllocator::new(params.size("largest")))),
};

fn run<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
    let (batch, largest) = (params.get("batch").max(1), params.size("largest").max(8));
    let rounds = params.get("ops").div_ceil(batch);
    let mut live = Vec::with_capacity(batch as usize);
    let checksum = meter.section(|_| {
        let mut checksum = 0_u64;
        let mut size = 8;
        for _ in 0..rounds {
            for tag in 0..batch {
                let block = heap.allocate(size);
                block.stamp(tag);
                live.push(block);
            }
            for tag in (0..batch).rev() {
                if let Some(block) = live.pop() {
                    checksum = checksum.wrapping_add(heap.verify(&block, tag));
                    heap.release(block);
                }
            }
            size = if size + 8 > largest { 8 } else { size + 8 };
        }
        checksum
    });
    Outcome::new(rounds * batch, checksum)
}
