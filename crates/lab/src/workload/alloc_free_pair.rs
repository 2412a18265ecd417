//! One block allocated and freed, over and over, at one size.
//!
//! Source: experiment A (TLSF over an arena): 1, 10, 100 and 500 KiB; 1000 operations published. By default only the two ends of the block are
//! written, as in the published program. `touch=1` also writes one byte to every OS page of the block, as a program that uses it would.
//!
//! Does not show: more than one live block.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::null_allocator::NullAllocator;
use crate::workload::params::{Param, Params};
use crate::workload::tested_heap::Heap;
use crate::workload::tlsf_peers::AnyHeap;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "alloc_free_pair",
    models: "a scratch buffer that is allocated and freed at every request",
    hides: "more than one live block",
    shows: PrimaryFigure::Time,
    params: &[
        Param::fixed("size", 1024, "bytes; experiment A has 1024, 10240, 102400 and 512000"),
        Param::scaled("ops", [10_000_000, 30_000_000, 100_000_000], "pairs of allocation and free").at_least_one(),
        Param::fixed("touch", 0, "1: write one byte to every OS page of the block"),
        AllocFreePair::PARAM,
    ],
    run: AllocFreePair::run,
    run_on_null: Some(|params, meter| AllocFreePair::run_on(params, meter, NullAllocator::new(params.size("size")))),
};

struct AllocFreePair;

impl AnyHeap for AllocFreePair {
    fn run_on<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
        let (size, ops, touch) = (params.size("size"), params.get("ops"), params.get("touch") != 0);
        let checksum = meter.section(|_| {
            let mut checksum = 0_u64;
            for tag in 0..ops {
                let block = heap.allocate(size);
                block.stamp(tag);
                if touch {
                    block.touch(4096, tag as u8);
                    block.stamp(tag);
                }
                checksum = checksum.wrapping_add(heap.verify(&block, tag));
                heap.release(block);
            }
            checksum
        });
        Outcome::new(ops, checksum)
    }
}
