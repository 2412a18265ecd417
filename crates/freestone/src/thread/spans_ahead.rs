//! Runs for spans that a heap has taken ahead: see [`crate::page::ahead`].
//!
//! A heap takes four times as many pages at once as it has already, up to a bound: one that stays tiny takes one span. Runs ahead have no memory, so a
//! thread that goes idle may keep them; a heap that ends, or empties its caches, gives them back.
//!
//! Threads: only the heap's thread uses it.

use crate::page::ahead::{RunsAhead, SpanRun};
use crate::page::{PageHeap, Prefers};
use core::cell::Cell;
use freestone_base::units::Pages;
use freestone_os::Os;

/// A heap takes so many times the pages that it has in spans.
const AT_ONCE_GROWTH: u64 = 4;

/// The most pages that are taken at once: 4 MiB.
const AT_ONCE_MOST: u64 = 64;

/// See the module header. Zero is right for a heap that has taken none.
pub(crate) struct SpansAhead(Cell<RunsAhead>);

impl SpansAhead {
    /// A run of `pages` for a span; `None` when memory runs out. A heap that has `owned` pages in spans may take some ahead.
    pub(crate) fn next<O: Os>(
        &self,
        heap: &PageHeap<O>,
        pages: Pages,
        owned: u64,
        prefers: Prefers,
    ) -> Option<SpanRun> {
        let mut ahead = self.take();
        let run = heap.allocate_span(&mut ahead, pages, at_once(owned, pages), prefers);
        self.0.set(ahead);
        run
    }

    /// Takes all, to be given back.
    pub(crate) fn take(&self) -> RunsAhead {
        self.0.replace(RunsAhead::NONE)
    }

    /// How many there are.
    pub(crate) fn n(&self) -> u32 {
        let ahead = self.take();
        let n = ahead.n();
        self.0.set(ahead);
        n
    }
}

/// How many runs of `pages` a heap that has `owned` pages takes at once.
fn at_once(owned: u64, pages: Pages) -> u32 {
    (owned.saturating_mul(AT_ONCE_GROWTH).min(AT_ONCE_MOST) as u32 / pages.0).max(1)
}

#[cfg(test)]
mod tests;
