//! The walk over the blocks of a bin.
#![allow(unsafe_code)]
//!
//! # Safety
//! As for all of [`super`].

use super::{END_OF_BIN, is_plausible, next, not_chosen};
use crate::span::View;
use core::ptr;
use freestone_base::inbox::{LinkKey, Node};

/// The blocks of a bin, up to its end or a link that is damaged, which a key tells.
#[derive(Debug)]
pub(crate) struct Linked<'a> {
    /// The link to the next block, or the end, or what a damaged link says.
    pub(crate) at: *mut Node,
    /// The block before, or null.
    pub(crate) before: *mut Node,
    /// The page of the block before: that may hold blocks of the class, so it is not looked up again.
    page: usize,
    class: usize,
    key: LinkKey,
    view: &'a View,
}

impl<'a> Linked<'a> {
    /// Those linked from `first` on, all of `class` or larger; `view` covers them.
    ///
    /// # Safety
    /// - `first` is the end, or a block of a bin with this key; the bin is the caller's, and does not change meanwhile.
    pub(crate) unsafe fn new(first: *mut Node, class: usize, key: LinkKey, view: &'a View) -> Self {
        Self { at: first, before: ptr::null_mut(), page: usize::MAX, class, key, view }
    }
}

impl Iterator for Linked<'_> {
    type Item = *mut Node;

    #[inline]
    fn next(&mut self) -> Option<*mut Node> {
        let at = not_chosen(self.at);
        let page = self.view.number_of_aligned(at.addr());
        if page != self.page {
            if at == END_OF_BIN || !(self.key.is_plain() || is_plausible(at, self.class, self.view)) {
                return None;
            }
            self.page = page;
        }
        self.before = at;
        // SAFETY: the block is in the bin: free, and its first word is its link.
        self.at = unsafe { next(at, self.key) };
        Some(at)
    }
}
