//! Lists of spans, linked through their records by page number.
#![allow(unsafe_code)]
//!
//! ```text
//! head ─▶ span ⇄ span ⇄ span ─▶ 0
//! ```
//!
//! Invariants: a span is in at most one list; `prev` of the head is 0.
//!
//! # Safety
//! All functions read and write records of spans in the list. The owner of the list owns these spans, too (see `record`).

use crate::span::{Layout, Span};
use core::cell::Cell;

/// A doubly linked list of spans.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct SpanList {
    head: Cell<u32>,
}

impl SpanList {
    /// No spans.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { head: Cell::new(0) }
    }

    /// The first span's page, or 0.
    #[must_use]
    pub(crate) fn first(&self) -> u32 {
        self.head.get()
    }

    /// Whether the list has no spans.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.get() == 0
    }

    /// Puts the span that starts at `page` in front of the list.
    ///
    /// # Safety
    /// - The span is in no list, and it and the list are the caller's.
    pub(crate) unsafe fn push(&self, layout: &Layout, page: u32) {
        let head = self.head.get();
        // SAFETY: the span is the caller's, and in use, so it has a record; `head` is in the list, whose spans are the caller's, too.
        unsafe {
            let span = &*layout.record(page);
            span.next.set(head);
            span.prev.set(0);
            if head != 0 {
                (*layout.record(head)).prev.set(page);
            }
        }
        self.head.set(page);
    }

    /// Takes the span that starts at `page` out of the list.
    ///
    /// # Safety
    /// - The span is in this list, and the list is the caller's.
    pub(crate) unsafe fn remove(&self, layout: &Layout, page: u32) {
        // SAFETY: the span and its neighbours are in the list, whose spans are the caller's and have records.
        unsafe {
            let span = &*layout.record(page);
            let (next, prev) = (span.next.get(), span.prev.get());
            if prev == 0 {
                self.head.set(next);
            } else {
                (*layout.record(prev)).next.set(next);
            }
            if next != 0 {
                (*layout.record(next)).prev.set(prev);
            }
        }
    }

    /// Takes the first span out; its page, or 0.
    ///
    /// # Safety
    /// - The list is the caller's.
    pub(crate) unsafe fn pop(&self, layout: &Layout) -> u32 {
        let page = self.head.get();
        if page != 0 {
            // SAFETY: the head is in this list, which is the caller's.
            unsafe { self.remove(layout, page) };
        }
        page
    }

    /// The spans, first to last.
    ///
    /// # Safety
    /// - The list stays the caller's, and unchanged, while the iterator lives.
    pub(crate) unsafe fn iter<'a>(&self, layout: &'a Layout) -> impl Iterator<Item = (u32, &'a Span)> {
        let mut page = self.head.get();
        core::iter::from_fn(move || {
            if page == 0 {
                return None;
            }
            let this = page;
            // SAFETY: the page is in the list, so it has a record, and the list is the caller's.
            let span = unsafe { &*layout.record(this) };
            page = span.next.get();
            Some((this, span))
        })
    }
}
