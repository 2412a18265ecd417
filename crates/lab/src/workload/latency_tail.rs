//! How long single allocations and frees take, up to the slowest of a million.
//!
//! Source: the view of tail latency in Gil Tene's HdrHistogram. A table of live blocks has random sizes and now and then a large block; every
//! `malloc` and `free` is timed by itself and recorded in a histogram. The cost of reading the clock is measured and reported beside it.
//! `heap=1` is a TLSF heap, whose slowest call is bounded: what remains in its tail are the interruptions by the machine.
//!
//! Does not show: throughput; reading the clock costs more than most allocations.

use crate::workload::call_times::CallTimes;
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::Heap;
use crate::workload::tlsf_peers::AnyHeap;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "latency_tail",
    models: "a service that guarantees its slowest answer",
    hides: "throughput: reading the clock costs more than most allocations",
    shows: PrimaryFigure::Latency,
    params: &[
        Param::scaled("ops", [1_000_000, 6_000_000, 40_000_000], "replacements: a free and a malloc, timed one by one")
            .at_least_one(),
        Param::fixed("slots", 20_000, "largest number of live blocks"),
        Param::fixed("large_every", 1000, "one in this many blocks has up to 256 KiB"),
        LatencyTail::PARAM,
    ],
    run: LatencyTail::run,
    run_on_null: None,
};

struct LatencyTail;

impl AnyHeap for LatencyTail {
    fn run_on<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
        let (ops, slots, large_every) =
            (params.get("ops"), params.size("slots").max(1), params.get("large_every").max(1));
        let mut table: Vec<Option<Block>> = (0..slots).map(|_| None).collect();
        let mut times = CallTimes::new();
        let checksum = meter.section(|_| {
            let mut random = Random::new(77);
            let mut checksum = 0_u64;
            for turn in 0..ops {
                let slot = random.below(slots);
                if let Some(block) = table[slot].take() {
                    checksum = checksum.wrapping_add(heap.verify(&block, slot as u64));
                    times.time(|| heap.release(block));
                }
                let largest = if turn.is_multiple_of(large_every) { 256 << 10 } else { 1039 };
                let size = random.within(16, largest);
                let block = times.time(|| heap.allocate(size));
                block.stamp(slot as u64);
                table[slot] = Some(block);
            }
            checksum
        });
        table.into_iter().flatten().for_each(|block| heap.release(block));
        Outcome { latency: Some(times.latency()), ..Outcome::new(ops, checksum) }
    }
}
