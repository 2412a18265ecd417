//! Bins that the program has written into, or that have a block which was freed again: what is looked for in them, and where they end.
#![allow(unsafe_code)]
//!
//! # Safety
//! As in [`super`]: the blocks in a bin are free, and their first words are its links.

use super::Bins;
use crate::span::View;
use crate::span::free_node::{self, END_OF_BIN, is_aligned};
use freestone_base::inbox::Node;

impl Bins {
    /// Whether a block is in a bin, or set aside. `view` covers the bin's blocks.
    pub(crate) fn contains(&self, class: usize, block: *mut Node, view: &View) -> bool {
        let most = usize::try_from(self.len(class)).unwrap_or(0);
        let n_aside = usize::try_from(self.classes[class].n_aside.get()).unwrap_or(0);
        self.iter(class, view).take(most).chain(self.iter_aside(class, view).take(n_aside)).any(|at| at == block)
    }

    /// Ends a bin at the block at `address`, if it is in it: it was freed again meanwhile and linked elsewhere. The blocks behind it are lost.
    /// `view` covers the blocks.
    pub(crate) fn end_at(&self, class: usize, address: usize, view: &View) {
        let (mut blocks, most) = (self.iter(class, view), usize::try_from(self.len(class)).unwrap_or(0));
        if let Some(at) = blocks.by_ref().take(most).position(|at| at.addr() == address) {
            // SAFETY: the block is in the bin, and so free.
            unsafe { free_node::write_in_bin(blocks.before, END_OF_BIN, self.key()) };
            self.count_moved(class, at as i64 + 1 - self.len(class));
        }
    }

    /// Empties a bin whose head is damaged: the link of the block that was allocated last. Its blocks are lost. `false` if the head is not.
    pub(crate) fn abandon_if_damaged(&self, class: usize) -> bool {
        let is_damaged = !self.is_empty(class) && !is_aligned(self.heads[class].get());
        if is_damaged {
            self.heads[class].set(END_OF_BIN);
            self.count_moved(class, -self.len(class));
        }
        is_damaged
    }
}
