//! Blocks of no bytes: distinct addresses in a mapping that can neither be read nor written.
//!
//! ```text
//!  unused ── allocate ──▶ live, with the functions that free it ── free ──▶ freed ── after all others ──▶ live …
//! ```
//!
//! At the level `full` a watched heap takes its blocks of no bytes from here. The mapping has a fixed length, no memory, and is made with the first
//! block. When all blocks near the next one are live, none is to be had, and the program gets an ordinary block. Blocks of explicit heaps, which end
//! with their heap, and those with an alignment beyond 16 are ordinary ones, too. No statistic counts blocks of no bytes.
//!
//! Threads: any thread allocates and frees, by a compare-and-swap of the block's state. The lock, of rank [`RANK`], is held while the mapping is made.
//! No access to a state is ordered: a block has no memory, and its state is one byte.
//! A signal handler takes no lock.

use crate::misuse::Misuse;
use crate::misuse::crime::Touch;
use crate::size_class::GRANULE_BYTES;
use freestone_base::lock::{Forker, Lock};
use freestone_base::ptr as address;
use freestone_base::sync::{AtomicU8, AtomicUsize, Ordering};
use freestone_os::{Futex, Late, closable};

/// Rank of the lock.
pub(crate) const RANK: u8 = 26;

/// How many blocks there are: a freed one is used again after all others.
const N_BLOCKS: usize = 1 << 13;

/// Bytes that the addresses take.
const CLOSED_BYTES: usize = N_BLOCKS * GRANULE_BYTES;

/// States that an allocation looks at.
const LOOKED_AT_MOST: usize = 1024;

/// The program never had the block.
const UNUSED: u8 = 0;

/// It was freed.
const FREED: u8 = u8::MAX;

/// See the module header.
pub(crate) struct EmptyBlocks {
    /// The first address; 0 before the first block.
    start: AtomicUsize,
    next: AtomicUsize,
    mapping: Lock<(), Futex, RANK>,
    /// For each block one of [`UNUSED`] and [`FREED`], or the number of the functions that free it. Mapped for the first block: a process's
    /// allocator is in its library's file, and few processes have such blocks.
    states: Late<[AtomicU8; N_BLOCKS]>,
}

impl EmptyBlocks {
    /// Nothing is mapped.
    pub(crate) const fn new() -> Self {
        Self { start: AtomicUsize::new(0), next: AtomicUsize::new(0), mapping: Lock::new(()), states: Late::new() }
    }

    /// The distance of an address from the first block; `None` outside the mapping.
    fn distance(&self, at: usize) -> Option<usize> {
        let start = self.start.load(Ordering::Relaxed);
        let distance = at.checked_sub(start)?;
        (start != 0 && distance < CLOSED_BYTES).then_some(distance)
    }

    /// Whether an address is one of a block, or lies between two.
    pub(crate) fn contains(&self, at: usize) -> bool {
        self.distance(at).is_some()
    }

    /// Allocates a block that the functions with the number `family` free: neither 0 nor 255. `None` if there is none, or no memory.
    pub(crate) fn allocate(&self, family: u8) -> Option<*mut u8> {
        if self.start.load(Ordering::Relaxed) == 0 {
            self.map()?;
        }
        for _ in 0..LOOKED_AT_MOST {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % N_BLOCKS;
            let state = self.states.get()?.get(index)?;
            let was = state.load(Ordering::Relaxed);
            if matches!(was, UNUSED | FREED)
                && state.compare_exchange(was, family, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                let start = self.start.load(Ordering::Relaxed) + index * GRANULE_BYTES;
                return Some(address::from_exposed(start));
            }
        }
        None
    }

    #[cold]
    fn map(&self) -> Option<()> {
        let _mapping = self.mapping.lock();
        if self.start.load(Ordering::Relaxed) == 0 {
            self.states.get_mapped()?;
            let start = closable::map(CLOSED_BYTES)?;
            self.start.store(address::expose(start), Ordering::Relaxed);
        }
        Some(())
    }

    /// The number of the functions that free the live block at `at`.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub(crate) fn family_of(&self, at: usize) -> Result<u8, Misuse> {
        match self.state_at(at).map(|state| state.load(Ordering::Relaxed)) {
            Some(FREED) => Err(Misuse::DoubleFree { block_bytes: 0 }),
            Some(UNUSED) | None => Err(Misuse::Foreign),
            Some(family) => Ok(family),
        }
    }

    /// Frees the live block at `at`.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub(crate) fn free(&self, at: usize) -> Result<(), Misuse> {
        let family = self.family_of(at)?;
        let state = self.state_at(at).ok_or(Misuse::Foreign)?;
        match state.compare_exchange(family, FREED, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => Err(Misuse::DoubleFree { block_bytes: 0 }),
        }
    }

    fn state_at(&self, at: usize) -> Option<&AtomicU8> {
        let distance = self.distance(at).filter(|distance| distance % GRANULE_BYTES == 0)?;
        self.states.get()?.get(distance / GRANULE_BYTES)
    }

    /// What an access to an address was, and the block's address; `None` outside the mapping, and where no block was.
    pub(crate) fn judge(&self, at: usize, touch: Touch) -> Option<(Misuse, usize)> {
        let offset = self.distance(at)? % GRANULE_BYTES;
        let block = at - offset;
        let offset = offset as isize;
        let what = match self.state_at(block)?.load(Ordering::Relaxed) {
            UNUSED => return None,
            FREED => Misuse::FreedBlock { block_bytes: 0, size: Some(0), offset, touch },
            _ => Misuse::BesideBlock { block_bytes: 0, size: Some(0), offset, touch },
        };
        Some((what, block))
    }

    /// Takes the lock, before a fork.
    pub(crate) fn lock_for_fork(&self) {
        self.mapping.acquire_raw();
    }

    /// Releases the lock, in parent or child.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        self.mapping.release_raw(forker);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
