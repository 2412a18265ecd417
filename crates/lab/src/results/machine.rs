//! The machine that results were measured on: what a reader needs to know to believe them or to repeat them.

use serde::{Deserialize, Serialize};
use std::fs;

/// The properties of a machine that affect results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Processor model.
    pub(crate) cpu: String,
    /// Number of processors that this process may use.
    pub(crate) processors: usize,
    /// Physical memory in bytes.
    pub(crate) memory_bytes: u64,
    /// Kernel name and release.
    pub(crate) kernel: String,
    /// Operating system.
    pub(crate) system: String,
    /// The C library.
    pub(crate) libc: String,
    /// Setting of transparent huge pages.
    pub(crate) transparent_huge_pages: String,
    /// Frequency governor, if the kernel shows one.
    pub(crate) governor: Option<String>,
    /// Load average over the last minute when the measurement began.
    pub(crate) load: f64,
}

impl Machine {
    /// This machine in its present state.
    pub(crate) fn here() -> Self {
        Self {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: field("/proc/meminfo", "MemTotal")
                .and_then(|text| text.trim_end_matches("kB").trim().parse::<u64>().ok())
                .map_or(0, |kib| kib * 1024),
            kernel: format!("Linux {}", line("/proc/sys/kernel/osrelease").unwrap_or_default()),
            system: os_name(),
            libc: format!("glibc {}", crate::workload::loaded_allocator::glibc_version()),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map_or_else(|| "unknown".into(), |text| selected(&text)),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            load: line("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0.0),
        }
    }
}

fn line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

fn field(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The word in brackets: `madvise` of `always [madvise] never`.
fn selected(text: &str) -> String {
    text.split(['[', ']']).nth(1).unwrap_or(text).to_owned()
}

fn os_name() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "Linux".into(), |name| name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_setting_is_the_word_in_brackets() {
        assert_eq!(selected("always [madvise] never"), "madvise");
        assert_eq!(selected("always"), "always");
    }

    #[test]
    fn this_machine_has_a_processor_memory_and_a_kernel() {
        let machine = Machine::here();
        assert!(machine.processors > 0 && machine.memory_bytes > 1 << 20, "{machine:?}");
        assert!(machine.kernel.len() > "Linux ".len() && machine.libc.starts_with("glibc 2."), "{machine:?}");
    }
}
