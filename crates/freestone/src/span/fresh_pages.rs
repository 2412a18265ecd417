//! OS pages of a span that are about to be carved, and have no memory behind them: only `span::blocks` makes one.

/// See the module header.
#[derive(Debug)]
pub(crate) struct FreshPages {
    start: *mut u8,
    bytes: usize,
}

impl FreshPages {
    /// `bytes` from `start` on, whole OS pages inside a span in use.
    pub(super) fn new(start: *mut u8, bytes: usize) -> Self {
        Self { start, bytes }
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// How long they are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
