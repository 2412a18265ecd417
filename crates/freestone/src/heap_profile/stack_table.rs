//! The stacks of samples: each is stored once, with what was counted of it.
//!
//! ```text
//!  entry   hash     of the stack's addresses; 0: no stack                         found by hash, in the next entries if others are there
//!          place    first address in `frames`, and how many; 0: not stored yet
//!          live, since the start, at the peak
//!  frames  addresses of all stacks, one behind the other
//! ```
//!
//! Two stacks are the same if their 64-bit hashes are. The thread that enters a hash stores the addresses; others count at once.
//!
//! **The peak.** Copying all counts at each new peak would take long. So a peak has a number, and an entry notes of which peak it has the count: before
//! it first changes after a new peak, what is live is what was live at the peak. Threads that sample at the same moment as a peak is reached may
//! be counted there or not.
//!
//! Threads: any, without a lock. Zero is an empty table.

use crate::heap_profile::tally::{Tally, Weight};
use core::mem::offset_of;
use freestone_base::sync::{AtomicU64, AtomicUsize, Ordering};

/// Stacks, a power of two.
pub(crate) const N_STACKS: usize = 1 << 15;

/// No more are stored, so that an entry is found soon.
const STACKS_MOST: usize = N_STACKS / 4 * 3;

/// Addresses of all stacks.
pub(crate) const N_FRAMES: usize = 1 << 19;

/// What was counted of a stack.
#[derive(Debug)]
pub(crate) struct StackEntry {
    hash: AtomicU64,
    place: AtomicU64,
    live: Tally,
    since_start: Tally,
    at_peak: Tally,
    /// The number of the peak that `at_peak` is of.
    peak: AtomicU64,
}

/// See the module header.
pub(crate) struct StackTable {
    entries: [StackEntry; N_STACKS],
    frames: [AtomicUsize; N_FRAMES],
    n_frames: AtomicUsize,
    n_stacks: AtomicUsize,
}

/// Where a tracer finds a stack in the table: where the entries begin, their bytes, where in one `place` is, and where the frames begin.
pub(crate) const PLACES: [usize; 4] = [
    offset_of!(StackTable, entries),
    size_of::<StackEntry>(),
    offset_of!(StackEntry, place),
    offset_of!(StackTable, frames),
];

/// Number of a stack.
pub(crate) type StackIndex = u32;

/// What a dump says of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackCounts {
    /// Now.
    pub(crate) live: Weight,
    /// Since the start.
    pub(crate) since_start: Weight,
    /// At the peak of all.
    pub(crate) at_peak: Weight,
}

impl StackTable {
    /// The number of the stack with this hash, if it was entered.
    #[inline]
    pub(crate) fn find(&self, hash: u64) -> Option<StackIndex> {
        let (index, is_entered) = self.probe(hash)?;
        is_entered.then_some(index)
    }

    /// The entry that has this hash, and `true`; else the first one that it could be entered in, and `false`. `None` if there is neither.
    #[inline]
    fn probe(&self, hash: u64) -> Option<(StackIndex, bool)> {
        for step in 0..N_STACKS {
            let index = (hash as usize).wrapping_add(step) % N_STACKS;
            let found = self.entries.get(index)?.hash.load(Ordering::Relaxed);
            if found == hash || found == 0 {
                return Some((index as StackIndex, found == hash));
            }
        }
        None
    }

    /// The number of a stack with this hash (`freestone_os::stack::hash_of`), which is stored if it is new; `None` if there is no room for it.
    pub(crate) fn intern(&self, addresses: &[usize], hash: u64) -> Option<StackIndex> {
        loop {
            let (index, is_entered) = self.probe(hash)?;
            if is_entered {
                return Some(index);
            }
            if self.n_stacks.load(Ordering::Relaxed) >= STACKS_MOST {
                return None;
            }
            let entry = self.entries.get(index as usize)?;
            // If another thread was first, it may have entered the same stack.
            if entry.hash.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.n_stacks.fetch_add(1, Ordering::Relaxed);
                self.store(entry, addresses);
                return Some(index);
            }
        }
    }

    /// Stores a stack's addresses. Without room for them the entry counts on, as a stack that nothing is known of.
    fn store(&self, entry: &StackEntry, addresses: &[usize]) {
        let at = self.n_frames.fetch_add(addresses.len(), Ordering::Relaxed);
        let Some(places) = at.checked_add(addresses.len()).and_then(|end| self.frames.get(at..end)) else {
            self.n_frames.fetch_sub(addresses.len(), Ordering::Relaxed);
            return;
        };
        for (place, &address) in places.iter().zip(addresses) {
            place.store(address, Ordering::Relaxed);
        }
        entry.place.store((at as u64) << 32 | addresses.len() as u64, Ordering::Release);
    }

    /// Counts a sample of a stack as allocated, since the start.
    pub(crate) fn count_allocation(&self, index: StackIndex, weight: Weight) {
        if let Some(entry) = self.entries.get(index as usize) {
            entry.since_start.add(weight);
        }
    }

    /// Counts a sample of a stack as live. `peak` is the number of the last peak.
    pub(crate) fn add(&self, index: StackIndex, weight: Weight, peak: u64) {
        if let Some(entry) = self.entries.get(index as usize) {
            entry.keep_peak(peak);
            entry.live.add(weight);
        }
    }

    /// Counts a sample of a stack as freed.
    pub(crate) fn subtract(&self, index: StackIndex, weight: Weight, peak: u64) {
        if let Some(entry) = self.entries.get(index as usize) {
            entry.keep_peak(peak);
            entry.live.subtract(weight);
        }
    }

    /// Calls `visit` with each stack's addresses, which are none if it could not be stored, and with its counts, until that returns an error.
    pub(crate) fn for_each<E>(
        &self,
        peak: u64,
        mut visit: impl FnMut(&[AtomicUsize], StackCounts) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in &self.entries {
            if entry.hash.load(Ordering::Relaxed) != 0 {
                let place = entry.place.load(Ordering::Acquire);
                let (from, len) = ((place >> 32) as usize, place as u32 as usize);
                visit(self.frames.get(from..from + len).unwrap_or_default(), entry.counts(peak))?;
            }
        }
        Ok(())
    }
}

impl StackEntry {
    /// Keeps what was live at the last peak, before that changes.
    fn keep_peak(&self, peak: u64) {
        if self.peak.load(Ordering::Relaxed) != peak && self.peak.swap(peak, Ordering::Relaxed) != peak {
            self.at_peak.set(self.live.sum());
        }
    }

    fn counts(&self, peak: u64) -> StackCounts {
        let is_kept = self.peak.load(Ordering::Relaxed) == peak;
        StackCounts {
            live: self.live.sum(),
            since_start: self.since_start.sum(),
            at_peak: if is_kept { self.at_peak.sum() } else { self.live.sum() },
        }
    }
}

#[cfg(test)]
mod tests;
