//! Blocks set aside: those of a bin that the hot path is not to hand out, because the next allocation is to take the slow path.
//!
//! They stay linked with the bin's key, and are counted by the bin's state until they are put back.

use super::Bins;
use crate::span::View;
use crate::span::free_node::{END_OF_BIN, Linked};

impl Bins {
    /// Empties a bin and keeps its blocks beside it, so that the next allocation takes the slow path. Nothing if it is empty, or if blocks are kept so
    /// already.
    pub(crate) fn set_aside(&self, class: usize) {
        let (state, n) = (&self.classes[class], self.len(class));
        if state.n_aside.get() == 0 && n > 0 {
            state.aside.set(self.heads[class].replace(END_OF_BIN));
            state.n_aside.set(n);
            self.count_moved(class, -n);
        }
    }

    /// Blocks in a bin and set aside.
    #[inline]
    pub(crate) fn len_with_aside(&self, class: usize) -> i64 {
        self.len(class) + self.n_aside(class)
    }

    /// Blocks set aside.
    #[inline]
    pub(crate) fn n_aside(&self, class: usize) -> i64 {
        self.classes[class].n_aside.get()
    }

    /// Whether blocks of a bin are set aside.
    #[inline]
    pub(crate) fn has_aside(&self, class: usize) -> bool {
        self.n_aside(class) != 0
    }

    /// Puts blocks that were set aside back into their bin, behind those that came meanwhile. `false` if none were. `view` covers the bin's blocks.
    ///
    /// # Errors
    /// A link of the bin is damaged: the address of the block with the link, or 0 for the head. The blocks behind it that came meanwhile are lost.
    pub(crate) fn put_back(&self, class: usize, view: impl FnOnce() -> View) -> Result<bool, usize> {
        let (state, n_newer) = (&self.classes[class], self.len(class));
        let n = state.n_aside.replace(0);
        if n == 0 {
            return Ok(false);
        }
        self.count_moved(class, n);
        if self.is_empty(class) {
            self.heads[class].set(state.aside.get());
            return Ok(true);
        }
        let view = view();
        let mut blocks = self.iter(class, &view);
        let n_found = blocks.by_ref().take(usize::try_from(n_newer).unwrap_or(0)).count();
        if blocks.before.is_null() {
            self.heads[class].set(state.aside.get());
        } else {
            self.link_behind(blocks.before, state.aside.get());
        }
        if blocks.at == END_OF_BIN {
            return Ok(true);
        }
        self.count_moved(class, n_found as i64 - n_newer);
        Err(blocks.before.addr())
    }

    /// The blocks that are set aside; take no more than are.
    pub(super) fn iter_aside<'a>(&self, class: usize, view: &'a View) -> Linked<'a> {
        self.linked(self.classes[class].aside.get(), class, view)
    }
}
