//! A workload under way: its heaps, its blocks and their contents, and the checks of both.
#![allow(unsafe_code)]
//!
//! # Safety
//! Heaps and blocks are the play's, which runs in one thread; a block is in `blocks` from its allocation to its free.

use crate::page::PageStats;
use crate::testing::{World, fill, is_filled};
use crate::thread::heap::own::Own;
use crate::thread::life::succession::Which;
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::fake::Fake;
use std::vec::Vec;

/// Every `STEP`-th byte of a block is written and checked, and the last one.
const STEP: usize = 1000;

/// A block that the program holds.
#[derive(Clone, Copy)]
pub(super) struct Block {
    start: *mut u8,
    bytes: usize,
    fill: u8,
}

impl Block {
    fn offsets(bytes: usize) -> impl Iterator<Item = usize> {
        (0..bytes).step_by(STEP).chain([bytes - 1])
    }

    fn fill(&self) {
        Self::offsets(self.bytes).for_each(|at| fill(self.start.wrapping_add(at), self.fill, 1));
    }

    fn assert_intact(&self, bytes: usize) {
        let is_intact = Self::offsets(bytes.min(self.bytes))
            .filter(|at| at % STEP == 0)
            .all(|at| is_filled(self.start.wrapping_add(at), self.fill, 1));
        assert!(is_intact, "a block of {} bytes at {:?} has lost its contents", self.bytes, self.start);
    }
}

/// A workload under way.
pub(super) struct Play<'w> {
    pub(super) world: &'w World,
    heaps: Vec<Own<'w, Fake>>,
    pub(super) blocks: Vec<Block>,
    n_blocks: usize,
}

impl<'w> Play<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        Self { world, heaps: Vec::new(), blocks: Vec::new(), n_blocks: 0 }
    }

    pub(super) fn create(&mut self) -> Option<Own<'w, Fake>> {
        let heap = self.world.try_heap()?;
        self.heaps.push(heap);
        Some(heap)
    }

    pub(super) fn end_heap(&mut self, heap: Own<'w, Fake>) {
        self.heaps.retain(|it| !core::ptr::eq(it.heap(), heap.heap()));
        // SAFETY: the heap is not used afterwards.
        unsafe { self.world.threads.end(heap) };
    }

    pub(super) fn allocate(&mut self, heap: Own<'_, Fake>, bytes: usize, align: usize) {
        let block = heap.allocate(bytes, align);
        if block.start.is_null() {
            return;
        }
        assert!(block.start.addr().is_multiple_of(align));
        let is_zero = || Block::offsets(bytes).all(|at| is_filled(block.start.wrapping_add(at), 0, 1));
        assert!(!block.zero || is_zero(), "memory said to be zero is not");
        self.n_blocks += 1;
        let block = Block { start: block.start, bytes, fill: self.n_blocks as u8 | 1 };
        block.fill();
        self.blocks.push(block);
    }

    pub(super) fn resize(&mut self, heap: Own<'_, Fake>, at: usize, bytes: usize) {
        let Some(block) = self.blocks.get_mut(at) else { return };
        // SAFETY: the block is in use.
        let moved = unsafe { heap.reallocate(block.start, bytes, 1) };
        if moved.is_null() {
            return block.assert_intact(block.bytes);
        }
        block.start = moved;
        block.assert_intact(bytes);
        block.bytes = bytes;
        block.fill();
    }

    /// Frees every `nth` block.
    pub(super) fn free(&mut self, heap: Own<'_, Fake>, nth: usize) {
        let mut at = 0;
        self.blocks.retain(|block| {
            at += 1;
            if at % nth != 0 {
                return true;
            }
            block.assert_intact(block.bytes);
            // SAFETY: the block is in use, and not any more.
            unsafe { heap.free(block.start) };
            false
        });
    }

    pub(super) fn purge(&self) {
        self.heaps.iter().for_each(|heap| Which::All.empty(*heap));
        self.world.threads.purge(&self.world.shared, Which::All);
    }

    pub(super) fn check(&self) {
        self.blocks.iter().for_each(|block| block.assert_intact(block.bytes));
        self.world.check().unwrap();
        assert!(self.world.os().is_untouched_outside(), "memory that is not mapped was written");
    }

    /// Frees everything and gives it back, then compares the page heap's counts with the kernel's. The kernel has `left_over` bytes mapped that
    /// are in no count.
    pub(super) fn end(mut self, left_over: usize) {
        if self.heaps.is_empty() && self.create().is_none() {
            panic!("no heap can be made although the kernel no longer fails");
        }
        let heap = self.heaps[0];
        self.free(heap, 1);
        while let Some(heap) = self.heaps.last().copied() {
            self.end_heap(heap);
        }
        self.purge();
        self.check();
        let pages = &self.world.shared.pages;
        let PageStats { small_pages, large_pages, dirty_pages, purging_pages, .. } = pages.stats();
        assert_eq!((small_pages, large_pages, dirty_pages, purging_pages), (0, 0, 0, 0), "something is lost");
        assert_eq!(
            self.world.os().committed_bytes() - left_over,
            mapped_bytes(self.world),
            "the counts are not what the kernel has mapped"
        );
    }
}

/// Bytes that are mapped, as the page heap's counts tell.
fn mapped_bytes(world: &World) -> usize {
    let pages = &world.shared.pages;
    let stats = pages.stats();
    let in_runs = stats.metadata_pages + stats.free_with_memory() + stats.clean_pages + stats.guard_pages;
    // Guards that the kernel did not remove when their pages were needed.
    let given_up = pages.inspect(|state| state.n_given_up());
    ((in_runs as usize + given_up) << PAGE_BYTES_LOG2) + pages.inspect(|state| state.runs.metadata().bytes())
}
