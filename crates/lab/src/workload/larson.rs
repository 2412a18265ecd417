//! A server whose threads end and whose successors free the blocks that they left behind.
//!
//! Source: Larson and Krishnan, "Memory allocation for long-running server applications" (ISMM 1998), and its driver with the parameters that
//! it is usually run with. The main thread fills every table and, not timed, scrambles all of them. Then each thread owns a table: it frees a
//! random block of it and puts a new one in its place, `rounds` times the size of the table, starts its successor on the same table, and
//! ends. An operation is one free and one allocation.
//!
//! Does not show: mostly remote frees (a successor frees each inherited block once, so about one free in `rounds` is remote), large blocks, or
//! threads that share a block at the same time.

use crate::workload::cpp_heap::{self, CppHeap};
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::null_allocator::NullAllocator;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::mpsc::{Sender, channel};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "larson",
    models: "a server whose threads inherit each other's blocks",
    hides: "mostly remote frees, large blocks, blocks shared at the same time",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [10_000_000, 30_000_000, 150_000_000], "replacements in total").at_least_one(),
        Param::fixed("threads", 2, "tables; each has one owner at a time").at_least_one(),
        Param::fixed("slots", 5000, "blocks in a table"),
        Param::fixed("rounds", 100, "replacements by one owner, as a multiple of the slots").at_least_one(),
        Param::fixed("min", 8, "smallest size in bytes"),
        Param::fixed("max", 1000, "largest size in bytes"),
        cpp_heap::PARAM,
    ],
    run: |params, meter| match CppHeap::asked_for(params) {
        Some(heap) => run(params, meter, heap),
        None => run(params, meter, CHeap),
    },
    run_on_null: Some(|params, meter| run(params, meter, NullAllocator::new(params.size("max")))),
};

/// Before the threads start, the main thread makes this many replacements per block.
const SCRAMBLES: usize = 4;

/// A block; `None` only while it is being replaced.
type Slot = Option<Block>;

#[derive(Clone)]
/// What every owner does.
struct Plan {
    /// Replacements by one owner.
    turns: u64,
    min: usize,
    max: usize,
}

/// A table that passes from owner to owner.
struct Inheritance {
    table: Vec<Slot>,
    random: Random,
    /// Replacements still to be made, by this owner and its successors.
    left: u64,
    checksum: u64,
}

fn run<H: Heap + Clone + Send + 'static>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
    let (threads, slots) = (params.size("threads").max(1), params.size("slots").max(1));
    let turns = params.get("rounds").max(1) * slots as u64;
    let plan = Plan { turns, min: params.size("min"), max: params.size("max").max(params.size("min")) };
    let left = params.get("ops").div_ceil(threads as u64);
    let tables = scrambled_tables(&heap, &plan, threads, slots);
    let inheritances: Vec<Inheritance> = tables
        .into_iter()
        .zip(1..)
        .map(|(table, seed)| Inheritance { table, random: Random::new(seed), left, checksum: 0 })
        .collect();
    let inheritances: Vec<Inheritance> = meter.section(|_| {
        let (done, finished) = channel();
        inheritances
            .into_iter()
            .for_each(|inheritance| start_owner(heap.clone(), plan.clone(), inheritance, done.clone()));
        drop(done);
        finished.iter().collect()
    });
    if inheritances.len() != threads {
        broken("a thread ended before its table was handed on");
    }
    let checksum = inheritances.iter().map(|inheritance| inheritance.checksum).fold(0, u64::wrapping_add);
    for (index, slot) in inheritances.into_iter().flat_map(|inheritance| inheritance.table.into_iter().enumerate()) {
        heap.empty(slot, index as u64);
    }
    Outcome::new(left * threads as u64, checksum)
}

/// The tables as the first owners receive them: the main thread allocated every block, and neighbours in memory are in different tables.
fn scrambled_tables<H: Heap>(heap: &H, plan: &Plan, threads: usize, slots: usize) -> Vec<Vec<Slot>> {
    let mut random = Random::new(0);
    let mut tables: Vec<Vec<Slot>> =
        (0..threads).map(|_| (0..slots).map(|index| Some(fresh(heap, plan, index, &mut random))).collect()).collect();
    for _ in 0..SCRAMBLES * threads * slots {
        let table = random.below(threads);
        replace(heap, plan, &mut tables[table], &mut random);
    }
    tables
}

fn start_owner<H: Heap + Clone + Send + 'static>(
    heap: H,
    plan: Plan,
    inheritance: Inheritance,
    done: Sender<Inheritance>,
) {
    thread::spawn(move || own(heap, plan, inheritance, done));
}

/// What one thread does: it makes its replacements, and finally starts the next owner.
fn own<H: Heap + Clone + Send + 'static>(heap: H, plan: Plan, mut inheritance: Inheritance, done: Sender<Inheritance>) {
    let turns = plan.turns.min(inheritance.left);
    for _ in 0..turns {
        let sum = replace(&heap, &plan, &mut inheritance.table, &mut inheritance.random);
        inheritance.checksum = inheritance.checksum.wrapping_add(sum);
    }
    inheritance.left -= turns;
    if inheritance.left > 0 {
        start_owner(heap, plan, inheritance, done);
    } else {
        // The receiver exists until the last sender is gone.
        let _ = done.send(inheritance);
    }
}

#[inline]
fn replace<H: Heap>(heap: &H, plan: &Plan, table: &mut [Slot], random: &mut Random) -> u64 {
    let index = random.below(table.len());
    let sum = heap.empty(table[index].take(), index as u64);
    table[index] = Some(fresh(heap, plan, index, random));
    sum
}

#[inline]
fn fresh<H: Heap>(heap: &H, plan: &Plan, index: usize, random: &mut Random) -> Block {
    let block = heap.allocate(random.within(plan.min, plan.max));
    block.stamp(index as u64);
    block
}
