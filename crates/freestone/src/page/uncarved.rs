//! How much of small spans has no memory behind it: OS pages that no block was carved from, or that went back since. Statistics alone use it.
//!
//! One atomic addition where an OS page of a span is carved or goes back, and where a span begins or ends.

use crate::page::page_heap::PageHeap;
use crate::span::{Span, blocks};
use freestone_base::sync::Ordering;
use freestone_os::Os;

impl<O: Os> PageHeap<O> {
    /// Bytes of a span that no block was carved from and that have no memory. A function of its own, for counting bits takes many instructions.
    #[inline(never)]
    pub(crate) fn uncarved_in(&self, span: &Span) -> i64 {
        blocks::uncarved_bytes(span, self.os.os_page_bytes())
    }

    /// Adds bytes that have no memory any more, or, negative, that have some now.
    pub(crate) fn add_uncarved(&self, bytes: i64) {
        self.uncarved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Calls `change`, and counts what that does to a span of the caller's.
    pub(crate) fn count_uncarved<R>(&self, span: &Span, change: impl FnOnce() -> R) -> R {
        let before = self.uncarved_in(span);
        let result = change();
        self.add_uncarved_since(span, before);
        result
    }

    /// Adds what a span has changed by since it had `before`.
    #[inline(never)]
    fn add_uncarved_since(&self, span: &Span, before: i64) {
        let after = self.uncarved_in(span);
        if after != before {
            self.add_uncarved(after - before);
        }
    }

    /// Bytes of all small spans that no block was carved from and that have no memory. After a fork, the child's may be wrong by a span for each thread that
    /// the parent had.
    pub(crate) fn uncarved_bytes(&self) -> u64 {
        u64::try_from(self.uncarved.load(Ordering::Relaxed)).unwrap_or(0)
    }
}
