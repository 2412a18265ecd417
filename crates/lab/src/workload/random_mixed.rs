//! Random sizes in a small table of live blocks: the mix of small objects that most programs allocate.
//!
//! Source: experiment B (HAKMEM's `bench_random_mixed`): 400 slots, sizes 16 + (random & 0x3FF), 1 million operations published. Each operation
//! picks a slot: it fills an empty one and frees the block of a full one. Blocks are stamped at both ends and verified before they are freed.
//!
//! Does not show: threads, large blocks, or what happens to memory once the load stops.

use crate::workload::cpp_heap::{self, CppHeap};
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::null_allocator::NullAllocator;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "random_mixed",
    models: "small blocks of mixed sizes that live for a few hundred operations",
    hides: "threads, large blocks, memory after the load",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [5_000_000, 20_000_000, 100_000_000], "operations").at_least_one(),
        Param::fixed("slots", 400, "largest number of live blocks"),
        Param::fixed("min", 16, "smallest size in bytes"),
        Param::fixed("mask", 0x3FF, "bits of the random number that is added to it"),
        cpp_heap::PARAM,
    ],
    run: |params, meter| match CppHeap::asked_for(params) {
        Some(heap) => run(params, meter, heap),
        None => run(params, meter, CHeap),
    },
    run_on_null: Some(|params, meter| run(params, meter, NullAllocator::new(params.size("min") + params.size("mask")))),
};

fn run<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
    let (ops, slots) = (params.get("ops"), params.size("slots").max(1));
    let (min, mask) = (params.size("min"), params.get("mask") as u32);
    let mut table: Vec<Option<Block>> = (0..slots).map(|_| None).collect();
    let checksum = meter.section(|_| {
        let mut random = Random::new(42);
        let mut checksum = 0_u64;
        for _ in 0..ops {
            let number = random.next();
            let index = ((u64::from(number) * slots as u64) >> 32) as usize;
            match table[index].take() {
                Some(block) => {
                    checksum = checksum.wrapping_add(heap.verify(&block, index as u64));
                    heap.release(block);
                }
                None => {
                    let block = heap.allocate(min + (number & mask) as usize);
                    block.stamp(index as u64);
                    table[index] = Some(block);
                }
            }
        }
        checksum
    });
    table.into_iter().flatten().for_each(|block| heap.release(block));
    Outcome::new(ops, checksum)
}
