//! The large blocks of an explicit heap.
#![allow(unsafe_code)]
//!
//! # Safety
//! A large block's record points to the list that it is in, which stays where it is as long as the block is in it: that is what a [`PinnedList`]
//! says. The page heap's lock guards all lists.

use crate::page::runs::{Extent, Runs};
use crate::span::{Kind, PageIndex, Span, SpanList};
use core::cell::Cell;
use core::ptr;
use freestone_base::sync::Ordering;
use freestone_base::units::Pages;

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct LargeList {
    blocks: SpanList,
    pages: Cell<u64>,
}

/// A list that stays where it is as long as there are blocks in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedList<'a>(&'a LargeList);

impl PinnedList<'_> {
    /// Puts a large block into the list.
    pub(super) fn add(self, runs: &Runs, block: Extent) {
        let owner = ptr::from_ref(self.0).cast_mut().cast();
        runs.record(block.first).owner.store(owner, Ordering::Relaxed);
        runs.push(&self.0.blocks, block.first);
        self.0.grow(block.pages);
    }
}

impl LargeList {
    /// The list that a large block is in, if it belongs to an explicit heap.
    pub(super) fn of(block: &Span) -> Option<&Self> {
        if block.kind.get() != Kind::Large {
            return None;
        }
        // SAFETY: The owner of a large block is null, or a list that stays where it is as long as the block is in it (`PinnedList::add`).
        unsafe { block.owner.load(Ordering::Relaxed).cast::<Self>().as_ref() }
    }

    /// Whether `block` is in this list; without a list, whether it is in none.
    pub(super) fn has(list: Option<&Self>, block: &Span) -> bool {
        let owner = block.owner.load(Ordering::Relaxed).cast_const().cast();
        owner == list.map_or(ptr::null(), ptr::from_ref)
    }

    /// This list, so that blocks can be added.
    ///
    /// # Safety
    /// - The list stays where it is as long as there are blocks in it.
    #[must_use]
    pub(crate) unsafe fn pinned(&self) -> PinnedList<'_> {
        PinnedList(self)
    }

    /// Takes a large block out of this list.
    pub(super) fn remove(&self, runs: &Runs, block: Extent) {
        runs.remove(&self.blocks, block.first);
        self.shrink(block.pages);
    }

    /// Notes that a block of this list has `more` pages.
    pub(super) fn grow(&self, more: Pages) {
        self.pages.set(self.pages.get() + u64::from(more.0));
    }

    /// Notes that a block of this list has lost pages.
    pub(super) fn shrink(&self, less: Pages) {
        self.pages.set(self.pages.get() - u64::from(less.0));
    }

    /// The first block.
    pub(super) fn first(&self) -> Option<PageIndex> {
        self.blocks.first()
    }

    /// Pages in all blocks.
    pub(super) fn pages(&self) -> u64 {
        self.pages.get()
    }
}

#[cfg(test)]
mod tests;
