//! A magazine: a few free blocks of one class that a watched heap hands out next, in random order: each one that comes changes places with a random
//! one of those that are there.
//!
//! ```text
//!  quarantine ─▶ magazine ─▶ the program
//!                 │  ▲
//!       half of it ▼  │ half of it
//!                 span
//! ```
//!
//! What leaves the quarantine comes here, so that a block rarely takes the way through its span's bitmap. For the bitmap the blocks are out; their
//! trailers say that they are free. Blocks of more than [`BYTES_MOST`] have no magazine.
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

/// See the module header. Zero is an empty one.
#[derive(Debug)]
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
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// The block that is handed out next.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<*mut u8> {
        self.blocks.get(self.len.get().wrapping_sub(1)).map(Cell::get)
    }

    /// Removes the block that [`Magazine::next`] returned.
    #[inline(always)]
    pub(crate) fn remove_next(&self) {
        self.len.set(self.len.get() - 1);
    }

    /// Takes the block that is handed out next.
    #[inline]
    pub(crate) fn take(&self) -> Option<*mut u8> {
        let next = self.next();
        if next.is_some() {
            self.remove_next();
        }
        next
    }

    /// Adds a block at a place that a random number says, if there is room for one of `class`. The one that was there is handed out next.
    #[inline]
    pub(crate) fn put(&self, class: usize, start: *mut u8, random: u32) -> bool {
        let len = self.len.get();
        if len >= capacity(class) {
            return false;
        }
        let at = ((u64::from(random) * (len as u64 + 1)) >> 32) as usize;
        let (Some(last), Some(place)) = (self.blocks.get(len), self.blocks.get(at)) else { return false };
        last.set(place.get());
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
