//! A server whose threads die and whose successors free what they left behind.
//!
//! Source: Larson and Krishnan, "Memory allocation for long-running server applications" (ISMM 1998). Each thread owns a table of
//! blocks and replaces random ones; after a while it hands the table to a thread it starts, and ends. So most blocks are freed by a
//! thread that did not allocate them. An operation is one release and one allocation.
//!
//! Does not show: large blocks, or threads that share a block at the same time.

use super::heap::{Block, CHeap, Heap, Hollow};
use super::meter::Meter;
use super::params::{Param, Params};
use super::random::Random;
use super::{Outcome, Shows, Workload};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "larson",
    models: "a server whose threads inherit each other's blocks",
    hides: "large blocks, blocks shared at the same time",
    shows: Shows::Time,
    params: &[
        Param::scaled("ops", [3_000_000, 10_000_000, 50_000_000], "replacements in all"),
        Param::fixed("threads", 2, "tables, each with one thread at a time"),
        Param::fixed("generations", 20, "threads that own a table one after the other"),
        Param::fixed("slots", 1000, "blocks in a table"),
        Param::fixed("min", 8, "smallest size in bytes"),
        Param::fixed("max", 1000, "largest size in bytes"),
    ],
    run: |params, meter| run(params, meter, CHeap),
    hollow: Some(|params, meter| run(params, meter, Hollow::new(params.size("max")))),
};

#[derive(Clone)]
struct Plan {
    turns: u64,
    min: usize,
    max: usize,
}

fn run<H: Heap + Clone + Send + 'static>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
    let (threads, generations) = (params.get("threads").max(1), params.get("generations").max(1));
    let turns = params.get("ops").div_ceil(threads * generations);
    let plan = Plan { turns, min: params.size("min"), max: params.size("max").max(params.size("min")) };
    let slots = params.size("slots").max(1);
    let checksum = meter.section(|_| {
        let lines: Vec<_> = (0..threads)
            .map(|line| {
                let (heap, plan) = (heap.clone(), plan.clone());
                thread::spawn(move || succession(&heap, &plan, slots, line, generations))
            })
            .collect();
        lines.into_iter().map(|line| line.join().unwrap_or(0)).fold(0, u64::wrapping_add)
    });
    Outcome::new(turns * threads * generations, checksum)
}

/// One table through the hands of all its owners, each a thread that ends before the next begins.
fn succession<H: Heap + Clone + Send + 'static>(
    heap: &H,
    plan: &Plan,
    slots: usize,
    line: u64,
    generations: u64,
) -> u64 {
    let mut table = fill(heap, plan, slots, line);
    let mut checksum = 0_u64;
    for generation in 0..generations {
        let (heap, plan) = (heap.clone(), plan.clone());
        let owner = thread::spawn(move || own(&heap, &plan, table, line * 1000 + generation));
        match owner.join() {
            Ok((left_behind, sum)) => {
                table = left_behind;
                checksum = checksum.wrapping_add(sum);
            }
            Err(_) => return 0,
        }
    }
    table.into_iter().for_each(|block| heap.release(block));
    checksum
}

fn fill<H: Heap>(heap: &H, plan: &Plan, slots: usize, line: u64) -> Vec<Block> {
    let mut random = Random::new(line + 1);
    (0..slots)
        .map(|index| {
            let block = heap.allocate(random.within(plan.min, plan.max));
            block.stamp(index as u64);
            block
        })
        .collect()
}

fn own<H: Heap>(heap: &H, plan: &Plan, mut table: Vec<Block>, seed: u64) -> (Vec<Block>, u64) {
    let mut random = Random::new(seed);
    let mut checksum = 0_u64;
    for _ in 0..plan.turns {
        let index = random.below(table.len());
        let fresh = heap.allocate(random.within(plan.min, plan.max));
        fresh.stamp(index as u64);
        let old = std::mem::replace(&mut table[index], fresh);
        checksum = checksum.wrapping_add(heap.verify(&old, index as u64));
        heap.release(old);
    }
    (table, checksum)
}
