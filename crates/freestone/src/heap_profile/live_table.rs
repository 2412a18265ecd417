//! The samples that are live: from a block's address to its stack and what it stands for.
//!
//! ```text
//!  entry   address   0: no sample is in it
//!          stack, weight
//! ```
//!
//! An address is looked for from the entry of its hash on. A new sample takes the first entry on its way that no sample is in, and the table remembers the
//! longest way that any took: so many entries are looked at for an address that is not there, however many samples came and went.
//!
//! Threads: any, without a lock. A block's address is entered before the program gets the block, and removed before the block can be handed out
//! again: so no two threads enter or remove one address at the same time. Zero is an empty table.

use crate::heap_profile::stack_table::StackIndex;
use crate::heap_profile::tally::Weight;
use core::mem::offset_of;
use freestone_base::sync::{AtomicU64, AtomicUsize, Ordering};

/// Entries, a power of two.
pub(crate) const N_SAMPLES: usize = 1 << 17;

/// No more are live, so that an entry is found soon.
const SAMPLES_MOST: usize = N_SAMPLES / 4 * 3;

/// The address in an entry that no sample is in.
const NONE: usize = 0;

/// A sample: its stack, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) stack: StackIndex,
    pub(crate) weight: Weight,
}

struct LiveEntry {
    address: AtomicUsize,
    stack: AtomicU64,
    blocks: AtomicU64,
    bytes: AtomicU64,
}

/// Where a tracer finds the samples in the table: where the entries begin, how many there are, their bytes, and where in one the address and the
/// stack are.
pub(crate) const PLACES: [usize; 5] = [
    offset_of!(LiveTable, entries),
    N_SAMPLES,
    size_of::<LiveEntry>(),
    offset_of!(LiveEntry, address),
    offset_of!(LiveEntry, stack),
];

/// See the module header.
pub(crate) struct LiveTable {
    entries: [LiveEntry; N_SAMPLES],
    len: AtomicUsize,
    /// Entries on the longest way that a sample took. Stored before the sample's address.
    reach: AtomicUsize,
}

impl LiveTable {
    /// Samples that are live.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether it takes another sample.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < SAMPLES_MOST
    }

    /// Enters a sample, a block at `address`. `false` if there is no room.
    pub(crate) fn insert(&self, address: usize, Sample { stack, weight }: Sample) -> bool {
        if !self.has_room() {
            return false;
        }
        for (before, entry) in self.from(address).enumerate() {
            // The entry is taken with an address that is none, so that who looks for this one sees all of it or nothing.
            if entry.address.load(Ordering::Relaxed) == NONE
                && entry.address.compare_exchange(NONE, usize::MAX, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                if before >= self.reach.load(Ordering::Relaxed) {
                    self.reach.fetch_max(before + 1, Ordering::Relaxed);
                }
                entry.stack.store(stack.into(), Ordering::Relaxed);
                entry.blocks.store(weight.blocks, Ordering::Relaxed);
                entry.bytes.store(weight.bytes, Ordering::Relaxed);
                entry.address.store(address, Ordering::Release);
                self.len.fetch_add(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Removes the sample at `address`, if there is one. Returns it.
    pub(crate) fn remove(&self, address: usize) -> Option<Sample> {
        let entry = self.within_reach(address).find(|entry| entry.address.load(Ordering::Acquire) == address)?;
        let stack = entry.stack.load(Ordering::Relaxed) as StackIndex;
        let weight =
            Weight { blocks: entry.blocks.load(Ordering::Relaxed), bytes: entry.bytes.load(Ordering::Relaxed) };
        // A program that frees a block twice at once gets here twice.
        entry.address.compare_exchange(address, NONE, Ordering::Release, Ordering::Relaxed).ok()?;
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(Sample { stack, weight })
    }

    /// The entries that an address may be in.
    fn within_reach(&self, address: usize) -> impl Iterator<Item = &LiveEntry> {
        self.from(address).take(self.reach.load(Ordering::Relaxed))
    }

    /// The entries from that of an address's hash on, all of them once.
    fn from(&self, address: usize) -> impl Iterator<Item = &LiveEntry> {
        let hash = ((address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        (0..N_SAMPLES).map(move |step| &self.entries[hash.wrapping_add(step) % N_SAMPLES])
    }
}

#[cfg(test)]
mod tests;
