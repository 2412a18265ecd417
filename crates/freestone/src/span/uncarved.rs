//! How much of small spans has no memory behind it: OS pages that no block was carved from, or that went back since. For statistics, and to tell
//! what went back in vain.

use freestone_base::sync::{AtomicI64, Ordering};

/// The bytes, of all spans: one relaxed addition where an OS page of a span is carved or goes back, and where a span begins or ends.
#[derive(Debug)]
pub(crate) struct Uncarved {
    bytes: AtomicI64,
    /// Bytes that had no memory when their span ended, of all spans that ever have, less those that new spans have taken again.
    ended: AtomicI64,
}

impl Uncarved {
    /// None.
    pub(crate) const fn new() -> Self {
        Self { bytes: AtomicI64::new(0), ended: AtomicI64::new(0) }
    }

    /// Adds bytes that have no memory any more, or, negative, that have some now.
    #[inline(always)]
    pub(crate) fn add(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A span ends, of which so many bytes have no memory.
    #[inline(always)]
    pub(crate) fn end_span(&self, bytes: i64) {
        self.add(-bytes);
        self.ended.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes that had no memory when their span ended are going to be faulted in.
    #[inline(always)]
    pub(crate) fn take_again(&self, bytes: i64) {
        self.ended.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The sum, and what spans that have ended had: it falls only where memory is faulted in.
    pub(crate) fn bytes_and_ended(&self) -> i64 {
        self.bytes() + self.ended.load(Ordering::Relaxed)
    }

    /// The sum. After a fork, the child's may be wrong by a span for each thread that the parent had.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
