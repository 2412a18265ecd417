//! The examination of a stopped process: from its memory to the findings.

use crate::heap_profile::named::{Stack, named_stack};
use crate::leaks::findings::Findings;
use crate::leaks::heap::Heap;
use crate::leaks::heap_map::HeapMap;
use crate::leaks::memory::Memory;
use crate::leaks::samples::Samples;
use crate::leaks::stopped::StoppedProcess;
use crate::leaks::{marking, roots};
use crate::process::proc_file;
use crate::symbols::mapping::Mapping;
use crate::symbols::symbolizer::Symbolizer;
use anyhow::{Result, bail};
use std::collections::HashMap;

/// Finds the leaks of a process.
///
/// # Errors
/// There is no heap of Freestone in the process, or its memory cannot be read.
pub(crate) fn examine(process: &StoppedProcess) -> Result<Findings> {
    let Some(first) = process.threads.first() else { bail!("process {} has no thread left", process.pid) };
    // The first thread of a process may have ended before the others, and its files in /proc are empty then.
    let memory = Memory::of(first.number);
    let maps = proc_file::read(format!("/proc/{}/maps", first.number))?;
    let mappings = Mapping::parse_all(&maps);
    let maps = HeapMap::find_all(&memory, &mappings)?;
    let mut heaps = maps.iter().map(|map| Heap::read(&memory, map)).collect::<Result<Vec<Heap>>>()?;
    if heaps.is_empty() {
        bail!("the library is not in it");
    }
    let samples: Vec<Samples> = maps.iter().map(|map| Samples::read(&memory, map)).collect();
    let excluded: Vec<(u64, u64)> =
        heaps.iter().map(Heap::range).chain(samples.iter().map(|samples| samples.range)).collect();
    let roots = roots::find(process, &mappings, &excluded);
    for heap in &mut heaps {
        heap.prepare_marks();
    }
    let verdicts = marking::mark(&memory, &mut heaps, &roots);
    let mut symbols = Symbolizer::new(mappings);
    let mut named = HashMap::<(usize, u64), Stack>::new();
    Ok(Findings::new(process.pid, &heaps, &verdicts, |block| {
        let found = samples.iter().enumerate().find_map(|(heap, samples)| Some((heap, samples.stack(block)?)));
        let Some((heap, (number, addresses))) = found else { return Stack::new() };
        named.entry((heap, number)).or_insert_with(|| named_stack(&mut symbols, addresses)).clone()
    }))
}
