//! How densely a replay's live blocks fill the memory that is resident for them: from samples that its first thread takes between two parts.
//!
//! Live bytes are those that the program asked for, so the figure means the same under every allocator. Resident is all that is no file's: also stacks and data of
//! the process, and what the allocator has in reserve when the replay begins.

use crate::workload::own_process::RssReader;

/// A repetition of the trace takes at most so many samples: one costs a few microseconds.
const SAMPLES_MOST: u64 = 64;

/// What the samples so far say.
pub(super) struct Density {
    reader: Option<RssReader>,
    sums: Sample,
    peak: Sample,
}

/// Bytes that were asked for and are live, and bytes that are resident for them.
#[derive(Clone, Copy, Default)]
struct Sample {
    live: u64,
    resident: u64,
}

impl Sample {
    fn share(self) -> f64 {
        self.live as f64 / self.resident.max(1) as f64
    }
}

impl Density {
    /// No sample yet.
    pub(super) fn begin() -> Self {
        Self { reader: RssReader::open(), sums: Sample::default(), peak: Sample::default() }
    }

    /// Takes a sample.
    pub(super) fn sample(&mut self, live: u64) {
        let resident = self.reader.as_ref().map_or(0, RssReader::anonymous_bytes);
        self.add(Sample { live, resident });
    }

    fn add(&mut self, sample: Sample) {
        self.sums = Sample { live: self.sums.live + sample.live, resident: self.sums.resident + sample.resident };
        if sample.resident > self.peak.resident {
            self.peak = sample;
        }
    }

    /// Live bytes by resident ones: over all samples, and in the one with the most that is resident.
    pub(super) fn mean_and_at_peak(&self) -> (f64, f64) {
        (self.sums.share(), self.peak.share())
    }
}

/// Records between two samples.
pub(super) fn step(n_records: u64) -> u64 {
    n_records.div_ceil(SAMPLES_MOST).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_all_samples_and_the_peak_is_the_one_with_the_most_resident_memory() {
        let mut density = Density::begin();
        for (live, resident) in [(10, 100), (90, 200), (50, 200), (100, 125)] {
            density.add(Sample { live, resident });
        }
        assert_eq!(density.mean_and_at_peak(), (250.0 / 625.0, 90.0 / 200.0));
    }

    #[test]
    fn memory_that_is_written_is_resident() {
        const BYTES: usize = 256 << 20;
        let mut density = Density::begin();
        let block = vec![1_u8; BYTES];
        density.sample(block.len() as u64);
        let (mean, at_peak) = density.mean_and_at_peak();
        assert!((0.5..=1.0).contains(&mean) && at_peak == mean, "{mean} {at_peak}");
    }

    #[test]
    fn a_repetition_takes_at_most_so_many_samples() {
        for n_records in [0, 1, 64, 65, 1_000_000] {
            assert!(n_records / step(n_records) <= SAMPLES_MOST, "{n_records}");
        }
    }
}
