//! One thread allocates, another frees: every free is remote.
//!
//! Source: the pattern of xmalloc-test (Lever and Boreham, "malloc() performance in a multithreaded Linux environment", 2000). Threads work in
//! pairs. Blocks travel in batches through a bounded channel, and empty batches travel back, so that the channel itself allocates nothing once
//! it has started. An operation is one block that is allocated, stamped, verified and freed.
//!
//! Does not show: threads that free their own blocks.

use crate::workload::cpp_heap::{self, CppHeap};
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::null_allocator::NullAllocator;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "producer_consumer",
    models: "a pipeline: what one thread allocates, another frees",
    hides: "threads that free their own blocks",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [2_000_000, 10_000_000, 60_000_000], "blocks in total").at_least_one(),
        Param::fixed("pairs", 1, "pairs of producer and consumer").at_least_one(),
        Param::fixed("batch", 256, "blocks per message"),
        Param::fixed("ahead", 16, "largest number of messages in flight"),
        Param::fixed("min", 16, "smallest size in bytes"),
        Param::fixed("max", 512, "largest size in bytes"),
        cpp_heap::PARAM,
    ],
    run: |params, meter| match CppHeap::asked_for(params) {
        Some(heap) => run(params, meter, heap),
        None => run(params, meter, CHeap),
    },
    run_on_null: Some(|params, meter| run(params, meter, NullAllocator::new(params.size("max")))),
};

/// What each producer does.
struct Plan {
    messages: u64,
    batch: u64,
    min: usize,
    max: usize,
}

fn run<H: Heap + Clone + Send + 'static>(params: &Params, meter: &mut Meter, heap: H) -> Outcome {
    let (pairs, batch) = (params.get("pairs").max(1), params.get("batch").max(1));
    let messages = params.get("ops").div_ceil(pairs * batch);
    let ahead = params.size("ahead").max(1);
    let checksum = meter.section(|_| {
        let consumers: Vec<_> = (0..pairs)
            .map(|pair| {
                let plan =
                    Plan { messages, batch, min: params.size("min"), max: params.size("max").max(params.size("min")) };
                let (to_consumer, from_producer) = sync_channel(ahead);
                let (to_producer, from_consumer) = sync_channel(ahead + 2);
                let (producer_heap, consumer_heap) = (heap.clone(), heap.clone());
                thread::spawn(move || produce(&producer_heap, &plan, pair, &to_consumer, &from_consumer));
                thread::spawn(move || consume(&consumer_heap, &from_producer, &to_producer))
            })
            .collect();
        consumers.into_iter().map(|consumer| consumer.join().unwrap_or(0)).fold(0, u64::wrapping_add)
    });
    Outcome::new(messages * batch * pairs, checksum)
}

type Batch = Vec<Block>;

fn produce<H: Heap>(heap: &H, plan: &Plan, seed: u64, out: &SyncSender<Batch>, empties: &Receiver<Batch>) {
    let mut random = Random::new(seed + 7);
    for _ in 0..plan.messages {
        let mut batch = empties.try_recv().unwrap_or_else(|_| Vec::with_capacity(plan.batch as usize));
        for tag in 0..plan.batch {
            let block = heap.allocate(random.within(plan.min, plan.max));
            block.stamp(tag);
            batch.push(block);
        }
        if out.send(batch).is_err() {
            return;
        }
    }
}

fn consume<H: Heap>(heap: &H, inbox: &Receiver<Batch>, empties: &SyncSender<Batch>) -> u64 {
    let mut checksum = 0_u64;
    while let Ok(mut batch) = inbox.recv() {
        for (tag, block) in batch.drain(..).enumerate() {
            checksum = checksum.wrapping_add(heap.verify(&block, tag as u64));
            heap.release(block);
        }
        // If the producer has ended, or has enough empty batches, this one is dropped.
        let _ = empties.try_send(batch);
    }
    checksum
}
