//! A burst of which every 20th block stays: the hardest case for returning memory, because live blocks are everywhere.
//!
//! Source: freestone's own experiment. Threads allocate a burst of blocks of 16 to 1039 bytes, free all but every 20th, and wait. An
//! allocator that does not move blocks must keep at least the OS pages that hold a live block. The workload counts these pages from the
//! addresses and reports the resident size as a multiple of them.
//!
//! Does not show: speed.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::{Meter, Sampler};
use crate::workload::own_process::os_page_bytes;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "burst_keep_every_20th",
    models: "a burst that leaves scattered long-lived objects",
    hides: "speed",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::scaled("burst_mib", [256, 1024, 1024], "size of the burst in MiB, over all threads"),
        Param::fixed("threads", 4, "threads; 0: the main thread does all the work"),
        Param::fixed("keep_every", 20, "one in this many blocks stays"),
        Param::scaled("wait_ms", [1500, 5000, 5000], "time asleep after the burst in ms"),
    ],
    run,
    run_on_null: None,
};

/// The blocks that one thread keeps, each with its tag, and the number of its allocations.
struct KeptBlocks {
    blocks: Vec<(u64, Block)>,
    ops: u64,
}

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let threads = params.size("threads");
    let (burst, keep_every) = ((params.size("burst_mib") << 20) / threads.max(1), params.get("keep_every").max(1));
    let wait = Duration::from_millis(params.get("wait_ms"));
    let (kept, before, peak, after) = meter.section(|sampler| {
        let before = sampler.sample();
        let burst = move |seed| burst_and_free(seed, burst, keep_every);
        let (kept, (peak, after)) = match threads {
            0 => (vec![burst(0)], watch(sampler, wait)),
            _ => in_threads(threads, burst, || watch(sampler, wait)),
        };
        (kept, before, peak, after)
    });
    let mut checksum = 0_u64;
    let page = os_page_bytes() as usize;
    let blocks = || kept.iter().flat_map(|kept| &kept.blocks);
    let mut pages: Vec<usize> =
        blocks().flat_map(|(_, block)| block.address() / page..=(block.address() + block.size() - 1) / page).collect();
    pages.sort_unstable();
    pages.dedup();
    for (tag, block) in blocks() {
        checksum = checksum.wrapping_add(CHeap.verify(block, *tag));
    }
    let mib = f64::from(1 << 20);
    let held = (pages.len() * page) as f64;
    let grown = after.saturating_sub(before) as f64;
    let ops = kept.iter().map(|kept| kept.ops).sum();
    kept.into_iter().flat_map(|kept| kept.blocks).for_each(|(_, block)| CHeap.release(block));
    Outcome::new(ops, checksum)
        .with("RSS after the frees, MiB", peak as f64 / mib)
        .with("RSS after the wait, MiB", after as f64 / mib)
        .with("OS pages with a live block, MiB", held / mib)
        .with("RSS / pages with a live block", grown / held.max(1.0))
}

/// Runs `burst` on every thread, then `meanwhile` while all threads are idle. Returns what each thread kept, and the result of `meanwhile`.
fn in_threads<T>(
    threads: usize,
    burst: impl Fn(u64) -> KeptBlocks + Copy + Send + 'static,
    meanwhile: impl FnOnce() -> T,
) -> (Vec<KeptBlocks>, T) {
    let (freed, leave) = (Arc::new(Barrier::new(threads + 1)), Arc::new(Barrier::new(threads + 1)));
    let workers: Vec<_> = (0..threads)
        .map(|seed| {
            let (freed, leave) = (Arc::clone(&freed), Arc::clone(&leave));
            thread::spawn(move || {
                let kept = burst(seed as u64);
                freed.wait();
                leave.wait();
                kept
            })
        })
        .collect();
    freed.wait();
    let seen = meanwhile();
    leave.wait();
    (workers.into_iter().filter_map(|worker| worker.join().ok()).collect(), seen)
}

/// Sleeps for `wait`. Returns the resident size before and after, in bytes.
fn watch(sampler: &mut Sampler, wait: Duration) -> (u64, u64) {
    let first = sampler.sample();
    sampler.sleep(wait, Duration::from_millis(50));
    (first, sampler.sample())
}

/// Allocates blocks of `burst` bytes together, and frees all but every `keep_every`th.
fn burst_and_free(seed: u64, burst: usize, keep_every: u64) -> KeptBlocks {
    let mut random = Random::new(seed + 100);
    let (mut bytes, mut ops) = (0, 0);
    let mut all = Vec::<Block>::with_capacity(burst / 512);
    while bytes < burst {
        let block = CHeap.allocate(random.within(16, 1039));
        block.stamp(ops);
        bytes += block.size();
        ops += 1;
        all.push(block);
    }
    let mut blocks = Vec::with_capacity(all.len() / keep_every as usize + 1);
    for (tag, block) in all.into_iter().enumerate() {
        if (tag as u64).is_multiple_of(keep_every) {
            blocks.push((tag as u64, block));
        } else {
            CHeap.verify(&block, tag as u64);
            CHeap.release(block);
        }
    }
    KeptBlocks { blocks, ops }
}
