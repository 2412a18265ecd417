//! The stacks of the live blocks that the library's heap profile has sampled, read from its tables.

use crate::leaks::heap_map::{ADDRESS_BOUND, HeapMap};
use crate::leaks::memory::{Memory, words_in};
use std::collections::HashMap;

/// Most frames of a stack.
const MOST_FRAMES: u64 = 256;

/// The samples of a process.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// The tables themselves, which have the addresses of blocks in them; empty without any.
    pub(super) range: (u64, u64),
    /// The number of the stack of each sampled block, by its address.
    stack_of: HashMap<u64, u64>,
    /// The return addresses of each stack, innermost first.
    stacks: HashMap<u64, Vec<u64>>,
}

impl Samples {
    /// Reads the tables that a map tells of; there are no samples if profiling was never started.
    pub(super) fn read(memory: &Memory, map: &HeapMap) -> Self {
        let [
            stacks_at,
            live_at,
            tables_bytes,
            entries_at,
            entry_bytes,
            place_at,
            frames_at,
            samples_at,
            n_samples,
            sample_bytes,
            address_at,
            stack_at,
        ] = map.profile_places[..]
        else {
            return Self::default();
        };
        let tables = memory.word(map.profile).unwrap_or(0);
        let mut samples = Self::default();
        // A program may have written to the address and to the places, as to all that is read here.
        if tables == 0 || tables >= ADDRESS_BOUND || sample_bytes == 0 || n_samples > tables_bytes / sample_bytes {
            return samples;
        }
        samples.range = (tables, tables + tables_bytes);
        let live = memory.bytes(tables + live_at + samples_at, (n_samples * sample_bytes) as usize);
        for sample in live.chunks_exact(sample_bytes as usize) {
            let word = |at: u64| sample.get(at as usize..).and_then(|rest| words_in(rest).next()).unwrap_or(0);
            // 0 says that no sample is in the entry.
            if word(address_at) != 0 {
                samples.stack_of.insert(word(address_at), word(stack_at) & u64::from(u32::MAX));
            }
        }
        for &stack in samples.stack_of.values() {
            samples.stacks.entry(stack).or_insert_with(|| {
                let entry = tables + stacks_at + entries_at + stack * entry_bytes;
                let place = memory.word(entry + place_at).unwrap_or(0);
                let (from, length) = (place >> 32, (place & u64::from(u32::MAX)).min(MOST_FRAMES));
                words_in(&memory.bytes(tables + stacks_at + frames_at + from * 8, length as usize * 8)).collect()
            });
        }
        samples
    }

    /// The return addresses of the call that allocated a block, if it was sampled.
    pub(super) fn stack(&self, block: u64) -> Option<(u64, &[u64])> {
        let stack = self.stack_of.get(&block)?;
        let addresses = self.stacks.get(stack).filter(|addresses| !addresses.is_empty())?;
        Some((*stack, addresses))
    }
}
