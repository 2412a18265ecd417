//! The live blocks of a heap, read from its records.
//!
//! ```text
//!  address ─▶ page ─▶ run (a span of small blocks, or a large block) ─▶ block: its number, and whether it is live
//! ```

use crate::leaks::heap_map::HeapMap;
use crate::leaks::memory::{Memory, words_in};
use anyhow::{Context, Result, bail};
use freestone::door::is_free_by_trailer;

/// Records that are read at once.
const RECORDS_AT_ONCE: u64 = 4096;

/// More pages than a span of small blocks has in any version.
const MOST_SPAN_PAGES: u64 = 256;

/// A page of no run.
const NO_RUN: u32 = u32::MAX;

/// A span of small blocks, or a large block.
struct Run {
    start: u64,
    block_bytes: u64,
    n_blocks: u64,
    /// The number of its first block among all of the heap.
    first_block: u64,
}

/// A set of blocks.
#[derive(Clone, Default)]
pub(super) struct Blocks(Vec<u64>);

impl Blocks {
    fn with_room(n_blocks: u64) -> Self {
        Self(vec![0; n_blocks.div_ceil(64) as usize])
    }

    /// Whether a block is in it.
    pub(super) fn has(&self, block: u64) -> bool {
        self.0.get((block / 64) as usize).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Adds a block.
    pub(super) fn add(&mut self, block: u64) {
        if let Some(word) = self.0.get_mut((block / 64) as usize) {
            *word |= 1 << (block % 64);
        }
    }
}

/// A heap.
pub(super) struct Heap {
    base: u64,
    end: u64,
    page_bytes: u64,
    runs: Vec<Run>,
    /// The run of each page.
    run_of_page: Vec<u32>,
    live: Blocks,
    /// Blocks that are known to be referred to.
    pub(super) marked: Blocks,
}

impl Heap {
    /// Reads the records of the heap that a map describes, and the marks in its blocks.
    ///
    /// # Errors
    /// The records cannot be read.
    pub(super) fn read(memory: &Memory, map: &HeapMap) -> Result<Self> {
        let mut heap = Self {
            base: map.base,
            end: map.end,
            page_bytes: map.page_bytes,
            runs: Vec::new(),
            run_of_page: Vec::new(),
            live: Blocks::default(),
            marked: Blocks::default(),
        };
        let mut live = Vec::new();
        let (mut page, mut known) = (1, Vec::new());
        // The runs lie one behind the other. Records beyond the last are zero, or not in memory; within a run, only the first is right.
        while page < map.n_pages {
            let at = (page % RECORDS_AT_ONCE * map.record_bytes) as usize;
            if known.is_empty() {
                let from = map.records + (page - page % RECORDS_AT_ONCE) * map.record_bytes;
                known = memory.bytes(from, (RECORDS_AT_ONCE * map.record_bytes) as usize);
            }
            let Some(record) = known.get(at..at + map.record_bytes as usize) else { break };
            let n_pages = u64::from(number(record, map.pages_at));
            if n_pages == 0 {
                break;
            }
            if n_pages > map.n_pages - page {
                bail!("the record of page {page} is damaged");
            }
            heap.enter(memory, map, (page, n_pages), record, &mut live)?;
            let after = page + n_pages;
            if after / RECORDS_AT_ONCE != page / RECORDS_AT_ONCE {
                known.clear();
            }
            page = after;
        }
        let n_blocks = heap.runs.last().map_or(0, |run| run.first_block + run.n_blocks);
        heap.live = Blocks::with_room(n_blocks);
        live.into_iter().for_each(|block| heap.live.add(block));
        Ok(heap)
    }

    /// Enters the run that starts at a page, and adds its live blocks to `live`.
    fn enter(
        &mut self,
        memory: &Memory,
        map: &HeapMap,
        (page, n_pages): (u64, u64),
        record: &[u8],
        live: &mut Vec<u64>,
    ) -> Result<()> {
        let kind = record[map.kind_at];
        if kind != map.kind_small && kind != map.kind_large {
            return Ok(());
        }
        let entry = memory.bytes(map.page_map + page * 4, 4);
        // A thread may have taken it ahead: it becomes a span with its entry.
        if kind == map.kind_small && entry == [0; 4] {
            return Ok(());
        }
        let start = map.base + page * map.page_bytes;
        let bytes = n_pages * map.page_bytes;
        let damaged = || format!("the record of page {page} is damaged");
        let block_bytes = if kind == map.kind_small {
            let class = map.block_bytes.get(usize::from(record[map.class_at]));
            *class.filter(|_| n_pages <= MOST_SPAN_PAGES).with_context(damaged)?
        } else {
            bytes
        };
        let first_block = self.runs.last().map_or(0, |run| run.first_block + run.n_blocks);
        let run = Run { start, block_bytes, n_blocks: bytes / block_bytes, first_block };
        if kind == map.kind_small {
            add_small(memory, map, &run, (page, bytes, record), live);
        } else if entry == map.entry_large.to_ne_bytes() {
            live.push(first_block);
        }
        let pages = (page + n_pages) as usize;
        self.run_of_page.try_reserve(pages.saturating_sub(self.run_of_page.len())).with_context(damaged)?;
        self.run_of_page.resize(pages.max(self.run_of_page.len()), NO_RUN);
        self.run_of_page[page as usize..pages].fill(self.runs.len() as u32);
        self.runs.push(run);
        Ok(())
    }

    /// Makes room for marks.
    pub(super) fn prepare_marks(&mut self) {
        self.marked = Blocks(vec![0; self.live.0.len()]);
    }

    /// First address of the heap and its metadata, and one past the last.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.base, self.end)
    }

    /// The live block that an address lies in.
    pub(super) fn block_at(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        let run = *self.run_of_page.get((offset / self.page_bytes) as usize)?;
        let run = self.runs.get(run as usize)?;
        let index = (address - run.start) / run.block_bytes;
        let block = run.first_block + index;
        (index < run.n_blocks && self.live.has(block)).then_some(block)
    }

    /// Address and bytes of a block.
    pub(super) fn place_of(&self, block: u64) -> (u64, u64) {
        let after = self.runs.partition_point(|run| run.first_block <= block);
        let run = &self.runs[after - 1];
        (run.start + (block - run.first_block) * run.block_bytes, run.block_bytes)
    }

    /// The live blocks, in the order of their addresses.
    pub(super) fn live_blocks(&self) -> impl Iterator<Item = u64> {
        (0..self.live.0.len() as u64 * 64).filter(|&block| self.live.has(block))
    }
}

/// The blocks of a span that are the program's: carved, not free in the bitmap, without the mark of a free block, and in no stretch of blocks of which the
/// first has it. In a watched span the trailer says it instead of a mark.
fn add_small(memory: &Memory, map: &HeapMap, run: &Run, (page, bytes, record): (u64, u64, &[u8]), live: &mut Vec<u64>) {
    let fresh = u64::from(number(record, map.fresh_at)) | u64::from(number(record, map.fresh_at + 4)) << 32;
    let unit = map.os_page_bytes.max(bytes / 64);
    let bitmap = memory.bytes(map.bitmaps + page * map.bitmap_bytes, run.n_blocks.div_ceil(64) as usize * 8);
    // A bitmap that was never written to may not be readable, and then no block is free in it.
    let bitmap: Vec<u64> = words_in(&bitmap).collect();
    let is_free = |index: u64| bitmap.get((index / 64) as usize).is_some_and(|word| word >> (index % 64) & 1 == 1);
    let is_fresh = |index: u64| fresh >> (index * run.block_bytes / unit) & 1 == 1;
    let out: Vec<u64> = (0..run.n_blocks).filter(|&index| !is_fresh(index) && !is_free(index)).collect();
    if out.is_empty() {
        return;
    }
    let contents = memory.bytes(run.start, bytes as usize);
    let is_watched = record.get(map.watched_at).is_some_and(|&is_watched| is_watched != 0);
    let mut free_below = 0;
    for index in out {
        let at = index * run.block_bytes;
        let n_free = match contents.get(at as usize..(at + run.block_bytes) as usize) {
            None => 1,
            Some(block) if is_watched => u64::from(is_free_by_trailer(map.secret, run.start + at, block)),
            Some(block) => n_marked(block, map),
        };
        free_below = free_below.max(index + n_free);
        if index >= free_below {
            live.push(run.first_block + index);
        }
    }
}

/// How many blocks beside each other are free, from one on, as its mark says.
fn n_marked(block: &[u8], map: &HeapMap) -> u64 {
    if number(block, map.mark_at) != map.mark {
        return 0;
    }
    let place = number(block, map.mark_at + 4);
    let is_stretch = place as i32 > 0 && place.is_multiple_of(map.stretch_unit);
    if is_stretch { u64::from(place / map.stretch_unit) } else { 1 }
}

/// The 32-bit number at a place in a record or block.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_no_heap_has_are_said_to_be_damaged() {
        let own = Memory::of(std::process::id() as i32);
        // The record of page 1: the number of its pages, and its kind and class.
        let read = |n_pages: u32, kind: u8, class: u8| {
            let mut records = [0u8; 3200];
            records[32..36].copy_from_slice(&n_pages.to_ne_bytes());
            records[36..38].copy_from_slice(&[kind, class]);
            // The table of the entries is not 0 for page 1.
            let entries = [7u32; 100];
            let map = HeapMap {
                base: 1 << 16,
                n_pages: 100,
                records: records.as_ptr() as u64,
                page_map: entries.as_ptr() as u64,
                page_bytes: 65536,
                os_page_bytes: 4096,
                record_bytes: 32,
                fresh_at: 8,
                kind_at: 4,
                class_at: 5,
                kind_small: 1,
                kind_large: 2,
                block_bytes: vec![64],
                ..HeapMap::default()
            };
            Heap::read(&own, &map).map(|heap| heap.runs.len()).map_err(|error| error.to_string())
        };
        assert_eq!(read(99, 2, 0), Ok(1));
        let damaged = Err("the record of page 1 is damaged".to_owned());
        assert_eq!(read(100, 2, 0), damaged);
        assert_eq!(read(u32::MAX, 2, 0), damaged);
        assert_eq!(read(1, 1, 1), damaged);
    }
}
