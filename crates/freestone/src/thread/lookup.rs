//! Decides whether a block is the heap's own, and of which class: the heap's copy of the address range's view, and its tag.
//!
//! ```text
//!  offset  0  view   base, reach, page map
//!         24  tag    the heap's generation, shifted to where a page map entry has it
//!
//!  pages   1 ……………………………………… reach ……………………… reach of the newest view
//!          │ this heap's spans    │                 │
//!          │ and others'          │ others' only    │ nothing was handed out yet
//! ```
//!
//! The view is a copy, so that `free` finds it beside the other fields that it reads. Meanwhile other threads extend the committed pages. An
//! address beyond the copy's reach fails the test that addresses outside the address range fail; the slow path behind that test brings
//! the copy up to date, and so do every flush, drain and new span. A thread frees a block only after it got the block's address,
//! that is, after the block was handed out; the reach that covers the block was published before that. So the newest view covers it.
//!
//! Invariant: the view covers every page of the heap's own spans, so `free` finds each of them.
//! Threads: only the heap's thread reads or writes the cells.

use crate::span::{Generation, PageIndex, View};
use core::cell::Cell;

/// See the module header.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Lookup {
    view: Cell<View>,
    tag: Cell<u32>,
}

impl Lookup {
    /// A lookup that finds nothing: its view is empty, and no entry has its tag.
    pub(crate) const fn empty() -> Self {
        Self { view: Cell::new(View::EMPTY), tag: Cell::new(Generation::NONE.tag()) }
    }

    /// Begins the use by a heap of this generation.
    pub(crate) fn begin(&self, view: View, generation: Generation) {
        self.view.set(view);
        self.tag.set(generation.tag());
    }

    /// The class of the block at `address`, if its span is this heap's. `None` for an address that is no multiple of the granule.
    #[inline(always)]
    pub(crate) fn own_class(&self, address: usize) -> Option<usize> {
        self.view.get().entry_of_block(address)?.class_if_owned(self.tag.get())
    }

    /// As [`Lookup::own_class`], with the page.
    #[inline(always)]
    pub(crate) fn own_page_and_class(&self, address: usize) -> Option<(PageIndex, usize)> {
        let (page, entry) = self.view.get().page_of_block(address)?;
        Some((page, entry.class_if_owned(self.tag.get())?))
    }

    /// The heap's view.
    #[inline(always)]
    pub(crate) fn view(&self) -> View {
        self.view.get()
    }

    /// Changes the view to one that reaches further.
    pub(crate) fn set_view(&self, view: View) {
        self.view.set(view);
    }

    /// The number to subtract from a page map entry: see `span::page_map`.
    #[inline(always)]
    pub(crate) fn tag(&self) -> u32 {
        self.tag.get()
    }
}

#[cfg(test)]
mod tests;
