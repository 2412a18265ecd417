//! A server with a thread for each connection, of which few run at a time.
//!
//! Source: freestone's own, for what no other workload here shows: many threads that each hold little and mostly wait. The threads stand in a ring, and tokens go round it: a
//! thread that gets one serves a request, and passes it on. In a request it replaces random blocks of its own, then frees all but a few of them. An operation is one free and one
//! allocation.
//!
//! Does not show: blocks that one thread frees for another, threads that run all at once, large blocks. Part of the time is the kernel's, which wakes a thread for each request.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "many_connections",
    models: "a server with a thread for each connection, most of them waiting",
    hides: "blocks freed by other threads, large blocks; part of the time is that of waking threads",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("threads", [100, 200, 1000], "connections, each with a thread").at_least_one(),
        Param::scaled("requests", [8_000, 40_000, 200_000], "requests in total"),
        Param::fixed("running", 2, "threads that serve a request at a time").at_least_one(),
        Param::fixed("ops", 200, "replacements in a request"),
        Param::fixed("slots", 20, "blocks of a thread while it serves").at_least_one(),
        Param::fixed("kept", 5, "blocks that it keeps while it waits"),
        Param::fixed("min", 16, "smallest size in bytes"),
        Param::fixed("max", 8000, "largest size in bytes"),
    ],
    run,
    run_on_null: None,
};

/// What each thread does.
#[derive(Clone, Copy)]
struct Plan {
    /// Requests that it serves.
    requests: u64,
    ops: u64,
    slots: usize,
    kept: usize,
    min: usize,
    max: usize,
}

/// The right to run.
struct Token;

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (threads, running) = (params.size("threads").max(1), params.size("running").max(1));
    let min = params.size("min");
    let plan = Plan {
        requests: params.get("requests").div_ceil(threads as u64),
        ops: params.get("ops"),
        slots: params.size("slots").max(1),
        kept: params.size("kept"),
        min,
        max: params.size("max").max(min),
    };
    let checksum = meter.section(|_| serve_all(threads, running, plan));
    Outcome::new(threads as u64 * plan.requests * plan.ops, checksum)
}

/// Starts the threads and the tokens, and returns the sum of the threads' checksums once all have served their requests.
fn serve_all(threads: usize, running: usize, plan: Plan) -> u64 {
    // Every token fits into every channel, so that nobody waits to pass one on.
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(running)).unzip();
    for token in 0..running {
        // Each receiver exists until its thread has served its requests.
        let _ = senders[token * threads / running].send(Token);
    }
    let nexts = senders.into_iter().cycle().skip(1);
    let workers: Vec<_> = receivers
        .into_iter()
        .zip(nexts)
        .zip(1..)
        .map(|((tokens, next), seed)| thread::spawn(move || serve(&tokens, &next, plan, seed)))
        .collect();
    workers.into_iter().filter_map(|worker| worker.join().ok()).fold(0, u64::wrapping_add)
}

/// What one thread does. Its successor in the ring may be gone when it passes the last token on.
fn serve(tokens: &Receiver<Token>, next: &SyncSender<Token>, plan: Plan, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut table: Vec<Option<Block>> = (0..plan.slots).map(|_| None).collect();
    let mut checksum = 0_u64;
    for _ in 0..plan.requests {
        let Ok(token) = tokens.recv() else { break };
        for _ in 0..plan.ops {
            let index = random.below(plan.slots);
            checksum = checksum.wrapping_add(CHeap.empty(table[index].take(), index as u64));
            let block = CHeap.allocate(random.within(plan.min, plan.max));
            block.stamp(index as u64);
            table[index] = Some(block);
        }
        for (index, slot) in table.iter_mut().enumerate().skip(plan.kept) {
            checksum = checksum.wrapping_add(CHeap.empty(slot.take(), index as u64));
        }
        let _ = next.send(token);
    }
    table
        .iter_mut()
        .enumerate()
        .fold(checksum, |sum, (index, slot)| sum.wrapping_add(CHeap.empty(slot.take(), index as u64)))
}
