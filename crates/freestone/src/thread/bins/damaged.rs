//! What is looked for in a bin that may have a block which was freed again, and a bin whose head is damaged.

use super::Bins;
use crate::span::View;
use crate::span::free_node::{END_OF_BIN, is_aligned};
use freestone_base::inbox::Node;

impl Bins {
    /// Whether a block is in a bin, or set aside. `view` covers the bin's blocks.
    pub(crate) fn contains(&self, class: usize, block: *mut Node, view: &View) -> bool {
        let most = usize::try_from(self.len(class)).unwrap_or(0);
        let n_aside = usize::try_from(self.classes[class].n_aside.get()).unwrap_or(0);
        self.iter(class, view).take(most).chain(self.iter_aside(class, view).take(n_aside)).any(|at| at == block)
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
