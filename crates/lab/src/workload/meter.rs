//! Measures one section of a workload: wall-clock time, processor time, page faults, peak memory, hardware counters.
//!
//! Invariants: a run has exactly one section; between the two readings of the clock only the section runs, with the samples that it takes.
//!
//! The section runs inside [`freestone_measured_section`], a function that callgrind can be told to count alone.

use crate::workload::counters::HardwareCounters;
use crate::workload::own_process::{self, RssReader, Usage};
use crate::workload::workload_record::Counters;
use std::time::{Duration, Instant};

/// The measurements of one section.
#[derive(Clone)]
pub(crate) struct SectionFigures {
    /// Wall-clock time in nanoseconds, without the time that the workload slept on purpose.
    pub(crate) wall_ns: u64,
    /// Processor time and page faults.
    pub(crate) usage: Usage,
    /// Largest resident size.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Resident size at the beginning.
    pub(crate) start_rss_bytes: Option<u64>,
    /// Hardware counters.
    pub(crate) counters: Counters,
}

/// Runs the section and keeps its measurements.
#[derive(Default)]
pub(crate) struct Meter {
    measured: Option<SectionFigures>,
    counts_children: bool,
    rss_series: Vec<(u64, u64)>,
}

impl Meter {
    /// From now on time and page faults include those of children, and the peak is that of the largest process.
    pub(crate) fn count_children(&mut self) {
        self.counts_children = true;
    }

    /// Runs and measures the section.
    pub(crate) fn section<T>(&mut self, section: impl FnOnce(&mut Sampler) -> T) -> T {
        let mut counters = HardwareCounters::open();
        let mut sampler = Sampler::new();
        own_process::reset_peak_rss();
        let start_rss_bytes = sampler.reader.as_ref().map(RssReader::bytes);
        let before = self.usage();
        if let Ok(counters) = &mut counters {
            counters.start();
        }
        sampler.began = Instant::now();
        let result = freestone_measured_section(section, &mut sampler);
        let wall = sampler.began.elapsed().saturating_sub(sampler.slept);
        let counters = match &mut counters {
            Ok(counters) => counters.stop(),
            Err(reason) => Counters::Absent(reason.clone()),
        };
        let usage = self.usage().since(before);
        self.rss_series = sampler.series;
        self.measured = Some(SectionFigures {
            wall_ns: wall.as_nanos() as u64,
            usage,
            peak_rss_bytes: own_process::peak_rss_bytes()
                .max(self.counts_children.then(own_process::largest_child_bytes)),
            start_rss_bytes,
            counters,
        });
        result
    }

    /// The measurements, and (milliseconds, resident bytes) of each sample; `None` if the workload ran no section.
    pub(crate) fn finish(self) -> Option<(SectionFigures, Vec<(u64, u64)>)> {
        Some((self.measured?, self.rss_series))
    }

    fn usage(&self) -> Usage {
        let own = Usage::of_self();
        if self.counts_children { own.plus(Usage::of_children()) } else { own }
    }
}

/// Samples the resident size inside a section, without allocating.
pub(crate) struct Sampler {
    reader: Option<RssReader>,
    began: Instant,
    slept: Duration,
    series: Vec<(u64, u64)>,
    /// How far the workload is since the last sample that [`sample_each`](Self::sample_each) took.
    progress: usize,
}

impl Sampler {
    fn new() -> Self {
        Self {
            reader: RssReader::open(),
            began: Instant::now(),
            slept: Duration::ZERO,
            series: Vec::with_capacity(4096),
            progress: 0,
        }
    }

    /// Records the current resident size in bytes and returns it; 0 without /proc.
    pub(crate) fn sample(&mut self) -> u64 {
        let bytes = self.reader.as_ref().map_or(0, RssReader::bytes);
        if self.series.len() < self.series.capacity() {
            self.series.push((self.began.elapsed().as_millis() as u64, bytes));
        }
        bytes
    }

    /// Takes a sample once the workload is `step` further than at the last one; it is `more` further than at the last call.
    #[inline]
    pub(crate) fn sample_each(&mut self, step: usize, more: usize) {
        self.progress += more;
        if self.progress >= step {
            self.progress = 0;
            self.sample();
        }
    }

    /// Sleeps for `duration` and takes a sample every `step`; the time does not count as the section's.
    pub(crate) fn sleep(&mut self, duration: Duration, step: Duration) {
        let began = Instant::now();
        while began.elapsed() < duration {
            self.sample();
            std::thread::sleep(step.min(duration.saturating_sub(began.elapsed())));
        }
        self.slept += began.elapsed();
        self.sample();
    }
}

/// Runs the section under a name that callgrind can be told to count alone.
#[inline(never)]
fn freestone_measured_section<T>(section: impl FnOnce(&mut Sampler) -> T, sampler: &mut Sampler) -> T {
    section(sampler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_measured_with_its_samples_and_without_the_time_it_slept() {
        let mut meter = Meter::default();
        let section = |sampler: &mut Sampler| {
            sampler.sample();
            sampler.sleep(Duration::from_millis(300), Duration::from_millis(100));
            7
        };
        let began = Instant::now();
        assert_eq!(meter.section(section), 7);
        let elapsed = began.elapsed();
        let (measured, series) = meter.finish().unwrap();
        assert!(measured.wall_ns <= (elapsed - Duration::from_millis(300)).as_nanos() as u64, "the sleep is left out");
        assert!(series.len() >= 3 && series.is_sorted_by_key(|&(ms, _)| ms), "{series:?}");
        assert!(measured.peak_rss_bytes.unwrap() > 0);
    }

    #[test]
    fn a_sample_is_taken_at_each_step_that_the_workload_reaches() {
        let mut meter = Meter::default();
        meter.section(|sampler| {
            let before = sampler.series.len();
            [40, 40, 40, 300, 99].iter().for_each(|&more| sampler.sample_each(100, more));
            assert_eq!(sampler.series.len() - before, 2, "at 120 and at 300 more");
        });
    }

    #[test]
    fn without_a_section_there_is_nothing() {
        assert!(Meter::default().finish().is_none());
    }
}
