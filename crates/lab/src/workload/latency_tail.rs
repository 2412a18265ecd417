//! How long single allocations and frees take, up to the slowest of a million.
//!
//! Source: the view of tail latency in Gil Tene's HdrHistogram. A table of live blocks has random sizes and now and then a large block; every
//! `malloc` and `free` is timed by itself and recorded in a histogram. The cost of reading the clock is measured and reported beside it.
//! `heap=1` is a TLSF heap, whose slowest call is bounded: what remains in its tail are the interruptions by the machine.
//!
//! Does not show: throughput; reading the clock costs more than most allocations.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::Heap;
use crate::workload::tlsf_peers::AnyHeap;
use crate::workload::workload_record::Latency;
use hdrhistogram::Histogram;
use std::time::Instant;

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

/// The percentiles of the record.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

struct LatencyTail;

impl AnyHeap for LatencyTail {
    fn run_on<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
        let (ops, slots, large_every) =
            (params.get("ops"), params.size("slots").max(1), params.get("large_every").max(1));
        let mut table: Vec<Option<Block>> = (0..slots).map(|_| None).collect();
        let mut histogram = match Histogram::<u64>::new_with_bounds(1, 10_000_000_000, 3) {
            Ok(histogram) => histogram,
            Err(error) => unreachable!("the bounds of the histogram are constants: {error}"),
        };
        let mut record = |since: Instant| histogram.saturating_record(since.elapsed().as_nanos() as u64);
        let checksum = meter.section(|_| {
            let mut random = Random::new(77);
            let mut checksum = 0_u64;
            for turn in 0..ops {
                let slot = random.below(slots);
                if let Some(block) = table[slot].take() {
                    checksum = checksum.wrapping_add(heap.verify(&block, slot as u64));
                    let began = Instant::now();
                    heap.release(block);
                    record(began);
                }
                let largest = if turn.is_multiple_of(large_every) { 256 << 10 } else { 1039 };
                let size = random.within(16, largest);
                let began = Instant::now();
                let block = heap.allocate(size);
                record(began);
                block.stamp(slot as u64);
                table[slot] = Some(block);
            }
            checksum
        });
        table.into_iter().flatten().for_each(|block| heap.release(block));
        let latency = Latency {
            count: histogram.len(),
            percentiles: PERCENTILES
                .iter()
                .map(|&percentile| (percentile, histogram.value_at_percentile(percentile)))
                .collect(),
            max_ns: histogram.max(),
            clock_ns: clock_cost_ns(),
        };
        Outcome { latency: Some(latency), ..Outcome::new(ops, checksum) }
    }
}

/// Cost of reading the clock twice in nanoseconds: the median of many.
fn clock_cost_ns() -> u64 {
    let mut costs: Vec<u64> = (0..10_001).map(|_| Instant::now().elapsed().as_nanos() as u64).collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}
