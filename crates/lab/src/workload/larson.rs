//! A server whose threads die and whose successors free what they left behind.
//!
//! Source: Larson and Krishnan, "Memory allocation for long-running server applications" (ISMM 1998), and its driver with the parameters it is
//! commonly run with. The main thread fills every table and, not timed, scrambles them all; then each thread owns a table, frees a random block
//! of it and puts a new one in its place, `rounds` times the table's size, starts its successor on the same table, and ends. An operation is one
//! release and one allocation.
//!
//! Does not show: mostly remote frees (a successor frees each inherited block once, so about one release in `rounds`), large blocks, or threads
//! that share a block at the same time.

use crate::workload::block::Block;
use crate::workload::definition::{Outcome, Shows, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::null_allocator::NullAllocator;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::mpsc::{Sender, channel};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "larson",
    models: "a server whose threads inherit each other's blocks",
    hides: "mostly remote frees, large blocks, blocks shared at the same time",
    shows: Shows::Time,
    params: &[
        Param::scaled("ops", [10_000_000, 30_000_000, 150_000_000], "replacements in all"),
        Param::fixed("threads", 2, "tables, each with one owner at a time"),
        Param::fixed("slots", 5000, "blocks in a table"),
        Param::fixed("rounds", 100, "replacements by one owner, in tables"),
        Param::fixed("min", 8, "smallest size in bytes"),
        Param::fixed("max", 1000, "largest size in bytes"),
    ],
    run: |params, meter| run(params, meter, CHeap),
    run_on_null: Some(|params, meter| run(params, meter, NullAllocator::new(params.size("max")))),
};

/// Before the threads begin, the main thread replaces this many times as many blocks as there are.
const SCRAMBLES: usize = 4;

/// Empty only while a block is replaced.
type Slot = Option<Block>;

#[derive(Clone)]
struct Plan {
    /// Replacements by one owner.
    turns: u64,
    min: usize,
    max: usize,
}

/// A table on its way from owner to owner.
struct Estate {
    table: Vec<Slot>,
    random: Random,
    /// Replacements to come, by this owner and its successors.
    left: u64,
    checksum: u64,
}

fn run<H: Heap + Clone + Send + 'static>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
    let (threads, slots) = (params.size("threads").max(1), params.size("slots").max(1));
    let turns = params.get("rounds").max(1) * slots as u64;
    let plan = Plan { turns, min: params.size("min"), max: params.size("max").max(params.size("min")) };
    let left = params.get("ops").div_ceil(threads as u64);
    let tables = scrambled_tables(&heap, &plan, threads, slots);
    let estates: Vec<Estate> = tables
        .into_iter()
        .zip(1..)
        .map(|(table, seed)| Estate { table, random: Random::new(seed), left, checksum: 0 })
        .collect();
    let estates: Vec<Estate> = meter.section(|_| {
        let (done, finished) = channel();
        estates.into_iter().for_each(|estate| start_owner(heap.clone(), plan.clone(), estate, done.clone()));
        drop(done);
        finished.iter().collect()
    });
    if estates.len() != threads {
        broken("a thread ended before its table was handed on");
    }
    let checksum = estates.iter().map(|estate| estate.checksum).fold(0, u64::wrapping_add);
    for (index, slot) in estates.into_iter().flat_map(|estate| estate.table.into_iter().enumerate()) {
        release(&heap, slot, index);
    }
    Outcome::new(left * threads as u64, checksum)
}

/// The tables as the first owners find them: every block from one thread, and neighbours in memory in different tables.
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

fn start_owner<H: Heap + Clone + Send + 'static>(heap: H, plan: Plan, estate: Estate, done: Sender<Estate>) {
    thread::spawn(move || own(heap, plan, estate, done));
}

/// What one thread does: it works on the table, and its last act is to start the next owner.
fn own<H: Heap + Clone + Send + 'static>(heap: H, plan: Plan, mut estate: Estate, done: Sender<Estate>) {
    let turns = plan.turns.min(estate.left);
    for _ in 0..turns {
        let sum = replace(&heap, &plan, &mut estate.table, &mut estate.random);
        estate.checksum = estate.checksum.wrapping_add(sum);
    }
    estate.left -= turns;
    if estate.left > 0 {
        start_owner(heap, plan, estate, done);
    } else {
        // The receiver listens until the last sender is gone.
        let _ = done.send(estate);
    }
}

#[inline]
fn replace<H: Heap>(heap: &H, plan: &Plan, table: &mut [Slot], random: &mut Random) -> u64 {
    let index = random.below(table.len());
    let sum = release(heap, table[index].take(), index);
    table[index] = Some(fresh(heap, plan, index, random));
    sum
}

#[inline]
fn release<H: Heap>(heap: &H, slot: Slot, index: usize) -> u64 {
    slot.map_or(0, |block| {
        let sum = heap.verify(&block, index as u64);
        heap.release(block);
        sum
    })
}

#[inline]
fn fresh<H: Heap>(heap: &H, plan: &Plan, index: usize, random: &mut Random) -> Block {
    let block = heap.allocate(random.within(plan.min, plan.max));
    block.stamp(index as u64);
    block
}
