//! Large blocks as the page heap sees them: growing, shrinking and moving where they are.
#![allow(unsafe_code)]
//!
//! ```text
//!  │ block │ room to grow ……………… │        a block that grows is placed with free pages behind it
//!  │ block, grown        │ ………… │        and grows into them; the kernel gives memory where it is written
//! ```
//!
//! # Safety
//! As stated at each function.

use crate::page::state::{Free, State};
use crate::page::{PageHeap, Run};
use crate::span::{Entry, Kind, Layout, SpanList};
use core::cell::Cell;
use freestone_base::sync::Ordering;
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::{Os, Prefault, Target};

/// A block that grows gets this many times its size of address space, itself included.
const ROOM_FACTOR: u32 = 4;

/// A block that grows by at most this part gets the memory for it at once: a system call instead of a page fault for each OS page. What
/// grows in small steps is filled before it grows again; one that doubles its room may not be.
const POPULATE_SHARE: u32 = 4;

/// A block that grows may end with a whole huge page, if that is at most the first part of it while it is short, and the second when it is
/// longer than [`SLACK_PAGES`].
const SLACK_SHARE: (u32, u32) = (8, 64);

/// See [`SLACK_SHARE`]: 16 MiB.
const SLACK_PAGES: u32 = 256;

/// Dirty runs looked at for one that is nearly long enough.
const MIXED_SEARCHED: usize = 8;

/// A block is put together of dirty and other pages if at most this part of it is not dirty.
const MIXED_SHARE: u32 = 2;

/// The large blocks of an explicit heap. The page heap's lock guards it.
#[derive(Debug, Default)]
pub struct LargeList {
    blocks: SpanList,
    pages: Cell<u64>,
}

/// What became of a large block whose memory was to move to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It has moved: the old block is freed.
    Yes,
    /// It is where it was; both blocks are as good as before, but what the new one holds is undefined.
    No,
    /// It is where it was; the new block is gone.
    TargetLost,
}

/// The list that a large block is in, if it belongs to an explicit heap.
///
/// # Safety
/// - `page` starts a large block; under the lock.
unsafe fn list_of<'a>(layout: &Layout, page: u32) -> Option<&'a LargeList> {
    // SAFETY: a large block's owner is null or a list that lives as long as the block is in it.
    unsafe { (*layout.record(page)).owner.load(Ordering::Relaxed).cast::<LargeList>().as_ref() }
}

impl<O: Os> PageHeap<O> {
    /// Allocates `n_pages` for a large block that is going to grow: with as much address space again, several times, free behind it.
    /// `None` when that is not to be had.
    pub fn allocate_roomy(&self, n_pages: u32) -> Option<Run> {
        let layout = self.open()?;
        let room = n_pages.checked_mul(ROOM_FACTOR).filter(|room| self.could_hold(*room, 1))?;
        let state = self.state.lock();
        let huge_pages = self.huge_pages_for(room);
        self.take_clean(state, layout, n_pages, (room, huge_pages.max(1)), Kind::Large, huge_pages > 0)
    }

    /// Takes `n_pages` for a large block out of a dirty run that is too short and the free run behind it, or before it, whatever their
    /// kind: memory that is there is worth more than a block in one piece of a kind. The first page, or `None`.
    ///
    /// # Safety
    /// - The lock is held.
    pub(super) unsafe fn take_mixed(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Option<u32> {
        // SAFETY: the neighbours of a run's ends are ends of runs, or page 0, or at the frontier.
        unsafe {
            let (page, before, own, behind) =
                state.dirty.longest(layout).take(MIXED_SEARCHED).find_map(|(page, own)| {
                    let lacks = n_pages.checked_sub(own).filter(|lacks| *lacks <= n_pages / MIXED_SHARE)?;
                    let (next, last) = (page + own, &*layout.record(page - 1));
                    if next < state.frontier && (*layout.record(next)).kind.get().is_free_and_mapped() {
                        let behind = (*layout.record(next)).pages.get();
                        if behind >= lacks {
                            return Some((page, 0, own, lacks));
                        }
                    }
                    (last.kind.get().is_free_and_mapped() && last.pages.get() >= lacks).then_some((page, lacks, own, 0))
                })?;
            state.take(layout, page, own, Kind::Large);
            let is_huge = (*layout.record(page)).is_huge.get();
            if behind > 0 {
                state.take(layout, page + own, behind, Kind::Large);
            }
            if before > 0 {
                let first = (*layout.record(page - 1)).first.load(Ordering::Relaxed);
                let (all, was) = ((*layout.record(first)).pages.get(), Free::of(&*layout.record(first)));
                state.take(layout, first, all, Kind::Large);
                self.trim(state, layout, (first, all), (page - before, before), was, Kind::Large);
            }
            let start = page - before;
            state.label(layout, start, n_pages, Kind::Large);
            (*layout.record(start)).is_huge.set(is_huge);
            self.begin_large(state, layout, start);
            Some(start)
        }
    }

    /// Makes a large block `n_pages` long, or a little longer, by taking the free run behind it; `false` if there is none or it is too
    /// short.
    ///
    /// # Safety
    /// - `page` starts a large block of fewer than `n_pages` that is the caller's.
    pub unsafe fn extend(&self, page: u32, n_pages: u32) -> bool {
        let whole = self.to_huge_page_end(page, n_pages);
        let slack = if n_pages < SLACK_PAGES { n_pages / SLACK_SHARE.0 } else { n_pages / SLACK_SHARE.1 };
        let rounds = self.huge_pages_for(n_pages) > 0 && whole - n_pages <= slack;
        // SAFETY: the caller's promise.
        unsafe { (rounds && self.extend_to(page, whole)) || self.extend_to(page, n_pages) }
    }

    /// # Safety
    /// - As for [`PageHeap::extend`].
    unsafe fn extend_to(&self, page: u32, n_pages: u32) -> bool {
        let layout = self.layout();
        // SAFETY: the caller's promise.
        let all = unsafe { (*layout.record(page)).pages.get() };
        let (next, more) = (page + all, n_pages - all);
        if page as usize + n_pages as usize >= layout.n_pages {
            return false;
        }
        let Some(mut state) = self.keep_limits(self.state.lock(), more) else { return false };
        // SAFETY: the caller's promise; under the lock. The page behind a run starts a run, or is at the frontier.
        unsafe {
            if next >= state.frontier {
                // The block is the last thing before the frontier: grow under it.
                if self.commit(&mut state, layout, more).is_err() {
                    return false;
                }
            }
            if next >= state.frontier {
                return false;
            }
            let behind = &*layout.record(next);
            if !behind.kind.get().is_free_and_mapped() || behind.pages.get() < more {
                return false;
            }
            let is_clean = behind.kind.get() == Kind::Clean;
            if let Some(list) = list_of(layout, page) {
                list.pages.set(list.pages.get() + u64::from(more));
            }
            state.take(layout, next, more, Kind::Large);
            state.label(layout, page, n_pages, Kind::Large);
            drop(state);
            // What grows is written: its new part may have huge pages, and, if it is small, all its pages now.
            if self.huge_pages_for(n_pages) > 0 {
                self.ask_for_huge_pages(page, all, n_pages);
            }
            if is_clean && more <= all / POPULATE_SHARE {
                let _ =
                    self.os.prefault(layout.page_start(next), (more as usize) << PAGE_BYTES_LOG2, Prefault::Populate);
            }
        }
        true
    }

    /// Whether cutting a large block of `n_pages` down to `keep` gives back so little that it stays as it is: what growing by whole huge
    /// pages added.
    #[must_use]
    pub fn is_slack(&self, n_pages: u32, keep: u32) -> bool {
        n_pages - keep < self.huge_pages_for(n_pages)
    }

    /// Cuts the pages from `keep` on off a large block; they are dirty from now on.
    ///
    /// # Safety
    /// - `page` starts a large block of more than `keep` pages (at least 1) that is the caller's.
    pub unsafe fn shrink(&self, page: u32, keep: u32) {
        let layout = self.layout();
        let now = self.now_ms();
        let mut state = self.state.lock();
        // SAFETY: the caller's promise; under the lock.
        unsafe {
            let tail = Free::dirty(now, (*layout.record(page)).is_huge.get());
            let all = state.end_use(layout, page);
            if let Some(list) = list_of(layout, page) {
                list.pages.set(list.pages.get() - u64::from(all - keep));
            }
            state.label(layout, page, keep, Kind::Large);
            state.begin_use(Kind::Large, keep);
            state.insert(layout, page + keep, all - keep, tail);
        }
        drop(self.tidy(state, now));
        self.wake_for_dirty();
    }

    /// Moves the memory behind a large block to the start of another, without copying; the old block is freed, and clean.
    ///
    /// # Safety
    /// - Both are large blocks of the caller's, the new one not shorter. What [`Moved`] says is freed is used no more.
    pub unsafe fn relocate(&self, from: u32, to: u32) -> Moved {
        if self.settings.sandbox() {
            return Moved::No;
        }
        let layout = self.layout();
        // SAFETY: the caller's promise; in the end the old block's memory is gone, and reads as zero.
        unsafe {
            let record = &*layout.record(from);
            let n_pages = record.pages.get();
            let bytes = (n_pages as usize) << PAGE_BYTES_LOG2;
            if let Err(failed) = self.os.relocate(layout.page_start(from), bytes, layout.page_start(to)) {
                return self.after_failed_move(to, n_pages, failed.target);
            }
            let is_huge = record.is_huge.get() && !self.forget_huge_pages(from, n_pages);
            let mut state = self.state.lock();
            self.end_large(&mut state, layout, from);
            state.end_use(layout, from);
            state.insert(layout, from, n_pages, Free { is_huge, ..Free::CLEAN });
        }
        Moved::Yes
    }

    /// Gives a large block up whose first `n_pages` the kernel has unmapped, if it has.
    ///
    /// # Safety
    /// - `to` starts a large block of the caller's, of at least `n_pages`, which became what `target` says.
    unsafe fn after_failed_move(&self, to: u32, n_pages: u32, target: Target) -> Moved {
        let lost = match target {
            Target::Committed => return Moved::No,
            Target::Reserved => Free { kind: Kind::Reserved, ..Free::CLEAN },
            Target::Taken => Free { kind: Kind::None, ..Free::CLEAN },
        };
        let (layout, now) = (self.layout(), self.now_ms());
        let mut state = self.state.lock();
        // SAFETY: the caller's promise; under the lock. What is behind the unmapped pages was not touched.
        unsafe {
            let rest = Free::dirty(now, (*layout.record(to)).is_huge.get());
            self.end_large(&mut state, layout, to);
            let all = state.end_use(layout, to);
            state.label(layout, to, n_pages, Kind::None);
            if all > n_pages {
                state.insert(layout, to + n_pages, all - n_pages, rest);
            }
            state.insert(layout, to, n_pages, lost);
        }
        Moved::TargetLost
    }

    /// Enters a large block into the map and the counts.
    ///
    /// # Safety
    /// - `page` starts a large block that is the caller's; under the lock.
    pub(super) unsafe fn begin_large(&self, state: &mut State, layout: &Layout, page: u32) {
        state.stats.large_allocs += 1;
        state.last_large = page;
        // SAFETY: the caller's promise.
        unsafe {
            (*layout.record(page)).owner.store(core::ptr::null_mut(), Ordering::Relaxed);
            layout.map.set_one(page, Entry::LARGE);
        }
    }

    /// Takes a large block out of the map, the counts and its heap's list.
    ///
    /// # Safety
    /// - `page` starts a large block that is the caller's; under the lock.
    pub(super) unsafe fn end_large(&self, state: &mut State, layout: &Layout, page: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(list) = list_of(layout, page) {
                list.blocks.remove(layout, page);
                list.pages.set(list.pages.get() - u64::from((*layout.record(page)).pages.get()));
            }
            // Only the first page of a large block has an entry.
            layout.map.set_one(page, Entry::NONE);
        }
        state.stats.large_frees += 1;
    }

    /// Enters a large block into the list of an explicit heap; freeing it takes it out.
    ///
    /// # Safety
    /// - `page` starts a large block that is the caller's, and `list` stays where it is as long as the block lives.
    pub unsafe fn list_large(&self, page: u32, list: &LargeList) {
        let layout = self.layout();
        let _state = self.state.lock();
        // SAFETY: the caller's promise; the lock guards all such lists.
        unsafe {
            (*layout.record(page)).owner.store(core::ptr::from_ref(list).cast_mut().cast(), Ordering::Relaxed);
            list.blocks.push(layout, page);
            list.pages.set(list.pages.get() + u64::from((*layout.record(page)).pages.get()));
        }
    }

    /// Whether the large block at `page` is in `list`; without a list, whether it is in none.
    ///
    /// # Safety
    /// - `page` starts a large block that is the caller's.
    pub(crate) unsafe fn is_listed(&self, page: u32, list: Option<&LargeList>) -> bool {
        // SAFETY: the block is live, so its record is committed, and who owns it does not change.
        let owner = unsafe { (*self.layout().record(page)).owner.load(Ordering::Relaxed) };
        owner.cast_const().cast() == list.map_or(core::ptr::null(), core::ptr::from_ref)
    }

    /// The first large block of a list, by page, or 0.
    #[must_use]
    pub fn first_large(&self, list: &LargeList) -> u32 {
        let _state = self.state.lock();
        list.blocks.first()
    }

    /// Pages in the large blocks of a list.
    #[must_use]
    pub fn listed_pages(&self, list: &LargeList) -> u64 {
        let _state = self.state.lock();
        list.pages.get()
    }
}
