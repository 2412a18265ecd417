//! What an address that cannot be accessed belongs to: for a handler of faults.
//!
//! The lock is taken only if it is free: the thread that faulted may hold it, and a signal handler does not wait.

use crate::page::page_heap::PageHeap;
use crate::page::runs::{Extent, Runs};
use crate::span::{Entry, Kind, PageAccess, PageIndex};
use freestone_base::units::Pages;
use freestone_os::Os;

/// What an address that cannot be accessed belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The guard behind a large block.
    BehindLarge(Extent),
    /// The guard behind a span of a size class.
    BehindSpan(Extent, usize),
    /// A large block that was freed, or the guard behind it.
    Freed(Extent),
}

impl<O: Os> PageHeap<O> {
    /// What an address that cannot be accessed belongs to; `None` if it can, if it is nobody's, or if the lock is taken.
    pub(crate) fn closed_at(&self, address: usize) -> Option<Closed> {
        let page = self.view().page_of(address)?;
        let state = self.state.try_lock()?;
        if page >= state.runs.high_water() {
            return None;
        }
        let record = state.runs.record(page);
        if record.kind.get() == Kind::Guard && record.access.get() != PageAccess::Open {
            behind(&state.runs, page)
        } else {
            inside(&state.runs, page)
        }
    }
}

/// What the guard at `page` is behind.
fn behind(runs: &Runs, page: PageIndex) -> Option<Closed> {
    // The page before a guard ends a run, or is page 0, of kind `Metadata`.
    let before = runs.run_at(runs.record(page - Pages(1)).first_page());
    let record = runs.record(before.first);
    match record.kind.get() {
        Kind::Large => Some(Closed::BehindLarge(before)),
        Kind::Small => Some(Closed::BehindSpan(before, usize::from(record.class.get()))),
        Kind::Quarantined => Some(Closed::Freed(before)),
        _ => None,
    }
}

/// The quarantined block that `page` is inside of: searches backwards for its start.
fn inside(runs: &Runs, page: PageIndex) -> Option<Closed> {
    let start = (1..=page.0).rev().map(PageIndex).find(|&at| runs.entry(at) != Entry::NONE)?;
    let (run, kind) = (runs.run_at(start), runs.record(start).kind.get());
    (kind == Kind::Quarantined && page < run.end()).then_some(Closed::Freed(run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::page_heap::OwnedRun;
    use crate::size_class::class_of;
    use crate::testing::{World, free};
    use freestone_base::units::PAGE_BYTES;

    const BLOCK: usize = 4 * PAGE_BYTES;

    #[test]
    fn a_guard_names_the_large_block_before_it() {
        let world = World::new(4096);
        let heap = world.heap();
        let block = heap.allocate(BLOCK, 1).start;
        let pages = &world.shared.pages;
        let run = Extent::new(pages.view().page_of(block.addr()).unwrap(), Pages(4));
        assert_eq!(pages.closed_at(block.addr() + BLOCK), Some(Closed::BehindLarge(run)));
        assert_eq!(pages.closed_at(block.addr() + BLOCK + PAGE_BYTES - 1), Some(Closed::BehindLarge(run)));
        assert_eq!(pages.closed_at(block.addr() + BLOCK - 1), None, "the block itself");
        assert_eq!(pages.closed_at(16), None, "no address of the heap");
    }

    #[test]
    fn every_page_of_a_quarantined_block_and_the_guard_behind_it_name_the_block() {
        let world = World::hardened(4096, "full");
        let heap = world.heap();
        let block = heap.allocate(BLOCK - 16, 1).start;
        free(heap, block);
        for at in [0, PAGE_BYTES, BLOCK - 1, BLOCK] {
            let found = world.shared.pages.closed_at(block.addr() + at);
            let Some(Closed::Freed(run)) = found else { panic!("{at}: {found:?}") };
            assert_eq!((world.shared.pages.layout().page_start(run.first), run.pages), (block, Pages(4)));
        }
    }

    #[test]
    fn the_guard_behind_a_span_names_its_class_at_full() {
        let world = World::hardened(4096, "full");
        let heap = world.heap();
        let block = heap.allocate(100, 1).start;
        let span = crate::testing::span_of(&world, block);
        let end = span.start().addr() + span.n_pages().to_bytes().0;
        assert!(world.os().is_guarded(span.start().wrapping_add(span.n_pages().to_bytes().0)));
        let found = world.shared.pages.closed_at(end);
        assert!(matches!(found, Some(Closed::BehindSpan(_, class)) if class >= class_of(100)), "{found:?}");
    }

    #[test]
    fn what_is_left_of_a_guard_in_a_free_run_is_behind_no_block() {
        let world = World::new(4096);
        let pages = &world.shared.pages;
        let take = || {
            let run = pages.allocate(Pages(4), Pages(1), Kind::Large).unwrap();
            OwnedRun::taken(Extent::new(run.page, run.pages))
        };
        let [first, second, third] = [(); 3].map(|()| take());
        let guards = [&first, &second].map(|block| pages.layout().page_start(block.page() + Pages(4)));
        assert!(guards.iter().all(|guard| matches!(pages.closed_at(guard.addr()), Some(Closed::BehindLarge(_)))));
        [first, third, second].into_iter().for_each(|block| pages.free(block));
        for guard in guards {
            assert!(world.os().is_guarded(guard));
            assert_eq!(pages.closed_at(guard.addr()), None);
        }
    }

    #[test]
    fn a_free_page_behind_a_quarantined_block_is_not_a_part_of_it() {
        let world = World::hardened(4096, "full");
        let pages = &world.shared.pages;
        let run = pages.allocate(Pages(8), Pages(1), Kind::Large).unwrap();
        let block = OwnedRun::taken(Extent::new(run.page, run.pages));
        pages.shrink(&block, Pages(4));
        pages.quarantine(block).unwrap();
        let closed_at = |at| pages.closed_at(pages.layout().page_start(run.page + Pages(at)).addr());
        assert_eq!(closed_at(3), Some(Closed::Freed(Extent::new(run.page, Pages(4)))));
        assert_eq!(closed_at(4), None);
    }

    #[test]
    fn nothing_is_known_while_the_lock_is_taken() {
        let world = World::new(4096);
        let block = world.heap().allocate(BLOCK, 1).start;
        let pages = &world.shared.pages;
        assert_eq!(pages.inspect(|_| pages.closed_at(block.addr() + BLOCK)), None);
        assert!(pages.closed_at(block.addr() + BLOCK).is_some());
    }
}
