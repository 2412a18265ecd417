//! A magazine: a few free blocks of one class, from random places of which a watched heap hands them out.
//!
//! ```text
//!  quarantine ─▶ magazine ─▶ the program
//!      │            ▲
//!      │ too many   │ half of it
//!      └──▶ span ───┘
//! ```
//!
//! A block that has waited in the quarantine takes the place of one that is handed out, so that each allocation chooses among as many. For the bitmap of
//! its span a block in a magazine is out; its trailer says that it is free. Blocks of more than [`BYTES_MOST`] have no magazine.
//!
//! Blocks that came from a span together are chosen from a *window*, the last ones of the magazine: programs walk over blocks in the order in which they
//! allocated them, and processors fetch in advance what such a walk comes to next as long as that is not too far away. So short blocks come in the order of
//! their addresses, and a window has as many as fit into [`WINDOW_BYTES`], or [`WINDOW_LEAST`]. Longer blocks come in any order, and the window is the magazine.
//! `docs/decisions/0054-blocks-that-are-walked-over.md` has the measurements.
//!
//! Threads: only the heap's thread.

use crate::size_class::{N_CLASSES, block_bytes};
use core::cell::Cell;
#[cfg(test)]
use core::ptr;

/// Most blocks.
const BLOCKS_MOST: usize = 16;

/// Most bytes.
const BYTES_MOST: usize = 8 * 1024;

/// Blocks of up to so many bytes come from spans in the order of their addresses.
const SHORT_BYTES: usize = 256;

/// The window of short blocks: so many bytes, or so many blocks.
const WINDOW_BYTES: usize = 512;
/// See [`WINDOW_BYTES`].
const WINDOW_LEAST: usize = 4;

/// How many blocks the magazine of each class may have.
static CAPACITY: [u8; N_CLASSES] = {
    let mut table = [0; N_CLASSES];
    let mut class = 0;
    while class < N_CLASSES {
        let blocks = BYTES_MOST / block_bytes(class);
        table[class] = if blocks < BLOCKS_MOST { blocks } else { BLOCKS_MOST } as u8;
        class += 1;
    }
    table
};

/// How many blocks of each class an allocation chooses among, at most.
static WINDOW: [u8; N_CLASSES] = {
    let mut table = [BLOCKS_MOST as u8; N_CLASSES];
    let mut class = 0;
    while is_short(class) {
        let blocks = WINDOW_BYTES / block_bytes(class);
        table[class] = if blocks > BLOCKS_MOST {
            BLOCKS_MOST
        } else if blocks < WINDOW_LEAST {
            WINDOW_LEAST
        } else {
            blocks
        } as u8;
        class += 1;
    }
    table
};

/// Whether the blocks of a class come from spans in the order of their addresses.
pub(crate) const fn is_short(class: usize) -> bool {
    block_bytes(class) <= SHORT_BYTES
}

/// How many blocks the magazine of a class may have.
#[inline]
pub(crate) fn capacity(class: usize) -> usize {
    usize::from(CAPACITY[class])
}

/// With fewer blocks than that a magazine is filled from spans, if none of its class has waited.
#[inline]
pub(crate) fn least(class: usize) -> usize {
    capacity(class) / 4
}

/// See the module header. Zero is an empty one. Aligned, so that it is found with few instructions in an array of them.
#[derive(Debug)]
#[repr(align(16))]
pub(crate) struct Magazine {
    len: Cell<usize>,
    word: Cell<u32>,
    blocks: [Cell<*mut u8>; BLOCKS_MOST],
}

impl Magazine {
    /// An empty one.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self { len: Cell::new(0), word: Cell::new(0), blocks: [const { Cell::new(ptr::null_mut()) }; BLOCKS_MOST] }
    }

    /// Blocks in it.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// The word of a span's bitmap that blocks came from last.
    pub(crate) fn word(&self) -> &Cell<u32> {
        &self.word
    }

    /// A place of the window of `class` that a random number says, and the block there; `None` of an empty magazine.
    #[inline(always)]
    pub(crate) fn any(&self, class: usize, random: u32) -> Option<(&Cell<*mut u8>, *mut u8)> {
        let len = self.len.get();
        let from_end = (u64::from(random) * len.min(WINDOW[class].into()) as u64) >> 32;
        // Always below the length, which is no more than there are places.
        let place = &self.blocks[len.wrapping_sub(from_end as usize + 1) % BLOCKS_MOST];
        (len > 0).then(|| (place, place.get()))
    }

    /// Fills the place with the last block, and makes the magazine, which is not empty, shorter by it.
    #[inline(always)]
    pub(crate) fn remove(&self, place: &Cell<*mut u8>) {
        let len = self.len.get().wrapping_sub(1);
        place.set(self.blocks[len % BLOCKS_MOST].get());
        self.len.set(len);
    }

    /// Takes the block at a place of the window of `class` that a random number says.
    #[inline(always)]
    pub(crate) fn take(&self, class: usize, random: u32) -> Option<*mut u8> {
        let (place, start) = self.any(class, random)?;
        self.remove(place);
        Some(start)
    }

    /// Adds a block, if there is room for one of `class`.
    #[inline]
    pub(crate) fn put(&self, class: usize, start: *mut u8) -> bool {
        let len = self.len.get();
        let Some(place) = self.blocks.get(len).filter(|_| len < capacity(class)) else { return false };
        place.set(start);
        self.len.set(len + 1);
        true
    }

    /// Turns the order of all blocks round: those that were there are chosen first, then those that came, in their order.
    pub(crate) fn turn_round(&self) {
        let (mut low, mut high) = (0, self.len.get());
        while low + 1 < high {
            high -= 1;
            self.blocks[low % BLOCKS_MOST].swap(&self.blocks[high % BLOCKS_MOST]);
            low += 1;
        }
    }

    /// The blocks, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut u8> {
        self.blocks.iter().take(self.len.get()).map(Cell::get)
    }
}

#[cfg(test)]
mod tests;
