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
//! Threads: only the heap's thread.

use crate::size_class::{N_CLASSES, block_bytes};
use core::cell::Cell;
#[cfg(test)]
use core::ptr;

/// Most blocks.
const BLOCKS_MOST: usize = 16;

/// Most bytes.
const BYTES_MOST: usize = 8 * 1024;

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
    blocks: [Cell<*mut u8>; BLOCKS_MOST],
}

impl Magazine {
    /// An empty one.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self { len: Cell::new(0), blocks: [const { Cell::new(ptr::null_mut()) }; BLOCKS_MOST] }
    }

    /// Blocks in it.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// A place that a random number says, and the block there; `None` of an empty magazine.
    #[inline(always)]
    pub(crate) fn any(&self, random: u32) -> Option<(&Cell<*mut u8>, *mut u8)> {
        let at = (u64::from(random) * self.len.get() as u64) >> 32;
        // Always below the length, which is no more than there are places.
        let place = &self.blocks[at as usize % BLOCKS_MOST];
        (self.len.get() > 0).then(|| (place, place.get()))
    }

    /// Fills the place with the last block, and makes the magazine, which is not empty, shorter by it.
    #[inline(always)]
    pub(crate) fn remove(&self, place: &Cell<*mut u8>) {
        let len = self.len.get().wrapping_sub(1);
        place.set(self.blocks[len % BLOCKS_MOST].get());
        self.len.set(len);
    }

    /// Takes the block at a place that a random number says.
    #[inline(always)]
    pub(crate) fn take(&self, random: u32) -> Option<*mut u8> {
        let (place, start) = self.any(random)?;
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

    /// The blocks, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut u8> {
        self.blocks.iter().take(self.len.get()).map(Cell::get)
    }
}

#[cfg(test)]
mod tests;
