//! A pipeline that runs for a long time: a thread that only frees must not keep what it frees.
//!
//! Source: the "blowup" of Berger et al. (Hoard, ASPLOS 2000) and reports of it against many allocators: the consumer's cache fills with blocks
//! that it never uses, while the producer asks the system for more. The live bytes are counted exactly, at every message. The figure is the
//! peak resident size over the peak of live bytes. `ops` stands for time: 10 minutes at 100 000 blocks per second are 60 million.
//!
//! Does not show: speed (`producer_consumer` does).

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "free_only_consumer",
    models: "a pipeline whose last stage only frees, for hours",
    hides: "speed",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::scaled("ops", [2_000_000, 6_000_000, 60_000_000], "blocks in total").at_least_one(),
        Param::fixed("batch", 1000, "blocks per message"),
        Param::fixed("ahead", 64, "largest number of messages in flight"),
        Param::fixed("max", 1039, "largest size in bytes"),
    ],
    run,
    run_on_null: None,
};

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (batch, max) = (params.get("batch").max(1), params.size("max").max(16));
    let messages = params.get("ops").div_ceil(batch);
    let live_bytes = Arc::new(AtomicU64::new(0));
    let (checksum, peak_live_bytes, peak_rss_bytes) = meter.section(|sampler| {
        let rss_before_bytes = sampler.sample();
        let (out, inbox) = sync_channel(params.size("ahead").max(1));
        let for_consumer = Arc::clone(&live_bytes);
        let consumer = thread::spawn(move || consume(&inbox, &for_consumer));
        let (peak_live_bytes, peak_rss_bytes) = produce(messages, batch, max, &out, &live_bytes, || sampler.sample());
        drop(out);
        (consumer.join().unwrap_or(0), peak_live_bytes, peak_rss_bytes.saturating_sub(rss_before_bytes))
    });
    let mib = f64::from(1 << 20);
    Outcome::new(messages * batch, checksum)
        .with("peak live, MiB", peak_live_bytes as f64 / mib)
        .with("peak RSS / peak live", peak_rss_bytes as f64 / peak_live_bytes.max(1) as f64)
}

/// Allocates and sends all blocks. Returns the peaks of live bytes and of the resident size.
fn produce(
    messages: u64,
    batch: u64,
    max: usize,
    out: &SyncSender<Vec<Block>>,
    live_bytes: &AtomicU64,
    mut rss: impl FnMut() -> u64,
) -> (u64, u64) {
    let mut random = Random::new(17);
    let (mut peak_live_bytes, mut peak_rss_bytes) = (0, 0);
    for message in 0..messages {
        let blocks: Vec<Block> = (0..batch)
            .map(|tag| {
                let block = CHeap.allocate(random.within(16, max));
                block.stamp(tag);
                block
            })
            .collect();
        let bytes: u64 = blocks.iter().map(|block| block.size() as u64).sum();
        // Relaxed: the count is a statistic, and the channel orders the accesses to the blocks.
        peak_live_bytes = peak_live_bytes.max(live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes);
        if message % 16 == 0 {
            peak_rss_bytes = peak_rss_bytes.max(rss());
        }
        if out.send(blocks).is_err() {
            break;
        }
    }
    (peak_live_bytes, peak_rss_bytes)
}

/// Verifies and frees everything that arrives; returns the checksum.
fn consume(inbox: &Receiver<Vec<Block>>, live_bytes: &AtomicU64) -> u64 {
    let mut checksum = 0_u64;
    for blocks in inbox {
        let bytes: u64 = blocks.iter().map(|block| block.size() as u64).sum();
        for (tag, block) in blocks.into_iter().enumerate() {
            checksum = checksum.wrapping_add(CHeap.verify(&block, tag as u64));
            CHeap.release(block);
        }
        live_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
    checksum
}
