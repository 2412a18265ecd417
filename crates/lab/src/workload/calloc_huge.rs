//! `calloc` of a gigabyte that is not used: it must cost address space, not memory.
//!
//! Source: freestone's own goal (1000 times 1 GiB in under 50 ms, resident size constant). Sparse tables, and libraries that reserve far more
//! than they use, allocate like this. Three places (both ends and the middle) are checked to be zero, and both ends are written.
//!
//! Does not show: blocks that are used.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::tested_heap::{CHeap, Heap};
use std::time::{Duration, Instant};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "calloc_huge",
    models: "huge sparse tables",
    hides: "blocks that are used",
    shows: PrimaryFigure::Time,
    params: &[
        Param::fixed("ops", 1000, "pairs of calloc and free").at_least_one(),
        Param::fixed("mib", 1024, "size in MiB"),
        Param::fixed(
            "max_ms",
            2000,
            "stop after this time in ms: an allocator that clears every gigabyte would take minutes",
        ),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (ops, size) = (params.get("ops"), params.size("mib").max(1) << 20);
    let deadline = Duration::from_millis(params.get("max_ms"));
    let (done, growth_bytes) = meter.section(|sampler| {
        let (began, rss_before_bytes, mut done) = (Instant::now(), sampler.sample(), 0);
        while done < ops && began.elapsed() < deadline {
            let block = CHeap.allocate_zeroed(size);
            if block.ends() != (0, 0) || block.byte(size / 2) != 0 {
                broken("calloc returned memory that is not zero");
            }
            block.stamp(1);
            CHeap.release(block);
            done += 1;
        }
        (done, sampler.sample().saturating_sub(rss_before_bytes))
    });
    Outcome::new(done, 0).with("RSS kept at the end, MiB", growth_bytes as f64 / f64::from(1 << 20))
}
