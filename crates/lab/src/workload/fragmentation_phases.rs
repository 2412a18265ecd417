//! Constant live memory whose size mix changes: how much more than the live bytes does the process hold?
//!
//! Source: the phase-change experiments of Wilson et al., "Dynamic storage allocation: a survey and critical review" (1995), and Robson's
//! bounds. In each phase, random blocks are replaced by blocks of the phase's sizes until there are as many live bytes as before. The figure to
//! look at is the peak resident size over the live bytes.
//!
//! Does not show: speed; most of the time goes to page faults.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "fragmentation_phases",
    models: "a cache whose entries change in size from hour to hour",
    hides: "speed",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::scaled("live_mib", [64, 128, 512], "live memory in MiB"),
        Param::fixed("phases", 8, "size mixes, one after the other").at_least_one(),
        Param::fixed("keep_percent", 10, "percentage of old blocks that survive a phase"),
    ],
    run,
    run_on_null: None,
};

/// Smallest and largest size in bytes of each phase; used in turn.
const MIXES: [(usize, usize); 4] = [(16, 128), (256, 1024), (48, 400), (2048, 16_384)];

/// Bytes allocated or freed between two samples of the resident size: some hundred samples for the least live memory.
const SAMPLED_EVERY_BYTES: usize = 8 << 20;

/// The tag of a block. It is derived from the block, because a tag in the table would need memory, which would count as live.
fn tag_of(block: &Block) -> u64 {
    block.size() as u64
}

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let live_limit_bytes = params.size("live_mib").max(1) << 20;
    let phases = params.size("phases").max(1);
    let keep = params.size("keep_percent").min(100);
    let mut peak_rss_bytes = 0_u64;
    let (ops, checksum) = meter.section(|sampler| {
        let mut random = Random::new(5);
        let mut table = Vec::<Block>::with_capacity(live_limit_bytes / 72);
        let (mut live_bytes, mut ops, mut checksum) = (table.capacity() * size_of::<Block>(), 0_u64, 0_u64);
        for phase in 0..phases {
            let mut index = 0;
            while index < table.len() {
                if random.below(100) < keep {
                    index += 1;
                    continue;
                }
                let block = table.swap_remove(index);
                live_bytes -= block.size();
                sampler.sample_each(SAMPLED_EVERY_BYTES, block.size());
                checksum = checksum.wrapping_add(CHeap.verify(&block, tag_of(&block)));
                CHeap.release(block);
            }
            let (min, max) = MIXES[phase % MIXES.len()];
            while live_bytes < live_limit_bytes {
                let block = CHeap.allocate(random.within(min, max));
                block.touch(4096, phase as u8);
                block.stamp(tag_of(&block));
                live_bytes += block.size();
                sampler.sample_each(SAMPLED_EVERY_BYTES, block.size());
                table.push(block);
                ops += 1;
            }
            peak_rss_bytes = peak_rss_bytes.max(sampler.sample());
        }
        table.into_iter().for_each(|block| CHeap.release(block));
        (ops, checksum)
    });
    Outcome::new(ops, checksum).with("peak RSS / live", peak_rss_bytes as f64 / live_limit_bytes as f64)
}
