//! The slots: allocating and freeing guarded blocks, and what a fault in them means.
#![allow(unsafe_code)]
//!
//! Threads: any thread allocates and frees. The lock, of rank [`RANK`], is held while the next slot is chosen and while the slots are mapped; the
//! thread that took a slot, or moved it from live to ending, is the only one that changes it. A signal handler takes no lock.
//!
//! # Safety
//! `start` is 0 or the start of a mapping of [`Geometry::total`] bytes that is never unmapped. Its first [`Geometry::records`] bytes are open, and
//! were zero when they were mapped: an array of records. The open pages of a slot belong to the thread that owns the slot.

use crate::guarded::geometry::{Geometry, N_SLOTS, Spot};
use crate::guarded::slot::{Block, Kind, Slot, State};
use crate::guarded::vacant::Vacant;
use crate::misuse::Misuse;
use crate::misuse::crime::Touch;
use crate::misuse::finding::{History, Site};
use crate::size_class::{GRANULE_BYTES, block_bytes};
use core::slice;
use freestone_base::bytes::chunks;
use freestone_base::lock::{Forker, Lock};
use freestone_base::ptr as address;
use freestone_base::sync::{AtomicBool, AtomicUsize, Ordering};
use freestone_os::{Futex, closable, process};

/// Rank of the lock.
pub(crate) const RANK: u8 = 25;

/// Bytes on each side of a block that are filled, as far as its open pages reach.
const FILLED_MOST: usize = 32;

/// What they are filled with.
const FILLING: u8 = 0xC9;

/// What the program asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Bytes, at most those of the largest small block.
    pub(crate) size: usize,
    /// A power of two.
    pub(crate) align: usize,
    /// Its class, alignment and family.
    pub(crate) kind: Kind,
}

/// What came of a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// The block is free: its class, and the bytes of its pages.
    Yes { class: usize, bytes: usize },
    /// It is not, and was not changed.
    No(Misuse),
}

/// A fault in a guarded block, or beside one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crime {
    /// What was done.
    pub(crate) what: Misuse,
    /// The block's address.
    pub(crate) block: usize,
    /// Where the block was allocated and freed.
    pub(crate) history: History,
}

/// See the module header.
pub(crate) struct GuardedPool {
    start: AtomicUsize,
    vacant: Lock<Vacant, Futex, RANK>,
    /// Bytes of the pages that are open for live blocks.
    open_bytes: AtomicUsize,
    has_said_full: AtomicBool,
}

impl GuardedPool {
    /// Nothing is mapped.
    pub(crate) const fn new() -> Self {
        Self {
            start: AtomicUsize::new(0),
            vacant: Lock::new(Vacant::new()),
            open_bytes: AtomicUsize::new(0),
            has_said_full: AtomicBool::new(false),
        }
    }

    fn geometry() -> Geometry {
        Geometry::new(process::os_page_bytes())
    }

    /// The records; none before the first guarded block.
    fn slots(&self) -> &[Slot] {
        match self.start.load(Ordering::Acquire) {
            0 => &[],
            // SAFETY: the mapping starts with so many records, all atomics, which were zero at first and are never unmapped.
            start => unsafe { slice::from_raw_parts(address::from_exposed(start), N_SLOTS) },
        }
    }

    /// What an address is in, and its distance from the start; `None` outside the mapping.
    fn spot(&self, at: usize) -> Option<Spot> {
        let start = self.start.load(Ordering::Relaxed);
        if start == 0 { None } else { Self::geometry().spot(at.checked_sub(start)?) }
    }

    /// Whether an address is in the mapping.
    pub(crate) fn contains(&self, at: usize) -> bool {
        self.spot(at).is_some()
    }

    /// Whether a slot has room for a block of this size and alignment.
    pub(crate) fn fits(size: usize, align: usize) -> bool {
        size <= Self::geometry().slot_bytes() && align <= Self::geometry().page()
    }

    /// Whether a slot is vacant. Says so, once, if none is.
    pub(crate) fn has_vacant(&self) -> bool {
        self.vacant.lock().has() || {
            self.say_full();
            false
        }
    }

    /// Allocates a guarded block, at the end or the start of its slot. Returns it, zeroed, and the bytes of its pages; `None` if it does not fit, no slot is
    /// vacant or there is no memory.
    pub(crate) fn allocate(&self, wanted: Wanted, at_end: bool, site: &Site) -> Option<(*mut u8, usize)> {
        let geometry = Self::geometry();
        let align = wanted.align.max(GRANULE_BYTES);
        if !Self::fits(wanted.size, align) {
            return None;
        }
        let index = self.take_slot()?;
        let start = self.start.load(Ordering::Relaxed) + geometry.slot(index);
        let from = geometry.place(wanted.size, align, at_end);
        let block = Block { start: start + from, size: wanted.size, kind: wanted.kind };
        let (pages, bytes) = Self::pages_of(&block);
        // SAFETY: the pages lie in the mapping, in a slot that this thread has just taken.
        if bytes > 0 && unsafe { closable::open(address::from_exposed(pages), bytes) }.is_err() {
            self.vacant.lock().put(index);
            return None;
        }
        for (from, n) in filled(&block, (pages, bytes)) {
            // SAFETY: the bytes are in open pages of the slot, and outside the block.
            unsafe { address::from_exposed::<u8>(from).write_bytes(FILLING, n) };
        }
        self.open_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.slots().get(index)?.begin(block, site);
        Some((address::from_exposed(block.start), bytes))
    }

    /// The start and the bytes of the pages that a block lies in. The mapping starts at a page.
    fn pages_of(block: &Block) -> (usize, usize) {
        Self::geometry().pages(block.start, block.size)
    }

    /// Takes the next slot that is not spent; maps the slots first.
    fn take_slot(&self) -> Option<usize> {
        let mut vacant = self.vacant.lock();
        if self.start.load(Ordering::Relaxed) == 0 && !self.map() {
            return None;
        }
        let slots = self.slots();
        loop {
            let index = vacant.take()?;
            if !slots.get(index)?.is_spent() {
                return Some(index);
            }
        }
    }

    /// Maps the slots; `false` without memory. The lock is held.
    fn map(&self) -> bool {
        let geometry = Self::geometry();
        let Some(start) = closable::map(geometry.total()) else { return false };
        // SAFETY: the pages lie in the mapping, which was just made.
        let is_open = unsafe { closable::open(start, geometry.records()) }.is_ok();
        if is_open {
            self.start.store(address::expose(start), Ordering::Release);
        }
        is_open
    }

    #[cold]
    fn say_full(&self) {
        if !self.has_said_full.swap(true, Ordering::Relaxed) {
            freestone_os::report(format_args!(
                "guard_sample: all {N_SLOTS} guarded blocks are in use; until some are freed, no other block is guarded"
            ));
        }
    }

    /// Frees the block that starts at `at`, an address in the mapping, and closes it. `site` is where it is freed.
    pub(crate) fn free(&self, at: usize, site: &Site) -> Freed {
        let Some((index, slot)) = self.slot_at(at) else { return Freed::No(Misuse::Foreign) };
        let block = slot.block();
        if let Some(wrong) = wrong_start(at, &block, slot.state()) {
            return Freed::No(wrong);
        }
        if !slot.change(State::Live, State::Ending) {
            return Freed::No(Misuse::DoubleFree { block_bytes: block_bytes(block.kind.class()) });
        }
        if let Some(written) = written_beside(&block) {
            slot.set_state(State::Live);
            return Freed::No(written);
        }
        slot.end(site);
        let (pages, bytes) = Self::pages_of(&block);
        // SAFETY: the pages lie in the mapping, and the program gave the block up.
        if bytes > 0 && unsafe { closable::close(address::from_exposed(pages), bytes) }.is_err() {
            slot.spend();
        }
        slot.set_state(State::Freed);
        self.vacant.lock().put(index);
        self.open_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Freed::Yes { class: block.kind.class(), bytes }
    }

    /// The live block that starts at `at`; what is wrong if there is none.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub(crate) fn block_at(&self, at: usize) -> Result<Block, Misuse> {
        let Some((_, slot)) = self.slot_at(at) else { return Err(Misuse::Foreign) };
        let block = slot.block();
        wrong_start(at, &block, slot.state()).map_or(Ok(block), Err)
    }

    /// The slot that an address is in, and its index.
    pub(crate) fn slot_at(&self, at: usize) -> Option<(usize, &Slot)> {
        match self.spot(at)? {
            Spot::Slot(index) => self.slots().get(index).map(|slot| (index, slot)),
            Spot::Records | Spot::Between(_) => None,
        }
    }

    /// Where the block in the slot at `at` was allocated and freed; `None` if there was no block.
    pub(crate) fn history(&self, at: usize) -> Option<History> {
        let (_, slot) = self.slot_at(at)?;
        (slot.state() != State::Vacant).then(|| slot.history())
    }

    /// What an access to a closed address was; `None` if it is in no slot that was used, nor in the next, or inside a block.
    pub(crate) fn judge(&self, at: usize, touch: Touch) -> Option<Crime> {
        let used = |index: usize| self.slots().get(index).filter(|slot| slot.state() != State::Vacant);
        let slot = match self.spot(at)? {
            Spot::Records => return None,
            // Slots are used in turn at first: behind one that was never used, none was.
            Spot::Slot(index) => used(index).or_else(|| used(index.wrapping_sub(1)))?,
            Spot::Between(index) => nearer(at, used(index.wrapping_sub(1)), used(index))?,
        };
        let block = slot.block();
        let (block_bytes, size) = (block_bytes(block.kind.class()), block.size);
        let offset = (at as isize).wrapping_sub(block.start as isize);
        let what = match slot.state() {
            // The program has closed its own block.
            State::Live if (0..size as isize).contains(&offset) => return None,
            State::Live => Misuse::BesideBlock { block_bytes, size: Some(size), offset, touch },
            _ => Misuse::FreedBlock { block_bytes, size: Some(size), offset, touch },
        };
        Some(Crime { what, block: block.start, history: slot.history() })
    }

    /// Opens the page of an address that a fault was in, so that the program can go on. No further block uses its slot: what is
    /// written to that page would be in it. `false` if the page cannot be opened.
    pub(crate) fn give_up(&self, at: usize) -> bool {
        if let Some((_, slot)) = self.slot_at(at) {
            slot.spend();
        }
        let page = at & !(Self::geometry().page() - 1);
        // SAFETY: the page lies in the mapping: a crime was found in it.
        unsafe { closable::open(address::from_exposed(page), Self::geometry().page()) }.is_ok()
    }

    /// The size class of each live block.
    pub(crate) fn live_classes(&self) -> impl Iterator<Item = usize> {
        self.slots().iter().filter(|slot| slot.state() == State::Live).map(|slot| slot.block().kind.class())
    }

    /// Bytes of the pages that are open for live blocks.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.open_bytes.load(Ordering::Relaxed) as u64
    }

    /// Bytes of the records.
    pub(crate) fn metadata_bytes(&self) -> u64 {
        if self.slots().is_empty() { 0 } else { Self::geometry().records() as u64 }
    }

    /// Takes the lock, before a fork.
    pub(crate) fn lock_for_fork(&self) {
        self.vacant.acquire_raw();
    }

    /// Releases the lock, in parent or child.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        self.vacant.release_raw(forker);
    }
}

/// What is wrong with `at` as the start of a slot's live block.
fn wrong_start(at: usize, block: &Block, state: State) -> Option<Misuse> {
    let block_bytes = block_bytes(block.kind.class());
    match state {
        State::Vacant => Some(Misuse::Foreign),
        _ if at < block.start || at - block.start > block.size => Some(Misuse::Foreign),
        _ if at != block.start => Some(Misuse::Interior { block_bytes, offset: at - block.start }),
        State::Live => None,
        _ => Some(Misuse::DoubleFree { block_bytes }),
    }
}

/// The bytes beside a block that are filled, in its open pages: where they start, and how many they are.
fn filled(block: &Block, (pages, bytes): (usize, usize)) -> [(usize, usize); 2] {
    if bytes == 0 {
        return [(block.start, 0); 2];
    }
    let end = block.start + block.size;
    let before = FILLED_MOST.min(block.start - pages);
    let behind = FILLED_MOST.min(pages + bytes - end);
    [(block.start - before, before), (end, behind)]
}

/// What was written beside a live block.
fn written_beside(block: &Block) -> Option<Misuse> {
    let wrong = filled(block, GuardedPool::pages_of(block)).into_iter().find_map(|(from, n)| {
        // SAFETY: the bytes are in open pages of the block's slot, and were written when it was allocated.
        let bytes = unsafe { slice::from_raw_parts(address::from_exposed::<u8>(from).cast_const(), n) };
        // By eights first: a block that is as it should be is what is usual.
        let (words, rest) = chunks(bytes);
        let is_whole = words.iter().all(|word| *word == [FILLING; 8]) && rest.iter().all(|&byte| byte == FILLING);
        if is_whole { None } else { bytes.iter().position(|&byte| byte != FILLING).map(|at| from + at) }
    })?;
    let offset = wrong as isize - block.start as isize;
    Some(Misuse::BesideBlock {
        block_bytes: block_bytes(block.kind.class()),
        size: Some(block.size),
        offset,
        touch: Touch::Write,
    })
}

/// Of the slots before and behind a closed page the one whose block is nearer to an address in it.
fn nearer<'a>(at: usize, before: Option<&'a Slot>, behind: Option<&'a Slot>) -> Option<&'a Slot> {
    let (Some(left), Some(right)) = (before, behind) else { return before.or(behind) };
    let (first, second) = (left.block(), right.block());
    let is_left = at.saturating_sub(first.start + first.size) <= second.start.saturating_sub(at);
    Some(if is_left { left } else { right })
}

#[cfg(all(test, any(target_os = "linux", windows)))]
mod tests;
