//! Constant live memory under a limit while the sizes shift: does the process survive?
//!
//! Source: freestone's own goal (400 MiB live in 512 MiB while the mix shifts). The workload sets RLIMIT_AS on itself, above what is mapped
//! already. An allocator that keeps the memory of the old mix reaches the limit and is refused, and so may one that reserves address space far
//! ahead; for such an allocator, use `limit_mib=0` and the figure of the peak resident size. A phase is a number of replaced bytes, not a
//! time, so that runs repeat.
//!
//! As in a cache, the oldest entry is evicted. With `random=1` any entry may be. What remains of a mix is then scattered over all OS pages that
//! it ever had, so no allocator that leaves blocks in place can stay near the live bytes.
//!
//! Does not show: limits by cgroup (run the same workload inside one, with `limit_mib=0`).

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::meter::Meter;
use crate::workload::own_process;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use std::collections::VecDeque;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "shifting_sizes",
    models: "a cache in a container whose entries change in size",
    hides: "limits by cgroup, unless it runs in one",
    shows: PrimaryFigure::Memory,
    params: &[
        Param::scaled("live_mib", [100, 400, 400], "live memory in MiB"),
        Param::scaled(
            "limit_mib",
            [160, 512, 512],
            "address space in MiB beyond what is mapped at the start; 0: no limit",
        ),
        Param::fixed("phases", 6, "size mixes, one after the other").at_least_one(),
        Param::fixed("random", 0, "1: a random entry is evicted, not the oldest"),
    ],
    run,
    run_on_null: None,
};

/// Smallest and largest size in bytes of each phase; used in turn.
const MIXES: [(usize, usize); 6] =
    [(64, 256), (1024, 4096), (100, 400), (16_384, 65_536), (256, 1024), (131_072, 1_048_576)];

/// The tag of a block. It is derived from the block, because a tag in the table would need memory, which would count as live.
fn tag_of(block: &Block) -> u64 {
    block.size() as u64
}

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let target_bytes = params.size("live_mib").max(1) << 20;
    if params.get("limit_mib") != 0 {
        own_process::limit_address_space(params.get("limit_mib") << 20);
    }
    let (ops, checksum, peak_rss_bytes) = meter.section(|sampler| {
        let mut random = Random::new(23);
        let any = params.get("random") != 0;
        let mut table = VecDeque::<Block>::with_capacity(target_bytes / 160);
        let (mut live_bytes, mut ops, mut checksum, mut peak_rss_bytes) =
            (table.capacity() * size_of::<Block>(), 0_u64, 0_u64, 0);
        for phase in 0..params.size("phases") {
            let (min, max) = MIXES[phase % MIXES.len()];
            let mut replaced_bytes = 0;
            while replaced_bytes < target_bytes {
                while live_bytes + max > target_bytes {
                    let victim = if any { random.below(table.len().max(1)) } else { 0 };
                    let Some(block) = table.swap_remove_front(victim) else { break };
                    live_bytes -= block.size();
                    checksum = checksum.wrapping_add(CHeap.verify(&block, tag_of(&block)));
                    CHeap.release(block);
                }
                let block = CHeap.allocate(random.within(min, max));
                block.touch(4096, phase as u8);
                block.stamp(tag_of(&block));
                live_bytes += block.size();
                replaced_bytes += block.size();
                table.push_back(block);
                ops += 1;
            }
            peak_rss_bytes = peak_rss_bytes.max(sampler.sample());
        }
        table.into_iter().for_each(|block| CHeap.release(block));
        (ops, checksum, peak_rss_bytes)
    });
    Outcome::new(ops, checksum)
        .with("peak RSS / live", peak_rss_bytes as f64 / target_bytes as f64)
        .with("peak RSS, MiB", peak_rss_bytes as f64 / f64::from(1 << 20))
}
