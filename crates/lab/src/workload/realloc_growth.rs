//! A buffer that grows by an eighth again and again, like strings, vectors and logs that are being read in.
//!
//! Source: experiment E ("mimalloc, explained"): growth by 1/8 to 0.5 MB (83 steps) and to 47 MB (122 steps); starting at 29 bytes gives exactly
//! these numbers of steps. The new part is written after each step, and all bytes are summed at the end. A step counts as moved if the
//! address of the block changes.
//!
//! Does not show: growth between other live blocks (`neighbours=1` allocates one small block after every step).

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "realloc_growth",
    models: "a buffer that grows by an eighth with realloc",
    hides: "growth with many live neighbours",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::fixed("limit", 47_000_000, "grow until this many bytes"),
        Param::fixed("start", 29, "first size in bytes"),
        Param::scaled("repeats", [1, 1, 5], "buffers that grow one after the other").at_least_one(),
        Param::fixed("neighbours", 0, "1: a small block is allocated at every step"),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (mut steps, mut moved, mut checksum) = (0_u64, 0_u64, 0_u64);
    meter.section(|_| {
        for _ in 0..params.get("repeats") {
            let (grown, changed, sum) = grow(params);
            steps += grown;
            moved += changed;
            checksum = checksum.wrapping_add(sum);
        }
    });
    Outcome::new(steps, checksum).with("steps", steps as f64).with("moved", moved as f64)
}

/// Grows one buffer. Returns its steps, how many of them moved it, and the sum of its bytes.
fn grow(params: &Params) -> (u64, u64, u64) {
    let heap = CHeap;
    let limit = params.size("limit");
    let mut neighbours = Vec::new();
    let mut block = heap.allocate(params.size("start").max(8));
    block.fill_from(0, 1);
    let mut written = block.size() as u64;
    let (mut steps, mut moved) = (0, 0);
    while block.size() + block.size() / 8 <= limit {
        let (before, from) = (block.address(), block.size());
        block = heap.resize(block, from + from / 8);
        let byte = (steps % 251) as u8;
        block.fill_from(from, byte);
        written += u64::from(byte) * (block.size() - from) as u64;
        steps += 1;
        moved += u64::from(block.address() != before);
        if params.get("neighbours") != 0 {
            neighbours.push(heap.allocate(64));
        }
    }
    let sum = block.sum();
    if sum != written {
        broken(&format!("realloc lost contents: the bytes written add up to {written}, those found to {sum}"));
    }
    heap.release(block);
    neighbours.into_iter().for_each(|neighbour| heap.release(neighbour));
    (steps, moved, sum)
}
