//! What only slow paths need to know of a bin.

use core::cell::Cell;
use core::ptr;
use freestone_base::inbox::Node;
use freestone_base::sync::AtomicU64;

/// See the module header.
#[derive(Debug)]
pub(super) struct BinState {
    /// Frees of blocks of other owners, which did not pass through the bin.
    pub(super) remote_frees: AtomicU64,
    /// Blocks that the bin should hold at most; 0 before its first use.
    pub(super) capacity: Cell<u32>,
    /// Blocks flushed since the bin was last empty.
    pub(super) flushed: Cell<u32>,
    /// `allocs` at the last decay tick: if it has not changed by the next, the bin is idle.
    pub(super) allocs_at_tick: Cell<u64>,
    /// `allocs` as the countdown to the next sample knows it.
    pub(super) counted_down: Cell<u64>,
    /// So many samples fell to this class: as many allocations that take a slow path next are sampled.
    pub(super) n_due: Cell<u32>,
    /// It has borrowed room for so many blocks (`usage::room`).
    pub(super) borrowed: Cell<u32>,
    /// The first of the blocks that were set aside, and how many; 0 if none is.
    pub(super) aside: Cell<*mut Node>,
    /// See `aside`.
    pub(super) n_aside: Cell<i64>,
    /// Room that the hot paths do not see, so that each free leaves them.
    pub(super) withheld: Cell<i64>,
}

impl BinState {
    /// Never used.
    pub(super) const fn new() -> Self {
        Self {
            remote_frees: AtomicU64::new(0),
            capacity: Cell::new(0),
            flushed: Cell::new(0),
            allocs_at_tick: Cell::new(0),
            counted_down: Cell::new(0),
            n_due: Cell::new(0),
            borrowed: Cell::new(0),
            aside: Cell::new(ptr::null_mut()),
            n_aside: Cell::new(0),
            withheld: Cell::new(0),
        }
    }
}
