//! Blocks on their way from the thread that frees them to the thread that owns their spans.
#![allow(unsafe_code)]
//!
//! ```text
//!  Batch       up to 32 blocks of one owner that a thread has freed: linked and marked, and their addresses in the order of the frees
//!    │ link    every block must still be as it was buffered
//!  Handover    the same blocks
//!    │ push    one atomic operation
//!  BlockInbox  what other threads have handed over to a heap
//!    │ take
//!  InTransit   blocks of any class and any owner; the page map tells them apart
//! ```
//!
//! A free of another thread's block writes to the block, and reads it only to see whether it is marked: what it collects is in the batch. So a
//! block that is freed again, or written to, while it is buffered cannot damage the batch: it is left out and reported when the batch is linked.
//!
//! A block is written once: its link, its mark, and in the mark the block that was buffered sixteen before it, which comes sixteen later when the owner drains its
//! inbox. For the first sixteen of a batch that is one of the batch before, if the same owner got that.
//!
//! # Safety
//! A block of a batch, a handover or an inbox is free, and belongs to that value. A program that breaks this is found by the marks, as in
//! `free_block`: no link is followed to an address that the page map does not have as a small block's.

use crate::span::View;
use crate::span::free_node::{self, Chain, Marked};
use crate::thread::free_block::{Found, FreeBlock};
use core::cell::Cell;
use core::ptr;
use freestone_base::inbox::{LinkKey, Node};

/// The most blocks of a batch.
pub(crate) const BATCH: usize = 32;

/// How many blocks before its turn a block is prefetched.
const AHEAD: u8 = 16;

/// Blocks of one owner that a thread has freed and not yet handed over. See the module header. Zeroed memory is an empty one.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Where the next block is noted.
    next: Cell<RingOffset>,
    /// Where the batch's first block is noted: where the next one would be, if the batch has none or is full.
    first: Cell<RingOffset>,
    /// The block that was added last, which the next one links to; null if there is none.
    last: Cell<*mut Node>,
    /// A ring of blocks, which goes on from batch to batch: where the batch has none yet, those of the batch before.
    ring: [Noted; BATCH],
}

/// A block that is noted, in as many bytes as make a ring of 256.
#[derive(Debug)]
#[repr(align(8))]
struct Noted(Cell<*mut Node>);

/// Where a block is noted: the offset in the ring in bytes, which wraps as the ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct RingOffset(u8);

const _: () = assert!(size_of::<[Noted; BATCH]>() == 1 << u8::BITS);

impl RingOffset {
    const BYTES: u8 = size_of::<Noted>() as u8;

    /// The one `n` blocks behind it.
    #[inline(always)]
    fn ahead(self, n: u8) -> Self {
        Self(self.0.wrapping_add(n * Self::BYTES))
    }

    /// The one `n` blocks before it.
    #[inline(always)]
    fn back(self, n: u8) -> Self {
        Self(self.0.wrapping_sub(n * Self::BYTES))
    }
}

impl Batch {
    /// No blocks.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            next: Cell::new(RingOffset(0)),
            first: Cell::new(RingOffset(0)),
            last: Cell::new(ptr::null_mut()),
            ring: [const { Noted(Cell::new(ptr::null_mut())) }; BATCH],
        }
    }

    /// How many blocks.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        if self.last.get().is_null() {
            return 0;
        }
        let to_last = self.next.get().back(1).0.wrapping_sub(self.first.get().0);
        usize::from(to_last / RingOffset::BYTES) + 1
    }

    /// What is noted at an offset.
    #[inline(always)]
    fn at(&self, offset: RingOffset) -> &Cell<*mut Node> {
        // SAFETY: the offset is that of an element of the ring.
        let noted = unsafe { &*self.ring.as_ptr().wrapping_byte_add(usize::from(offset.0)) };
        &noted.0
    }

    /// Begins a batch for another owner than that of the batch before, with `block` as the first: so none of the batch before is named.
    pub(crate) fn turn_to(&self, block: &FreeBlock) {
        (1..=AHEAD).for_each(|back| self.at(self.next.get().back(back)).set(block.node()));
    }

    /// Adds a block, encoding its link with `key`. Returns whether the batch is full: then it must be linked before the next.
    #[inline(always)]
    #[must_use]
    pub(crate) fn push(&self, block: FreeBlock, key: LinkKey) -> bool {
        let (offset, node) = (self.next.get(), block.into_node());
        let ahead = self.at(offset.back(AHEAD)).get();
        // SAFETY: the block is free, and was the value's.
        unsafe { free_node::write_in_transit(node, self.last.replace(node), ahead, key) };
        self.at(offset).set(node);
        self.next.set(offset.ahead(1));
        offset.ahead(1) == self.first.get()
    }

    /// The blocks, in the order in which they were added.
    fn iter(&self) -> impl Iterator<Item = *mut Node> {
        (0..self.len() as u8).map(|n| self.at(self.first.get().ahead(n)).get())
    }

    /// Whether a block is in the batch.
    pub(crate) fn holds(&self, block: *mut Node) -> bool {
        self.iter().any(|at| at == block)
    }

    /// Whether each block is as it was buffered. There is one.
    ///
    /// A function of its own, so that its loop has all registers.
    #[inline(never)]
    fn is_intact(&self, key: LinkKey) -> bool {
        let (mut offset, next) = (self.first.get(), self.next.get());
        let mut before = ptr::null_mut();
        loop {
            let node = self.at(offset).get();
            // SAFETY: the program gave the block up, and it has not left the batch.
            if unsafe { !free_node::is_as_buffered(node, before, key) } {
                return false;
            }
            (before, offset) = (node, offset.ahead(1));
            if offset == next {
                return true;
            }
        }
    }

    /// Links the blocks that are as they were buffered. Calls `wrong` with the address of each other one.
    #[cold]
    #[inline(never)]
    fn link_intact(&self, key: LinkKey, mut wrong: impl FnMut(Marked, usize)) -> Chain {
        let (mut chain, mut before) = (Chain::EMPTY, ptr::null_mut());
        for node in self.iter() {
            // SAFETY: the program gave the block up, and it has not left the batch.
            if unsafe { free_node::is_as_buffered(node, before, key) } {
                // SAFETY: the block is the batch's, and as it was left.
                unsafe { chain.push(node, key) };
            } else {
                // SAFETY: as above.
                wrong(unsafe { free_node::marked(node) }, node.addr());
            }
            before = node;
        }
        chain
    }

    /// Empties the batch. Its blocks have been linked with `key` since they were pushed. Calls `wrong` with the address of each block that is not as
    /// it was buffered, and leaves it out. `None` if no block is left.
    pub(crate) fn link(&self, key: LinkKey, wrong: impl FnMut(Marked, usize)) -> Option<Handover> {
        let len = self.len() as u32;
        if len == 0 {
            return None;
        }
        // Without a key nothing tells whether links are as they were.
        let chain = if key.is_plain() || self.is_intact(key) {
            Chain { first: self.last.get(), last: self.at(self.first.get()).get(), len }
        } else {
            self.link_intact(key, wrong)
        };
        self.first.set(self.next.get());
        self.last.set(ptr::null_mut());
        (chain.len > 0).then_some(Handover { chain, key })
    }
}

/// Blocks that are linked for an inbox, one at least.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct Handover {
    chain: Chain,
    key: LinkKey,
}

impl Handover {
    /// The blocks of a chain, one at least, whose links are encoded with `key`.
    ///
    /// # Safety
    /// - The blocks are marked as in transit, linked from first to last, and the caller's to give away.
    pub(crate) unsafe fn new(chain: Chain, key: LinkKey) -> Self {
        Self { chain, key }
    }

    /// The blocks, as they come out of an inbox.
    pub(crate) fn into_blocks(self) -> InTransit {
        InTransit::new(self.chain.first, self.key)
    }
}

mod inbox;
pub(crate) use inbox::BlockInbox;

/// Blocks of any class on their way to their spans, as they came out of an inbox. See the module header.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct InTransit {
    first: *mut Node,
    key: LinkKey,
    /// Address and class of the block before the first, which is in the chain no more, or 0.
    before: (usize, usize),
}

impl InTransit {
    /// No blocks.
    pub(crate) const NONE: Self = Self::new(ptr::null_mut(), LinkKey::PLAIN);

    /// The blocks linked with `key` from `first`, up to a link that is null; an inbox's or a handover's.
    const fn new(first: *mut Node, key: LinkKey) -> Self {
        Self { first, key, before: (0, 0) }
    }

    /// Calls `visit` with each block that was handed over, its class, and what its mark says, until it returns `false`. Returns the last block; `None` if `visit`
    /// returned `false`, or a block is not as it was handed over. `view` covers the blocks.
    pub(crate) fn last(
        &self,
        view: &View,
        mut visit: impl FnMut(*mut Node, usize, Marked) -> bool,
    ) -> Option<*mut Node> {
        let mut node = self.first;
        loop {
            let class = view.small_class(node.addr())?;
            // SAFETY: the block lies in a small span, and is the chain's.
            let marked = unsafe { free_node::marked(node) };
            if !matches!(marked, Marked::InTransit | Marked::Suspect | Marked::Stretch(_))
                || !visit(node, class, marked)
            {
                return None;
            }
            // SAFETY: as above.
            unsafe { free_node::prefetch_ahead(node) };
            // SAFETY: as above: its first word is its link.
            let next = unsafe { free_node::next(node, self.key) };
            if next.is_null() {
                return Some(node);
            }
            node = next;
        }
    }

    /// Links `blocks` behind the last block, which is `last`. They have the same key.
    pub(crate) fn before(self, last: *mut Node, blocks: InTransit) -> InTransit {
        debug_assert!(self.key == blocks.key);
        // SAFETY: the block is the chain's, and its first word is its link.
        unsafe { (*last).next = self.key.apply(blocks.first) };
        self
    }

    /// The address of the first block, which was handed over last, or 0.
    pub(crate) fn newest(&self) -> usize {
        self.first.addr()
    }

    /// Whether no block is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Takes the first block off if it is as most are: in a span of this heap, and as it was sent. `None` of any other, which stays first, and where no
    /// block is left. `view` and `tag` are those of [`InTransit::pop`].
    #[inline(always)]
    pub(crate) fn pop_own(&mut self, view: &View, tag: u32) -> Option<FreeBlock> {
        let node = self.first;
        let class = view.entry_of_block(node.addr())?.class_if_owned(tag)?;
        // SAFETY: the block is this chain's, and its span is there: its page's entry is this heap's.
        if unsafe { !free_node::is_in_transit(node) } {
            return None;
        }
        self.before = (node.addr(), class);
        self.take_first();
        // SAFETY: the block is free, was this chain's, and lies in a span of `class`.
        Some(unsafe { FreeBlock::new(node.cast(), class) })
    }

    /// Takes the first block off and looks up its owner: `view` covers it, and `tag` is the heap's. The block that the sender named is
    /// prefetched meanwhile.
    #[inline]
    pub(crate) fn pop(&mut self, view: &View, tag: u32) -> Option<Found> {
        let node = self.first;
        if node.is_null() {
            return None;
        }
        let found = Found::find(node, view, tag);
        if !self.key.is_plain() {
            if let Some(wrong) = found.wrong(view, Marked::InTransit, self.before) {
                self.first = ptr::null_mut();
                return Some(wrong);
            }
        }
        if let Found::Own(block) | Found::Other(block, _) = &found {
            self.before = (block.address(), block.class());
        }
        let found = found.or_stretch(view);
        if let Found::Wrong(..) = found {
            self.first = ptr::null_mut();
            return Some(found);
        }
        self.take_first();
        Some(found)
    }

    /// Takes the first block off, and prefetches the block that the sender named.
    #[inline(always)]
    fn take_first(&mut self) {
        let node = self.first;
        // SAFETY: the block is this chain's: it is marked, and its first word links to the next.
        self.first = unsafe { free_node::next(node, self.key) };
        // SAFETY: as above.
        unsafe { free_node::prefetch_ahead(node) };
    }
}

#[cfg(test)]
mod tests;
