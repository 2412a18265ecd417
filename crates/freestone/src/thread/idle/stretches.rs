//! Blocks in the bitmap that lie beside each other, and their OS pages.
#![allow(unsafe_code)]
//!
//! # Safety
//! Each block whose bit is set was taken out of an inbox: it is free, and belongs to whoever looks through that inbox, with all of its class's size. A span of which
//! a block is out stays where it is.

use super::bits::Bits;
use crate::shared::Shared;
use crate::size_class::{GRANULE_BYTES, block_bytes};
use crate::span::View;
use crate::span::free_node::{self, Chain};
use crate::thread::in_transit::Handover;
use freestone_base::align;
use freestone_base::inbox::{LinkKey, Node};
use freestone_os::{MemoryRange, Os};

/// The stretches that are purged with one call.
const AT_ONCE: usize = 32;

/// Stretches that are purged together.
pub(super) struct Purging<'a, O: Os> {
    shared: &'a Shared<O>,
    ranges: [MemoryRange; AT_ONCE],
    n: usize,
}

impl<'a, O: Os> Purging<'a, O> {
    /// None yet.
    pub(super) fn of(shared: &'a Shared<O>) -> Self {
        Self { shared, ranges: [MemoryRange::EMPTY; AT_ONCE], n: 0 }
    }

    /// Adds OS pages of which nothing is needed.
    pub(super) fn add(&mut self, range: MemoryRange) {
        if self.n == self.ranges.len() {
            self.purge();
        }
        if let Some(place) = self.ranges.get_mut(self.n) {
            *place = range;
            self.n += 1;
        }
    }

    /// Purges what was added.
    pub(super) fn purge(&mut self) {
        // SAFETY: the ranges are whole OS pages inside blocks that were taken out of an inbox, beside the words that are needed.
        unsafe { self.shared.pages.purge_blocks(self.ranges.get(..self.n).unwrap_or_default()) };
        self.n = 0;
    }
}

/// Blocks of one span that lie beside each other.
pub(super) struct BesideEachOther {
    pub(super) first: *mut Node,
    pub(super) n: u32,
    pub(super) block: usize,
}

impl BesideEachOther {
    /// The whole OS pages in it, but for those with the words of its first block.
    pub(super) fn os_pages(&self, os_page_bytes: usize) -> MemoryRange {
        let start = self.first.addr();
        let from = align::up(start + GRANULE_BYTES, os_page_bytes);
        let to = align::down(start + self.n as usize * self.block, os_page_bytes);
        let bytes = to.saturating_sub(from);
        MemoryRange { start: self.first.cast::<u8>().wrapping_add(from - start), bytes }
    }
}

/// Blocks that are linked to be handed over.
pub(super) struct Linking {
    chain: Chain,
    key: LinkKey,
}

impl Linking {
    /// None yet; their links will have this key.
    pub(super) fn with(key: LinkKey) -> Self {
        Self { chain: Chain::EMPTY, key }
    }

    /// Adds a stretch: its first block, which says how many there are.
    pub(super) fn add(&mut self, stretch: &BesideEachOther) {
        // SAFETY: the block was handed over, and is the caller's.
        unsafe { free_node::mark_stretch(stretch.first, stretch.n) };
        // SAFETY: as above.
        unsafe { self.chain.push(stretch.first, self.key) };
    }

    /// Adds each block of a stretch.
    pub(super) fn add_each(&mut self, stretch: &BesideEachOther) {
        for index in 0..stretch.n as usize {
            let node = stretch.first.wrapping_byte_add(index * stretch.block);
            // SAFETY: the block was handed over, and is the caller's.
            unsafe { free_node::write_in_transit(node, self.chain.first, node, self.key) };
            // SAFETY: as above.
            unsafe { self.chain.push(node, self.key) };
        }
    }

    /// What was added, to be given away; `None` if nothing was.
    pub(super) fn finish(self) -> Option<Handover> {
        // SAFETY: the blocks are marked, linked from first to last, and this value's.
        (self.chain.len > 0).then(|| unsafe { Handover::new(self.chain, self.key) })
    }
}

/// The blocks whose bits are set, in the order of their addresses, each with those beside it.
pub(super) struct Stretches<'a> {
    bits: &'a Bits<'a>,
    view: &'a View,
    /// The granule from which on they are looked for.
    at: usize,
}

impl<'a> Stretches<'a> {
    /// All of them.
    pub(super) fn of(bits: &'a Bits<'a>, view: &'a View) -> Self {
        Self { bits, view, at: 0 }
    }
}

impl Iterator for Stretches<'_> {
    type Item = BesideEachOther;

    fn next(&mut self) -> Option<BesideEachOther> {
        let granule = self.bits.next(self.at)?;
        let layout = self.bits.layout();
        let first = layout.base.wrapping_add(granule * GRANULE_BYTES).cast::<Node>();
        let (page, entry) = self.view.page_of_block(first.addr())?;
        let block = block_bytes(entry.class()?);
        // SAFETY: a block that starts in the page is out, so the page is in a small span, whose records all have the first page right.
        let first_page = |page| unsafe { &*layout.record(page) }.first_page();
        let span = first_page(page);
        let (mut n, mut end, mut last_page) = (1, first.addr() + block, page);
        while self.bits.is_set(end) {
            let Some((page, _)) = self.view.page_of_block(end) else { break };
            if page != last_page && first_page(page) != span {
                break;
            }
            (n, end, last_page) = (n + 1, end + block, page);
        }
        self.at = (end - layout.base.addr()) / GRANULE_BYTES;
        Some(BesideEachOther { first, n, block })
    }
}
