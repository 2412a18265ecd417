//! A thread allocates much, others free it, and the thread waits: when does its memory go back, and what does its next allocation cost?
//!
//! Source: redis's `FLUSHALL ASYNC` and other programs that free in the background what their main thread has allocated. An allocator whose threads have caches
//! or heaps of their own may keep such blocks until the thread that allocated them calls it again. The threads that free stay, as those of a pool do.
//!
//! Does not show: speed, but for that of the first allocations after the wait.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "idle_owner",
    models: "a thread whose blocks others free while it waits",
    hides: "speed",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::scaled("burst_mib", [64, 256, 1024], "burst in MiB"),
        Param::fixed("threads", 2, "threads that free it").at_least_one(),
        Param::fixed("max", 1039, "largest size in bytes"),
        Param::scaled("wait_ms", [3000, 5000, 5000], "time that the first thread waits in ms"),
        Param::fixed("then", 10_000, "blocks that it allocates after that"),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (threads, max) = (params.size("threads").max(1), params.size("max").max(16));
    let (wait, n_then) = (Duration::from_millis(params.get("wait_ms")), params.size("then"));
    let (ops, checksum, kept_bytes, then) = meter.section(|sampler| {
        let rss_before_bytes = sampler.sample();
        let shares = allocate(params.size("burst_mib") << 20, threads, max);
        let ops = shares.iter().map(|share| share.len() as u64).sum::<u64>() + n_then as u64;
        let (freed, leave) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
        thread::scope(|scope| {
            let free = |share: Vec<(u64, Block)>| {
                let sum = free_all(share);
                freed.wait();
                leave.wait();
                sum
            };
            let workers: Vec<_> = shares.into_iter().map(|share| scope.spawn(move || free(share))).collect();
            freed.wait();
            sampler.sleep(wait, Duration::from_millis(50));
            let kept_bytes = sampler.sample().saturating_sub(rss_before_bytes);
            let begun = Instant::now();
            let last = allocate_some(n_then, max);
            let then = begun.elapsed();
            leave.wait();
            let sums = workers.into_iter().filter_map(|worker| worker.join().ok());
            (ops, sums.fold(free_all(last), u64::wrapping_add), kept_bytes, then)
        })
    });
    Outcome::new(ops, checksum)
        .with("RSS kept after the wait, MiB", kept_bytes as f64 / f64::from(1 << 20))
        .with("the first allocations after the wait, ms", then.as_secs_f64() * 1000.0)
}

/// A stamped block of up to `max` bytes, with its tag.
fn stamped(random: &mut Random, tag: u64, max: usize) -> (u64, Block) {
    let block = CHeap.allocate(random.within(16, max));
    block.stamp(tag);
    (tag, block)
}

/// Allocates blocks of `bytes` together, and deals them out.
fn allocate(bytes: usize, threads: usize, max: usize) -> Vec<Vec<(u64, Block)>> {
    let mut random = Random::new(41);
    let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    let (mut allocated, mut tag) = (0, 0);
    while allocated < bytes {
        let (_, block) = stamped(&mut random, tag, max);
        allocated += block.size();
        shares[tag as usize % threads].push((tag, block));
        tag += 1;
    }
    shares
}

/// Allocates `n` blocks.
fn allocate_some(n: usize, max: usize) -> Vec<(u64, Block)> {
    let mut random = Random::new(43);
    (0..n as u64).map(|tag| stamped(&mut random, tag, max)).collect()
}

/// Allocates a block, as threads of a pool have done before, then verifies and frees all of a share. Returns the checksum.
fn free_all(share: Vec<(u64, Block)>) -> u64 {
    let (tag, own) = stamped(&mut Random::new(47), 0, 64);
    share.into_iter().chain([(tag, own)]).fold(0_u64, |sum, (tag, block)| {
        let sum = sum.wrapping_add(CHeap.verify(&block, tag));
        CHeap.release(block);
        sum
    })
}
