//! What a heap knows of the window.
#![allow(unsafe_code)]
//!
//! ```text
//!  pages   1 ……………………………………… reach ……………………… reach of the newest view
//!          │ this heap's spans    │                 │
//!          │ and others'          │ others' only    │ nothing was handed out yet
//! ```
//!
//! A heap's view is a copy, so that `free` reads it with everything else it needs. Others make the window grow meanwhile. An address beyond
//! the copy's reach fails the test that addresses outside the window fail, and the slow path behind it brings the copy up to date: with
//! every slow free, flush, drain and new span. A block can only be freed by a thread that was told of it, in whatever way, after it was
//! handed out; the reach that covered it then was published before, so that the newest view covers it.
//!
//! Invariant: the view covers every page of the heap's own spans. So `free` takes a block of its thread's for nobody's never.
//!
//! # Safety
//! As stated at each function.

use crate::span::{Layout, View};
use crate::thread::ThreadHeap;
use freestone_os::Os;

impl<O: Os + 'static> ThreadHeap<O> {
    /// What the hot paths look addresses up in. See the module header.
    #[inline(always)]
    pub(crate) fn view(&self) -> View {
        self.view.get()
    }

    /// Brings the heap's view up to date: it covers every block that this thread can know of.
    ///
    /// # Safety
    /// - The heap is or was alive, and the caller is its thread, or handles its blocks.
    #[inline]
    pub(crate) unsafe fn renew_view(&self) -> View {
        // SAFETY: the heap is or was alive (the caller's promise).
        let pages = unsafe { &self.shared().pages };
        if self.view.get().reach() != pages.reach() {
            self.view.set(pages.view());
        }
        self.view.get()
    }

    /// Where things are in the window.
    ///
    /// # Safety
    /// - The heap is or was alive: `nobody` has no window.
    #[inline]
    pub(crate) unsafe fn layout(&self) -> Layout {
        // SAFETY: the heap is or was alive (the caller's promise).
        *unsafe { self.shared() }.pages.layout()
    }
}

#[cfg(test)]
mod tests;
