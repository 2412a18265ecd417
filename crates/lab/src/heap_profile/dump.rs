//! Reads a dump of the library's sampling profiler.
//!
//! Two spellings of the same content are read: that of gperftools, which `pprof` opens, and that of jemalloc.
//!
//! ```text
//!  heap profile: 3: 4096 [ 5: 6144 ] @ heap_v2/524288       heap_v2/524288
//!  3: 4096 [ 5: 6144 ] @ 0x55d0 0x55e4                        t*: 3: 4096 [5: 6144]
//!                                                           @ 0x55d0 0x55e4
//!                                                             t*: 3: 4096 [5: 6144]
//!  MAPPED_LIBRARIES:                                        MAPPED_LIBRARIES:
//!  55d0-55f0 r-xp 00000000 fe:01 1234   /usr/bin/x          55d0-55f0 r-xp …
//! ```
//!
//! Figures are live blocks and bytes, and in brackets those since sampling began. Lines that begin with `#` are remarks: `# 3 samples were lost` is
//! the one that is read.

use crate::heap_profile::sampled::{HeapProfile, Sample};
use crate::heap_profile::usage::{Amount, Usage};
use crate::symbols::mapping::Mapping;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The name of the format, and of the version that is read.
const FORMAT: &str = "heap_v2/";

/// The line before the mappings.
const MAPPINGS: &str = "MAPPED_LIBRARIES:";

/// How a dump of gperftools begins.
const GPERFTOOLS: &str = "heap profile:";

/// Reads a file.
///
/// # Errors
/// It cannot be read, or is not a whole dump of this version; the message names the file.
pub(crate) fn read(path: &Path) -> Result<HeapProfile> {
    let shown = path.display();
    let bytes = fs::read(path).with_context(|| format!("profile {shown} cannot be read; check the path"))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bail!("{shown} is compressed, as pprof's own files are; this command reads the dumps that the library writes");
    }
    // A path among the mappings may be any bytes.
    parse(&String::from_utf8_lossy(&bytes)).with_context(|| format!("profile {shown}"))
}

/// Reads the text of a dump.
///
/// # Errors
/// It is not a whole dump of this version.
pub(crate) fn parse(text: &str) -> Result<HeapProfile> {
    let first = text.lines().next().unwrap_or_default();
    if first.is_empty() {
        bail!("it is empty; the process may have been killed before it could write");
    }
    let interval = interval(first)?;
    let Some((samples, mappings)) = text.split_once(&format!("\n{MAPPINGS}\n")) else {
        bail!(
            "it is cut short: the list of mapped libraries at its end is missing; was the disk full, or the process killed?"
        );
    };
    let is_gperftools = first.starts_with(GPERFTOOLS);
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let lines = samples.lines().enumerate().skip(1).filter(|(_, line)| is_content(line));
    let mut profile = HeapProfile {
        interval,
        samples: Vec::new(),
        lost: samples.lines().find_map(parse_lost).unwrap_or(0),
        mappings: Mapping::parse_all(mappings),
    };
    let mut stack = None;
    for (index, line) in lines {
        let damaged = || format!("line {} is damaged: '{}'", index + 1, line.chars().take(80).collect::<String>());
        let (figures, addresses) = if is_gperftools {
            let (figures, addresses) = line.split_once('@').with_context(damaged)?;
            (Some(figures), Some(addresses))
        } else if let Some(addresses) = line.trim_start().strip_prefix('@') {
            (None, Some(addresses))
        } else {
            // The figures of all threads together are marked by a star; those of single threads are part of them.
            (line.trim_start().strip_prefix("t*:"), None)
        };
        if let Some(addresses) = addresses {
            stack = Some(parse_stack(addresses).with_context(damaged)?);
        }
        if let Some(figures) = figures {
            let usage = parse_usage(figures).with_context(damaged)?;
            // Before the first stack are the sums.
            if let Some(stack) = stack.take() {
                let usage = Usage { live: unsampled(usage.live, interval), total: unsampled(usage.total, interval) };
                profile.samples.push(Sample { stack, usage });
            }
        } else if addresses.is_none() && !line.trim_start().starts_with('t') {
            bail!("{}", damaged());
        }
    }
    Ok(profile)
}

/// The interval that the first line states.
fn interval(first: &str) -> Result<u64> {
    let format =
        if first.starts_with(GPERFTOOLS) { first.rsplit('@').next().unwrap_or_default().trim() } else { first };
    let Some(interval) = format.strip_prefix(FORMAT) else {
        if format.starts_with("heap") {
            bail!("it is of another version, '{format}'; this command reads {FORMAT}INTERVAL");
        }
        bail!("it is not a heap profile: it begins with '{}'", first.chars().take(40).collect::<String>());
    };
    interval.trim().parse().with_context(|| format!("it states no sampling interval: '{format}'"))
}

/// `# N samples were lost`.
fn parse_lost(line: &str) -> Option<u64> {
    line.strip_prefix("# ")?.strip_suffix(" samples were lost")?.parse().ok()
}

/// `N: BYTES [ N: BYTES ]`.
fn parse_usage(text: &str) -> Option<Usage> {
    let (live, total) = text.trim().strip_suffix(']')?.split_once('[')?;
    Some(Usage { live: parse_amount(live)?, total: parse_amount(total)? })
}

fn parse_amount(text: &str) -> Option<Amount> {
    let (blocks, bytes) = text.split_once(':')?;
    Some(Amount { blocks: blocks.trim().parse().ok()?, bytes: bytes.trim().parse().ok()? })
}

fn parse_stack(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace().map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect()
}

/// The allocations that samples stand for. A block of `b` bytes is sampled with a probability of `1 - exp(-b / interval)`.
fn unsampled(sampled: Amount, interval: u64) -> Amount {
    if sampled.blocks == 0 || sampled.bytes == 0 {
        return Amount::default();
    }
    if interval <= 1 {
        return sampled;
    }
    let mean = sampled.bytes as f64 / sampled.blocks as f64;
    let scale = -1.0 / (-mean / interval as f64).exp_m1();
    let scaled = |number: i64| (number as f64 * scale) as i64;
    Amount { blocks: scaled(sampled.blocks), bytes: scaled(sampled.bytes) }
}

#[cfg(test)]
mod tests;
