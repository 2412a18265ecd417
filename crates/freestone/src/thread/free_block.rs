//! Free blocks as values: the code that holds the value owns the block.
#![allow(unsafe_code)]
//!
//! ```text
//!  FreeBlock   one block, of a known class
//!  FreeBatch   blocks of one class on their way into a bin
//!  FreeChain   blocks of one class on their way out of a bin
//!  InTransit   blocks of any class and any owner, as they come out of an inbox; the page map tells them apart
//! ```
//!
//! The constructors are unsafe: they rely on the program not to use a block that it freed. What is done with the value after that is
//! safe, because a value moves from one holder to the next and is never in two places.
//!
//! # Safety
//! A free block has room for two words (`GRANULE_BYTES`), and only the holder of its value reads or writes them. A program
//! that frees a block twice breaks this: then two values name one block, and their links may form a ring. So a chain never follows more
//! links than it counted blocks, and a span refuses a block that it has back already.

use crate::size_class::GRANULE_BYTES;
use crate::span::blocks::Chain;
use crate::span::{Entry, Generation, View};
use core::ptr;
use freestone_base::inbox::Node;
use freestone_base::prefetch;

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

    /// Links it before `next`.
    #[inline(always)]
    pub(crate) fn link(self, next: *mut Node) -> *mut Node {
        // SAFETY: the block is this value's, and its first word is a link while it is free.
        unsafe { (*self.node).next = next };
        self.node
    }

    /// The block as a node that is linked to nothing yet.
    #[inline(always)]
    pub(crate) fn into_node(self) -> *mut Node {
        self.node
    }
}

/// Free blocks of one class that were taken out of a span, one at least.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct FreeBatch {
    blocks: Chain,
    class: usize,
}

impl FreeBatch {
    /// The blocks of a chain; `None` if it has none.
    ///
    /// # Safety
    /// - The blocks are linked, of `class`, free, out of their spans, and the caller's to give away.
    pub(crate) unsafe fn new(blocks: Chain, class: usize) -> Option<Self> {
        (blocks.len > 0).then_some(Self { blocks, class })
    }

    /// How many blocks.
    pub(crate) fn len(&self) -> u32 {
        self.blocks.len
    }

    /// The class of the blocks.
    pub(crate) fn class(&self) -> usize {
        self.class
    }

    /// Links the last block before `next`. Returns the first.
    pub(crate) fn link(self, next: *mut Node) -> *mut Node {
        // SAFETY: the last block is this value's and free, so its first word is a link.
        unsafe { (*self.blocks.last).next = next };
        self.blocks.first
    }
}

/// Free blocks of one class that a bin gave up, in the order of the bin.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct FreeChain {
    first: *mut Node,
    n_left: u32,
    class: usize,
}

impl FreeChain {
    /// The first `n` blocks of those linked from `first`, or fewer where the links end.
    ///
    /// # Safety
    /// - `first` is null or a free block of `class` that is the caller's to give away, as are the `n - 1` behind it.
    pub(crate) unsafe fn new(first: *mut Node, n: u32, class: usize) -> Self {
        Self { first, n_left: n, class }
    }

    /// A chain of one, whose link is not written: for those who give it back alone.
    pub(crate) fn alone(block: FreeBlock) -> Self {
        Self { class: block.class, first: block.node, n_left: 1 }
    }

    /// The first block, or null when no block is left.
    #[inline]
    pub(crate) fn first(&self) -> *mut Node {
        if self.n_left == 0 { ptr::null_mut() } else { self.first }
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
        // SAFETY: the block is this chain's, and its first word links to the next.
        self.first = unsafe { (*node).next };
        self.n_left -= 1;
        Some(Found::find(node, view, tag))
    }

    /// The block behind the first; the chain must not be empty.
    #[inline]
    pub(crate) fn second(&self) -> *mut Node {
        // SAFETY: as in `pop`.
        unsafe { (*self.first).next }
    }

    /// Continues at `first`, with `n` blocks fewer: they went to their span.
    #[inline]
    pub(crate) fn advance(&mut self, n: u32, first: *mut Node) {
        self.n_left -= n;
        self.first = first;
    }
}

/// A block in an inbox: the layout of its first two words.
#[derive(Debug)]
#[repr(C)]
struct TransitNode {
    node: Node,
    /// A block that comes later in the chain, or null. Only ever prefetched, never read.
    ahead: *mut Node,
}

const _: () = assert!(size_of::<TransitNode>() <= GRANULE_BYTES);

/// Writes the hint of a block that is put into an inbox: `ahead` comes later in the chain, or is null.
#[inline]
pub(crate) fn set_ahead(block: &FreeBlock, ahead: *mut Node) {
    // SAFETY: the block is the value's, and has room for two words (asserted above).
    unsafe { (*block.node.cast::<TransitNode>()).ahead = ahead };
}

/// Blocks of any class on their way to their spans, as they came out of an inbox. See the module header.
#[derive(Debug)]
#[must_use = "free blocks that are dropped are lost"]
pub(crate) struct InTransit {
    first: *mut Node,
}

/// A block in transit, and its owner according to the page map.
#[derive(Debug)]
pub(crate) enum Found {
    /// The block's span belongs to this heap.
    Own(FreeBlock),
    /// The block's span has this owner.
    Other(FreeBlock, Generation),
    /// The block at this address is in no small span: it was freed twice, and its span is gone.
    Lost(usize),
}

impl Found {
    /// Looks up the owner of a free block. `view` covers the block, and `tag` is the heap's.
    #[inline]
    fn find(node: *mut Node, view: &View, tag: u32) -> Self {
        let entry = view.entry(node.addr()).unwrap_or(Entry::NONE);
        match (entry.class_if_owned(tag), entry.class()) {
            (Some(class), _) => Self::Own(FreeBlock { node, class }),
            (None, Some(class)) => Self::Other(FreeBlock { node, class }, entry.generation()),
            (None, None) => Self::Lost(node.addr()),
        }
    }
}

impl InTransit {
    /// No blocks.
    pub(crate) const NONE: Self = Self { first: ptr::null_mut() };

    /// The blocks linked from `first`, up to a link that is null.
    ///
    /// # Safety
    /// - `first` is null or a free small block that is the caller's to give away, with its hint written; so are all that it leads to.
    pub(crate) unsafe fn new(first: *mut Node) -> Self {
        Self { first }
    }

    /// Whether no block is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Takes the first block off and looks up its owner: `view` covers it, and `tag` is the heap's. The block that the sender named is
    /// prefetched meanwhile.
    #[inline]
    pub(crate) fn pop_prefetching(&mut self, view: &View, tag: u32) -> Option<Found> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: the block is this chain's, and its sender wrote the hint.
        prefetch::for_write(unsafe { (*self.first.cast::<TransitNode>()).ahead });
        self.pop(view, tag)
    }

    /// Takes the first block off and looks up its owner: `view` covers it, and `tag` is the heap's.
    #[inline]
    pub(crate) fn pop(&mut self, view: &View, tag: u32) -> Option<Found> {
        let node = self.first;
        if node.is_null() {
            return None;
        }
        // SAFETY: the block is this chain's, and its first word links to the next.
        self.first = unsafe { (*node).next };
        Some(Found::find(node, view, tag))
    }
}
