//! Free blocks as values: the code that holds the value owns the block.
//!
//! Long because: the values are made of each other, and only here can be taken apart.
#![allow(unsafe_code)]
//!
//! ```text
//!  FreeBlock   one block, of a known class
//!  FreeBatch   blocks of one class on their way into a bin
//!  FreeChain   blocks of one class on their way out of a bin
//!  Stretch     blocks of one span that lie beside each other, on their way to it
//!  InTransit   blocks of any class and any owner, as they come out of an inbox; the page map tells them apart
//! ```
//!
//! The constructors are unsafe: they rely on the program not to use a block that it freed. What is done with the value after that is
//! safe, because a value moves from one holder to the next and is never in two places.
//!
//! # Safety
//! A free block has room for two words (`span::free_node`), and only the holder of its value reads or writes them. A program
//! that frees a block twice, or writes to a free one, breaks this: two values name one block, and links lead anywhere. So a chain with a key
//! follows a link only to an address that the page map has as a small block's and that is marked as the chain's; it never follows more
//! links than it counted blocks; and a span refuses a block that it has back already.

use crate::misuse::Misuse;
use crate::size_class::block_bytes;
use crate::span::blocks::Taken;
use crate::span::free_node::{self, Chain, END_OF_BIN, Marked};
use crate::span::{Entry, Generation, View};
use core::ptr;
use freestone_base::inbox::{LinkKey, Node};

/// A small block that is out of its span and that no code uses. See the module header.
#[derive(Debug)]
#[must_use = "a free block that is dropped is lost"]
pub(crate) struct FreeBlock {
    node: *mut Node,
    class: usize,
}

impl FreeBlock {
    /// The block at `start`.
    ///
    /// # Safety
    /// - `start` is the start of a small block of `class`, below `N_CLASSES`, that is out of its span, and that no code uses from now on.
    #[inline(always)]
    pub(crate) unsafe fn new(start: *mut u8, class: usize) -> Self {
        Self { node: start.cast(), class }
    }

    /// The block as a node; the value keeps it.
    pub(crate) fn node(&self) -> *mut Node {
        self.node
    }

    /// Its size class.
    #[inline(always)]
    pub(crate) fn class(&self) -> usize {
        self.class
    }

    /// Where it starts.
    pub(crate) fn address(&self) -> usize {
        self.node.addr()
    }

    /// Whether it has the mark of a free block: it may have been free before.
    #[inline(always)]
    pub(crate) fn is_marked(&self) -> bool {
        // SAFETY: the block was out when the program freed it, or is free.
        unsafe { free_node::is_marked(self.node) }
    }

    /// What its mark says.
    #[inline]
    pub(crate) fn marked(&self) -> Marked {
        // SAFETY: the block is this value's.
        unsafe { free_node::marked(self.node) }
    }

    /// Whether it came out of an inbox with the mark of a block that may have been free before it was sent.
    #[inline]
    pub(crate) fn is_suspect(&self) -> bool {
        self.marked() == Marked::Suspect
    }

    /// Links it before `next`, for a bin.
    #[inline(always)]
    pub(crate) fn link(self, next: *mut Node, key: LinkKey) -> *mut Node {
        // SAFETY: the block is this value's, and its words are link and mark while it is free.
        unsafe { free_node::write_in_bin(self.node, next, key) };
        self.node
    }

    /// Overwrites its link. If the block is in a bin as well, because it was freed twice, that bin is found to be damaged when the block leaves it.
    pub(crate) fn overwrite_link(&self) {
        // SAFETY: the block is this value's, and its first word is a link while it is free.
        unsafe { (*self.node).next = ptr::null_mut() }
    }

    /// The block as a node that is linked to nothing yet.
    #[inline(always)]
    pub(crate) fn into_node(self) -> *mut Node {
        self.node
    }
}

/// Free blocks of one class that were taken out of a span, or of the chain of orphaned ones: one at least, once it is complete.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct FreeBatch {
    blocks: Chain,
    class: usize,
    is_zero: bool,
}

impl FreeBatch {
    /// Blocks that left their span; `None` if those are none.
    ///
    /// # Safety
    /// - The blocks are linked, of `class`, free, out of their spans, and the caller's to give away.
    pub(crate) unsafe fn new(taken: Taken, class: usize) -> Option<Self> {
        (taken.chain.len > 0).then_some(Self { blocks: taken.chain, class, is_zero: taken.is_zero })
    }

    /// No blocks of a class yet: for [`FreeBatch::push`].
    pub(crate) fn empty(class: usize) -> Self {
        Self { blocks: Chain::EMPTY, class, is_zero: false }
    }

    /// Adds a block of the class in front, linked with `key`.
    pub(crate) fn push(&mut self, block: FreeBlock, key: LinkKey) {
        debug_assert!(block.class == self.class);
        let first = block.link(self.blocks.first, key);
        let last = if self.blocks.len == 0 { first } else { self.blocks.last };
        self.blocks = Chain { first, last, len: self.blocks.len + 1 };
    }

    /// The first block if all of it but its link and mark reads as zero; else null.
    pub(crate) fn first_if_zero(&self) -> *mut u8 {
        if self.is_zero { self.blocks.first.cast() } else { ptr::null_mut() }
    }

    /// How many blocks.
    pub(crate) fn len(&self) -> u32 {
        self.blocks.len
    }

    /// The class of the blocks.
    pub(crate) fn class(&self) -> usize {
        self.class
    }

    /// Links the last block before `next`. Returns the first. The others are linked with `key`.
    pub(crate) fn link(self, next: *mut Node, key: LinkKey) -> *mut Node {
        // SAFETY: the last block is this value's and free, so its words are link and mark.
        unsafe { free_node::write_in_bin(self.blocks.last, next, key) };
        self.blocks.first
    }
}

/// Free blocks of one class that a bin gave up, in the order of the bin.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct FreeChain {
    /// The link to it.
    first: *mut Node,
    n_left: u32,
    class: usize,
    key: LinkKey,
    /// Address of the block before the first, which is in the chain no more, or 0.
    before: usize,
}

impl FreeChain {
    /// The first `n` blocks of those linked from `first`, or fewer where the links end.
    ///
    /// # Safety
    /// - `first` is the end or a free block of `class` that is the caller's to give away, as are the `n - 1` behind it; they came out of a bin
    ///   with this key.
    pub(crate) unsafe fn new(first: *mut Node, n: u32, class: usize, key: LinkKey) -> Self {
        Self { first, n_left: n, class, key, before: 0 }
    }

    /// A chain of one, of which no link is read and no mark is asked.
    pub(crate) fn of(block: FreeBlock) -> Self {
        Self { class: block.class, first: block.into_node(), n_left: 1, key: LinkKey::PLAIN, before: 0 }
    }

    /// The first block, or what a damaged link says; null when no block is left.
    #[inline]
    pub(crate) fn first(&self) -> *mut Node {
        if self.n_left == 0 || self.first == END_OF_BIN { ptr::null_mut() } else { free_node::not_chosen(self.first) }
    }

    /// What its links are encoded with; plain if nothing is known of its blocks' marks.
    #[inline]
    pub(crate) fn key(&self) -> LinkKey {
        self.key
    }

    /// How many blocks are left, unless the links end before.
    #[inline]
    pub(crate) fn n_left(&self) -> u32 {
        self.n_left
    }

    /// The class of the blocks.
    pub(crate) fn class(&self) -> usize {
        self.class
    }

    /// Takes the first block off and looks up its owner: `view` covers it, and `tag` is the heap's.
    pub(crate) fn pop(&mut self, view: &View, tag: u32) -> Option<Found> {
        let node = self.first();
        if node.is_null() {
            return None;
        }
        let found = Found::find(node, view, tag);
        if !self.key.is_plain() {
            if let Some(wrong) = found.wrong(view, Marked::InBin, (self.before, self.class)) {
                self.n_left = 0;
                return Some(wrong);
            }
        }
        // SAFETY: the block is this chain's, and its first word links to the next.
        self.advance(1, unsafe { free_node::next(node, self.key) }, node);
        Some(found)
    }

    /// Takes the first block off if it is as it was put into its bin, and `find` knows what its page's entry stands for. `None` of any other, which stays
    /// first, and where no block is left. `view` covers the block; `find` gives small spans' classes only.
    #[inline(always)]
    pub(crate) fn pop_if<T>(
        &mut self,
        view: &View,
        find: impl FnOnce(Entry) -> Option<(T, usize)>,
    ) -> Option<(T, FreeBlock)> {
        let node = self.first();
        let (found, class) = find(view.entry_of_block(node.addr())?)?;
        // SAFETY: the block is this chain's, and its span is there: its page's entry has a class.
        if !self.key.is_plain() && unsafe { !free_node::is_in_bin(node) } {
            return None;
        }
        // SAFETY: as above, and its first word links to the next.
        self.advance(1, unsafe { free_node::next(node, self.key) }, node);
        Some((found, FreeBlock { node, class }))
    }

    /// The block behind the first; the chain must not be empty.
    #[inline]
    pub(crate) fn second(&self) -> *mut Node {
        // SAFETY: as in `pop`.
        unsafe { free_node::next(self.first(), self.key) }
    }

    /// The block that linked to the first, which is in the chain no more, or null.
    #[inline]
    pub(crate) fn before(&self) -> *mut Node {
        ptr::without_provenance_mut(self.before)
    }

    /// Continues at `first`, with `n` blocks fewer: they went to their span. `before` linked to it.
    #[inline]
    pub(crate) fn advance(&mut self, n: u32, first: *mut Node, before: *mut Node) {
        self.n_left -= n;
        self.first = first;
        self.before = before.addr();
    }

    /// Leaves the blocks that are left where they are, for good: nothing says which they are.
    pub(crate) fn abandon(&mut self) {
        self.n_left = 0;
    }
}

/// Free blocks of one class that lie beside each other, of whose contents nothing is known: the kernel may have taken them.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct Stretch {
    first: FreeBlock,
    n: u32,
}

impl Stretch {
    /// Where the first block starts.
    pub(crate) fn address(&self) -> usize {
        self.first.address()
    }

    /// How many blocks.
    pub(crate) fn len(&self) -> u32 {
        self.n
    }

    /// The class of the blocks.
    pub(crate) fn class(&self) -> usize {
        self.first.class
    }

    /// Its first block, which is marked as that.
    pub(crate) fn into_node(self) -> *mut Node {
        self.first.into_node()
    }

    /// Each block.
    pub(crate) fn into_blocks(self) -> impl Iterator<Item = FreeBlock> {
        let (first, class) = (self.first.node, self.first.class);
        let at = move |index| first.wrapping_byte_add(index as usize * block_bytes(class));
        (0..self.n).map(move |index| FreeBlock { node: at(index), class })
    }
}

/// A block that came out of a bin or an inbox, and its owner according to the page map.
#[derive(Debug)]
pub(crate) enum Found {
    /// The block's span belongs to this heap.
    Own(FreeBlock),
    /// The block's span has this owner.
    Other(FreeBlock, Generation),
    /// The block is the first of a stretch.
    Stretch(Stretch),
    /// The block at this address is in no small span: it was freed twice, and its span is gone. With a key, the chain ends here.
    Lost(usize),
    /// The program did this to the block at this address, and the chain ends here.
    Wrong(Misuse, usize),
}

impl Found {
    /// Looks up the owner of a free block. `view` covers the block, and `tag` is the heap's.
    #[inline]
    pub(super) fn find(node: *mut Node, view: &View, tag: u32) -> Self {
        let entry = view.entry_of_block(node.addr()).unwrap_or(Entry::NONE);
        match (entry.class_if_owned(tag), entry.class()) {
            (Some(class), _) => Self::Own(FreeBlock { node, class }),
            (None, Some(class)) => Self::Other(FreeBlock { node, class }, entry.generation()),
            (None, None) => Self::Lost(node.addr()),
        }
    }

    /// The stretch that a block out of an inbox is the first of, or the block as it is. `view` covers it.
    #[inline]
    pub(super) fn or_stretch(self, view: &View) -> Self {
        let (Self::Own(block) | Self::Other(block, _)) = &self else { return self };
        let (node, class) = (block.node, block.class);
        // SAFETY: the block lies in a small span, and is the chain's.
        let Marked::Stretch(n) = (unsafe { free_node::marked(node) }) else { return self };
        let last = node.addr().saturating_add((n as usize - 1) * block_bytes(class));
        if view.entry_of_block(last) != view.entry_of_block(node.addr()) {
            return Self::Wrong(Misuse::link_written(block_bytes(class)), node.addr());
        }
        Self::Stretch(Stretch { first: FreeBlock { node, class }, n })
    }

    /// What is wrong with a block that a link led to, which the block of address and class `before` had: the link is damaged, or the block's mark
    /// is not that of the chain.
    #[inline]
    pub(super) fn wrong(&self, view: &View, expected: Marked, before: (usize, usize)) -> Option<Self> {
        let block = match self {
            Self::Own(block) | Self::Other(block, _) => block,
            // Of a block whose span is gone nothing can be read.
            Self::Lost(address) if view.entry_of_block(*address).is_some() => return Some(Self::Lost(*address)),
            _ => return Some(Self::Wrong(Misuse::link_written(block_bytes(before.1)), before.0)),
        };
        // SAFETY: the block lies in a small span, and is the chain's.
        let marked = unsafe { free_node::marked(block.node) };
        let is_sent = matches!(marked, Marked::Suspect | Marked::Stretch(_));
        if marked == expected || expected == Marked::InTransit && is_sent {
            return None;
        }
        let block_bytes = block_bytes(block.class);
        Some(match marked {
            Marked::No => Self::Wrong(Misuse::link_written(block_bytes), block.address()),
            _ => Self::Wrong(Misuse::DoubleFree { block_bytes }, block.address()),
        })
    }
}

#[cfg(test)]
mod tests;
