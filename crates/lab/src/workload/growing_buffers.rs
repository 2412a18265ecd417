//! Hundreds of buffers that grow by a factor in random order, and begin again once they are long.
//!
//! Source: vectors and strings that are appended to, request bodies, columns that are being loaded. Each operation makes one buffer longer by
//! `realloc` and writes its new part; one that has reached the limit is freed, and a short one takes its place.
//!
//! Does not show: small blocks, and a buffer that grows alone (`realloc_growth`).

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "growing_buffers",
    models: "hundreds of buffers that double with realloc, and are replaced",
    hides: "small blocks",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [10_000, 30_000, 200_000], "times that a buffer grows or is replaced").at_least_one(),
        Param::fixed("buffers", 500, "number of buffers").at_least_one(),
        Param::fixed("start_kib", 64, "a new buffer has up to twice this many KiB").at_least_one(),
        Param::fixed("limit_kib", 1024, "a buffer of more than this many KiB is replaced"),
        Param::fixed("percent", 200, "the length after growing, in percent of the one before"),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (ops, n_buffers) = (params.get("ops"), params.size("buffers"));
    let (start, limit, percent) =
        (params.size("start_kib") << 10, params.size("limit_kib") << 10, params.size("percent"));
    let mut buffers: Vec<Option<Block>> = (0..n_buffers).map(|_| None).collect();
    let checksum = meter.section(|_| {
        let mut random = Random::new(12);
        let mut checksum = 0_u64;
        for _ in 0..ops {
            let at = random.below(n_buffers);
            let tag = at as u8;
            let (buffer, written) = match buffers[at].take() {
                Some(buffer) if buffer.size() <= limit => {
                    let written = buffer.size();
                    (CHeap.resize(buffer, written.max(written / 100 * percent)), written)
                }
                old => {
                    old.into_iter().for_each(|old| CHeap.release(old));
                    (CHeap.allocate(random.within(start, 2 * start)), 0)
                }
            };
            if written > 0 && [0, written - 1].iter().any(|&offset| buffer.byte(offset) != tag) {
                broken(&format!("realloc lost the contents of a buffer of {written} bytes"));
            }
            buffer.fill_from(written, tag);
            checksum = checksum.wrapping_add(buffer.size() as u64);
            buffers[at] = Some(buffer);
        }
        checksum
    });
    buffers.into_iter().flatten().for_each(|buffer| CHeap.release(buffer));
    Outcome::new(ops, checksum)
}
