//! The resident size of a running command over time, every 50 ms: the largest of its processes tells whether memory comes back.

use crate::{plot, run};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two samples.
const STEP: Duration = Duration::from_millis(50);

/// Samples so far.
pub(crate) struct Timeline {
    began: Instant,
    next: Duration,
    samples: Vec<(u64, u64)>,
}

impl Timeline {
    /// Begins now.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), next: Duration::ZERO, samples: Vec::new() }
    }

    /// Takes a sample if one is due: the resident bytes of everything below the process `launcher`.
    pub(crate) fn observe(&mut self, launcher: u32) {
        let now = self.began.elapsed();
        if now >= self.next {
            self.next = now + STEP;
            let bytes = run::children(launcher).into_iter().map(tree_rss_bytes).sum();
            self.samples.push((now.as_millis() as u64, bytes));
        }
    }

    /// Writes the samples as CSV and a plot beside it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let mut text = String::from("milliseconds,rss_bytes\n");
        for (time, bytes) in &self.samples {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{time},{bytes}");
        }
        fs::write(file, text).with_context(|| format!("timeline {} cannot be written", file.display()))?;
        let series = vec![(
            "resident".to_owned(),
            self.samples.iter().map(|&(t, b)| (t as f64 / 1e3, b as f64 / 1048576.0)).collect(),
        )];
        let svg = plot::lines("Resident memory", "seconds", "MiB", &series, plot::Theme::Light)?;
        let mut plot_file = file.as_os_str().to_owned();
        plot_file.push(".svg");
        fs::write(&plot_file, svg)
            .with_context(|| format!("plot {} cannot be written", Path::new(&plot_file).display()))
    }
}

fn tree_rss_bytes(pid: u32) -> u64 {
    let own = fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = own.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    let below: u64 = run::children(pid).into_iter().map(tree_rss_bytes).sum();
    pages * crate::workload::process_view::os_page_bytes() + below
}
