//! A thousand threads that each had a burst and now sleep: how much memory do their caches hold?
//!
//! Source: freestone's own goal (1000 threads, bursts of 4 MiB, at most 64 MiB resident after 5 s). Each thread allocates its burst, frees it,
//! and waits. Only four threads have their burst at a time, so that the peak shows what is kept, not all bursts at once.
//!
//! Every thread touches about 10 KiB of stack under any allocator; `burst_kib=0` shows how much of the figure that is.
//!
//! Does not show: speed.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "idle_threads",
    models: "a thread pool sized for the busiest hour, when it is idle",
    hides: "speed; 10 KiB of each thread are its stack",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::scaled("threads", [200, 1000, 1000], "threads").at_least_one(),
        Param::fixed("burst_kib", 4096, "burst of each thread in KiB"),
        Param::scaled("wait_ms", [1500, 5000, 5000], "time asleep after the bursts in ms"),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (threads, burst_bytes) = (params.size("threads").max(1), params.size("burst_kib") << 10);
    let wait = Duration::from_millis(params.get("wait_ms"));
    let (ops, checksum, rss_before_bytes, rss_after_bytes) = meter.section(|sampler| {
        let rss_before_bytes = sampler.sample();
        let turns: Arc<[Mutex<()>; 4]> = Arc::default();
        let (done, leave) = (Arc::new(Barrier::new(threads + 1)), Arc::new(Barrier::new(threads + 1)));
        let workers: Vec<_> = (0..threads)
            .map(|index| {
                let (turns, done, leave) = (Arc::clone(&turns), Arc::clone(&done), Arc::clone(&leave));
                thread::spawn(move || {
                    let result = {
                        let _turn = turns[index % turns.len()].lock();
                        have_burst(index as u64, burst_bytes)
                    };
                    done.wait();
                    leave.wait();
                    result
                })
            })
            .collect();
        done.wait();
        sampler.sleep(wait, Duration::from_millis(50));
        let rss_after_bytes = sampler.sample();
        leave.wait();
        let (ops, checksum) = workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .fold((0, 0_u64), |sum, one: (u64, u64)| (sum.0 + one.0, sum.1.wrapping_add(one.1)));
        (ops, checksum, rss_before_bytes, rss_after_bytes)
    });
    Outcome::new(ops, checksum).with(
        "RSS kept after the wait, MiB",
        rss_after_bytes.saturating_sub(rss_before_bytes) as f64 / f64::from(1 << 20),
    )
}

/// Allocates blocks of `burst_bytes` together and frees them; returns their number and the checksum.
fn have_burst(seed: u64, burst_bytes: usize) -> (u64, u64) {
    let mut random = Random::new(seed + 31);
    let (mut bytes, mut blocks) = (0, Vec::<Block>::new());
    while bytes < burst_bytes {
        let block = CHeap.allocate(random.within(16, 1039));
        block.stamp(blocks.len() as u64);
        bytes += block.size();
        blocks.push(block);
    }
    let ops = blocks.len() as u64;
    let mut checksum = 0_u64;
    for (tag, block) in blocks.into_iter().enumerate() {
        checksum = checksum.wrapping_add(CHeap.verify(&block, tag as u64));
        CHeap.release(block);
    }
    (ops, checksum)
}
