//! Constant live memory under a limit, while the sizes shift: does the process survive?
//!
//! Source: freestone's own bar (400 MiB live in 512 MiB, mix shifting every 10 s, must finish). The limit is RLIMIT_AS set by the workload
//! on itself, above what is mapped already; an allocator that keeps the old mix's memory runs into it and is refused. A phase is a number of
//! replacements, not a time, so that runs repeat.
//!
//! Does not show: limits by cgroup (run the same workload inside one, with `limit_mib=0`).

use super::heap::{Block, CHeap, Heap};
use super::meter::Meter;
use super::params::{Param, Params};
use super::process_view;
use super::random::Random;
use super::{Outcome, Shows, Workload};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "shifting_sizes",
    models: "a cache in a container whose entries change in size",
    hides: "limits by cgroup, unless it runs in one",
    shows: Shows::Memory,
    params: &[
        Param::scaled("live_mib", [100, 400, 400], "live memory in MiB"),
        Param::fixed("limit_mib", 0, "address space in MiB beyond what the start needs; 0: none"),
        Param::fixed("phases", 6, "size mixes, one after the other"),
    ],
    run,
    hollow: None,
};

/// Smallest and largest size of each phase's mix, in bytes; used in turn.
const MIXES: [(usize, usize); 6] =
    [(64, 256), (1024, 4096), (100, 400), (16_384, 65_536), (256, 1024), (131_072, 1_048_576)];

/// A stamp that needs no room in the table, which counts as live memory too.
fn tag_of(block: &Block) -> u64 {
    block.size() as u64
}

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let target = params.size("live_mib").max(1) << 20;
    if params.get("limit_mib") != 0 {
        process_view::limit_address_space(params.get("limit_mib") << 20);
    }
    let (ops, checksum, peak) = meter.section(|sampler| {
        let mut random = Random::new(23);
        let mut table = Vec::<Block>::with_capacity(target / 160);
        let (mut live, mut ops, mut checksum, mut peak) = (table.capacity() * size_of::<Block>(), 0_u64, 0_u64, 0);
        for phase in 0..params.size("phases") {
            let (min, max) = MIXES[phase % MIXES.len()];
            let mut replaced = 0;
            while replaced < target {
                while live + max > target && !table.is_empty() {
                    let block = table.swap_remove(random.below(table.len()));
                    live -= block.size();
                    checksum = checksum.wrapping_add(CHeap.verify(&block, tag_of(&block)));
                    CHeap.release(block);
                }
                let block = CHeap.allocate(random.within(min, max));
                block.touch(4096, phase as u8);
                block.stamp(tag_of(&block));
                live += block.size();
                replaced += block.size();
                table.push(block);
                ops += 1;
            }
            peak = peak.max(sampler.sample());
        }
        table.into_iter().for_each(|block| CHeap.release(block));
        (ops, checksum, peak)
    });
    Outcome::new(ops, checksum).with("peak RSS / live", peak as f64 / target as f64)
}
