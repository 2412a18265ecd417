//! Lists of spans, linked through their records by page number.
#![allow(unsafe_code)]
//!
//! ```text
//! head ─▶ span ⇄ span ⇄ span ─▶ 0
//! ```
//!
//! Invariants: a span is in at most one list; `prev` of the head is 0. All spans of a list are of one page heap, whose layout every function of
//! the list gets. Who owns the list owns these spans, too (see `record`).
//!
//! # Safety
//! A span comes into a list with the proof that it is its owner's, so it has a record; records are never unmapped. Nothing else writes links.

use crate::span::{Layout, OwnedSpan, PageIndex, Span};
use core::cell::Cell;

/// A doubly linked list of spans.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct SpanList {
    head: Cell<PageIndex>,
}

impl SpanList {
    /// No spans.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { head: Cell::new(PageIndex::NONE) }
    }

    /// The first span's page.
    #[must_use]
    pub(crate) fn first(&self) -> Option<PageIndex> {
        self.head.get().some()
    }

    /// Whether the list has no spans.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.get() == PageIndex::NONE
    }

    /// Puts a span, which is in no list, in front of the list.
    pub(crate) fn push(&self, span: &OwnedSpan<'_>) {
        let head = self.head.get();
        span.next.set(head);
        span.prev.set(PageIndex::NONE);
        if head != PageIndex::NONE {
            self.listed(span.layout(), head).prev.set(span.page());
        }
        self.head.set(span.page());
    }

    /// Takes a span, which is in this list, out of it.
    pub(crate) fn remove(&self, span: &OwnedSpan<'_>) {
        let (next, prev) = (span.next.get(), span.prev.get());
        if prev == PageIndex::NONE {
            self.head.set(next);
        } else {
            self.listed(span.layout(), prev).next.set(next);
        }
        if next != PageIndex::NONE {
            self.listed(span.layout(), next).prev.set(prev);
        }
    }

    /// Takes the first span out.
    pub(crate) fn pop<'a>(&self, layout: &'a Layout) -> Option<OwnedSpan<'a>> {
        let head = self.head.get().some()?;
        // SAFETY: the span came into the list with its proof, and no other code has one while it is in the list.
        let span = unsafe { OwnedSpan::at(layout, head) };
        self.remove(&span);
        Some(span)
    }

    /// The spans, first to last. The list does not change while the iterator lives.
    pub(crate) fn iter<'a>(&self, layout: &'a Layout) -> impl Iterator<Item = (PageIndex, &'a Span)> {
        let mut next = self.head.get();
        core::iter::from_fn(move || {
            let page = next.some()?;
            let span = self.listed(layout, page);
            next = span.next.get();
            Some((page, span))
        })
    }

    /// The record of a span that is in the list.
    #[inline]
    fn listed<'a>(&self, layout: &'a Layout, page: PageIndex) -> &'a Span {
        // SAFETY: the span came into the list with its proof, so it has a record, and it is the list's owner's, as the list is.
        unsafe { &*layout.record(page) }
    }
}

#[cfg(test)]
mod tests;
