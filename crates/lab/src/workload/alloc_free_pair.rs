//! One block allocated and freed, over and over, at one size.
//!
//! Source: experiment A (TLSF over an arena): 1, 10, 100 and 500 KiB, 1000 operations published. `touch=1` writes one byte to
//! every OS page of the block, as a program that uses it would; by default only its ends are written, as the published one did.
//!
//! Does not show: more than one live block.

use super::heap::{CHeap, Heap, Hollow};
use super::meter::Meter;
use super::params::{Param, Params};
use super::tlsf_heap::TlsfHeap;
use super::tlsf_peers::{RlsfHeap, TalcHeap};
use super::{Outcome, Shows, Workload};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "alloc_free_pair",
    models: "a scratch buffer taken and given back at every request",
    hides: "more than one live block",
    shows: Shows::Time,
    params: &[
        Param::fixed("size", 1024, "bytes; experiment A has 1024, 10240, 102400 and 512000"),
        Param::scaled("ops", [10_000_000, 30_000_000, 100_000_000], "pairs of allocation and release"),
        Param::fixed("touch", 0, "1: write to every OS page of the block"),
        Param::fixed("heap", 0, "0: malloc; in the same process, over 64 MiB: 1: a TLSF heap; 2: rlsf's; 3: talc's"),
    ],
    run: |params, meter| match params.get("heap") {
        0 => run(params, meter, CHeap),
        1 => run(params, meter, TlsfHeap::new(64 << 20)),
        2 => run(params, meter, RlsfHeap::new(64 << 20)),
        _ => run(params, meter, TalcHeap::new(64 << 20)),
    },
    hollow: Some(|params, meter| run(params, meter, Hollow::new(params.size("size")))),
};

fn run<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
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
