//! Two threads that write to small blocks of their own: does the allocator put these on the same cache line?
//!
//! Source: cache-scratch and cache-thrash of Hoard (Berger et al., "Hoard: a scalable memory allocator", ASPLOS 2000).
//!
//! - active: each thread allocates its own blocks. An allocator that serves two threads from one cache line makes them share it.
//! - passive: the main thread allocates the first blocks and gives one to each thread, which frees it and allocates again. An allocator that
//!   returns such a block to the thread that freed it keeps the line shared.
//!
//! An operation is one allocation, `writes` increments of its first byte, and one free.
//!
//! Does not show: anything on a machine with one processor.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::{Arc, Barrier};
use std::thread;

const PARAMS: &[Param] = &[
    Param::scaled("ops", [200_000, 600_000, 4_000_000], "blocks in total").at_least_one(),
    Param::fixed("threads", 2, "threads").at_least_one(),
    Param::fixed("size", 8, "bytes in a block"),
    Param::fixed("writes", 500, "writes to each block"),
];

pub(crate) static ACTIVE: Workload = Workload {
    name: "active_false_sharing",
    models: "threads that work on small objects of their own",
    hides: "everything but shared cache lines",
    shows: PrimaryFigure::Time,
    params: PARAMS,
    run: |params, meter| run(params, meter, false),
    run_on_null: None,
};

pub(crate) static PASSIVE: Workload = Workload {
    name: "passive_false_sharing",
    models: "threads that received neighbouring objects from another thread",
    hides: "everything but shared cache lines",
    shows: PrimaryFigure::Time,
    params: PARAMS,
    run: |params, meter| run(params, meter, true),
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter, passive: bool) -> Outcome {
    let (threads, size) = (params.size("threads").max(1), params.size("size").max(1));
    let (turns, writes) = (params.get("ops").div_ceil(threads as u64), params.get("writes"));
    let checksum = meter.section(|_| {
        let start = Arc::new(Barrier::new(threads));
        let first: Vec<Option<Block>> = (0..threads).map(|_| passive.then(|| CHeap.allocate(size))).collect();
        let workers: Vec<_> = first
            .into_iter()
            .map(|handed| {
                let start = Arc::clone(&start);
                thread::spawn(move || {
                    start.wait();
                    if let Some(block) = handed {
                        CHeap.release(block);
                    }
                    scratch(turns, size, writes)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(0)).fold(0, u64::wrapping_add)
    });
    Outcome::new(turns * threads as u64, checksum)
}

fn scratch(turns: u64, size: usize, writes: u64) -> u64 {
    let mut checksum = 0_u64;
    for _ in 0..turns {
        let block = CHeap.allocate(size);
        block.fill_from(0, 0);
        block.increment_first(writes);
        checksum = checksum.wrapping_add(u64::from(block.byte(0)));
        CHeap.release(block);
    }
    checksum
}
