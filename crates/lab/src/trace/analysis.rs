//! What can be said of a trace: sizes, lifetimes, threads, live bytes over time.

use crate::trace::timeline::{Block, Call, Timeline};
use serde::Serialize;
use std::collections::BTreeMap;

/// Points of the curve of live bytes.
const POINTS: u64 = 400;

/// The figures of a trace. Sizes are those that the program asked for. Bytes that were allocated are those of allocations, and those by which resizes made blocks
/// larger: these count for the thread that resized, and for the new size. So they add up over threads, and over sizes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Analysis {
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) resizes: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) peak_live_bytes: u64,
    pub(crate) peak_live_blocks: u64,
    pub(crate) peak_us: u64,
    pub(crate) live_at_end_bytes: u64,
    pub(crate) live_at_end_blocks: u64,
    /// Blocks freed by another thread than the one that allocated them.
    pub(crate) passed_blocks: u64,
    pub(crate) duration_us: u64,
    /// By the logarithm of the size: the class `n` has sizes above 2^(n−1) up to 2^n.
    pub(crate) sizes: BTreeMap<u32, SizeFigures>,
    /// By the decimal logarithm of the lifetime in microseconds; of freed blocks.
    pub(crate) lifetimes: BTreeMap<u32, u64>,
    pub(crate) threads: BTreeMap<u32, ThreadFigures>,
    /// Microseconds, and the most live bytes since the point before.
    pub(crate) live_bytes_over_time: Vec<(u64, u64)>,
}

/// Blocks of similar size.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SizeFigures {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    pub(crate) live_at_end: u64,
}

/// What a thread did.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ThreadFigures {
    pub(crate) first_us: u64,
    pub(crate) last_us: u64,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    pub(crate) frees: u64,
    /// Of these, blocks that another thread had allocated.
    pub(crate) frees_of_others: u64,
}

#[derive(Clone, Copy, Default)]
struct Born {
    size: u64,
    time_us: u64,
    thread: u32,
}

impl Analysis {
    /// The figures of `timeline`.
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let mut counted = Counted { blocks: vec![Born::default(); timeline.n_blocks as usize], ..Counted::default() };
        let duration_us = timeline.steps.iter().map(|step| step.time_us).max().unwrap_or(0);
        let step_us = duration_us / POINTS + 1;
        for step in &timeline.steps {
            let (thread, time_us) = (step.thread, step.time_us);
            counted.thread(thread, time_us);
            match step.call {
                Call::Begin | Call::End => {}
                Call::Allocate { block, size, .. } => counted.begin(block, Born { size, time_us, thread }),
                Call::Free { block } => counted.free(block, thread, time_us),
                Call::Resize { from, block, size, .. } => counted.resize(from, block, size, (thread, time_us)),
            }
            counted.sample(time_us / step_us * step_us);
            counted.note_peak(time_us);
        }
        let mut figures = counted.figures;
        figures.duration_us = duration_us;
        figures.live_at_end_bytes = counted.live_bytes;
        figures.live_at_end_blocks = counted.live_blocks;
        figures
    }
}

#[derive(Default)]
struct Counted {
    figures: Analysis,
    blocks: Vec<Born>,
    live_bytes: u64,
    live_blocks: u64,
}

impl Counted {
    fn thread(&mut self, thread: u32, time_us: u64) -> &mut ThreadFigures {
        let figures = self.figures.threads.entry(thread);
        let figures = figures.or_insert_with(|| ThreadFigures { first_us: time_us, ..ThreadFigures::default() });
        figures.last_us = figures.last_us.max(time_us);
        figures
    }

    fn size(&mut self, size: u64) -> &mut SizeFigures {
        self.figures.sizes.entry(size.max(1).next_power_of_two().ilog2()).or_default()
    }

    fn begin(&mut self, block: Block, born: Born) {
        self.figures.allocations += 1;
        self.figures.allocated_bytes += born.size;
        self.live_bytes += born.size;
        self.live_blocks += 1;
        let of_thread = self.thread(born.thread, born.time_us);
        of_thread.allocations += 1;
        of_thread.bytes += born.size;
        let of_size = self.size(born.size);
        of_size.allocations += 1;
        of_size.bytes += born.size;
        of_size.live_at_end += 1;
        self.blocks[block as usize] = born;
    }

    fn free(&mut self, block: Block, thread: u32, time_us: u64) {
        let born = self.blocks[block as usize];
        self.figures.frees += 1;
        self.live_bytes -= born.size;
        self.live_blocks -= 1;
        self.size(born.size).live_at_end -= 1;
        *self.figures.lifetimes.entry((time_us - born.time_us.min(time_us)).max(1).ilog10()).or_default() += 1;
        let is_passed = born.thread != thread;
        self.figures.passed_blocks += u64::from(is_passed);
        let of_thread = self.thread(thread, time_us);
        of_thread.frees += 1;
        of_thread.frees_of_others += u64::from(is_passed);
    }

    /// A resized block goes on living under another number.
    fn resize(&mut self, from: Block, block: Block, size: u64, (thread, time_us): (u32, u64)) {
        let born = self.blocks[from as usize];
        let growth = size.saturating_sub(born.size);
        self.figures.resizes += 1;
        self.figures.allocated_bytes += growth;
        self.live_bytes = self.live_bytes - born.size + size;
        self.thread(thread, time_us).bytes += growth;
        self.size(born.size).live_at_end -= 1;
        let of_size = self.size(size);
        of_size.bytes += growth;
        of_size.live_at_end += 1;
        self.blocks[block as usize] = Born { size, thread, ..born };
    }

    fn sample(&mut self, time_us: u64) {
        match self.figures.live_bytes_over_time.last_mut() {
            Some((last, bytes)) if *last >= time_us => *bytes = self.live_bytes.max(*bytes),
            _ => self.figures.live_bytes_over_time.push((time_us, self.live_bytes)),
        }
    }

    fn note_peak(&mut self, time_us: u64) {
        if self.live_bytes > self.figures.peak_live_bytes {
            self.figures.peak_live_bytes = self.live_bytes;
            self.figures.peak_live_blocks = self.live_blocks;
            self.figures.peak_us = time_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::timeline::Step;

    #[test]
    fn the_peak_is_the_most_that_was_live_at_once_and_a_resized_block_counts_once() {
        let step = |thread, time_us, call| Step { thread, time_us, call };
        let allocate = |block, size| Call::Allocate { block, size, align_log2: 0, is_zeroed: false };
        let steps = vec![
            step(0, 0, allocate(0, 100)),
            step(0, 10, allocate(1, 50)),
            step(1, 20, Call::Free { block: 0 }),
            step(0, 30, Call::Resize { from: 1, block: 2, size: 200, align_log2: 0 }),
            step(0, 2000, Call::Free { block: 2 }),
            step(0, 2001, allocate(3, 7)),
        ];
        let figures = Analysis::of(&Timeline { steps, n_blocks: 4, ..Timeline::default() });
        assert_eq!((figures.peak_live_bytes, figures.peak_live_blocks, figures.peak_us), (200, 1, 30));
        assert_eq!((figures.live_at_end_bytes, figures.live_at_end_blocks), (7, 1));
        assert_eq!((figures.allocations, figures.resizes, figures.frees, figures.passed_blocks), (3, 1, 2, 1));
        assert_eq!(figures.lifetimes, BTreeMap::from([(1, 1), (3, 1)]));
        assert_eq!(figures.threads[&1].frees_of_others, 1);
        assert_eq!(figures.sizes.values().map(|size| size.live_at_end).sum::<u64>(), 1);
        assert_eq!(figures.live_bytes_over_time.iter().map(|point| point.1).max(), Some(200));
    }

    #[test]
    fn growth_counts_for_the_thread_that_resizes_and_for_the_new_size() {
        let step = |thread, call| Step { thread, time_us: 0, call };
        let steps = vec![
            step(0, Call::Allocate { block: 0, size: 10, align_log2: 0, is_zeroed: false }),
            step(1, Call::Resize { from: 0, block: 1, size: 100_000, align_log2: 0 }),
            step(0, Call::Resize { from: 1, block: 2, size: 20, align_log2: 0 }),
        ];
        let figures = Analysis::of(&Timeline { steps, n_blocks: 3, ..Timeline::default() });
        assert_eq!(figures.allocated_bytes, 100_000);
        assert_eq!((figures.threads[&0].bytes, figures.threads[&1].bytes), (10, 99_990));
        let of_size = |log2: u32| {
            (figures.sizes[&log2].allocations, figures.sizes[&log2].bytes, figures.sizes[&log2].live_at_end)
        };
        assert_eq!([4, 5, 17].map(of_size), [(1, 10, 0), (0, 0, 1), (0, 99_990, 0)]);
    }
}
