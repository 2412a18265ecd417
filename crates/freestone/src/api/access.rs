//! What is found out about a block without a heap: its size, and for memory functions whether a stretch of memory that a program reads or writes stays
//! inside it.
//!
//! A second library (`freestone_memory`) has the memory functions, and asks here.
//!
//! Allocates nothing and waits for no lock: the memory functions may be called from anywhere, by code of the allocator too.

use crate::api::process::PROCESS;
use crate::config::Harden;
use crate::misuse::{self, Access, Misuse};
use crate::thread::current;
use crate::thread::extent::{self, BlockState, LargeHints};
use freestone_base::units::Pages;

/// Which addresses are worth a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedRange {
    /// Not known yet: nothing was allocated.
    Unknown,
    /// None, for good: the level of the option `harden` is lower than `full`.
    Nothing,
    /// Those of blocks: start, and bytes.
    Blocks(*mut u8, usize),
}

static HINTS: LargeHints = LargeHints::new();

/// Which addresses are worth a check. The answer is final unless it is unknown.
#[must_use]
pub fn checked_range() -> CheckedRange {
    let shared = &PROCESS.shared;
    if !shared.usage.has_had_heaps() {
        return CheckedRange::Unknown;
    }
    if shared.settings().harden() < Harden::Full {
        return CheckedRange::Nothing;
    }
    let layout = shared.pages.layout();
    CheckedRange::Blocks(layout.base, Pages(layout.n_pages as u32).to_bytes().0)
}

/// Reports an access to `bytes` at `address` that begins in a block and does not end in it, or that begins in a freed one. `access` says what
/// the access is, and is called for a report only.
pub fn check_access(address: usize, bytes: usize, access: impl FnOnce() -> Access) {
    if let Some(extent) = extent::find(&PROCESS.shared, &HINTS, address).filter(|_| bytes > 0) {
        let offset = address - extent.start;
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= extent.size);
        if !(is_inside && extent.state == BlockState::Live) {
            report(extent, offset, bytes, access());
        }
    }
}

/// The size of the live block that starts at `address`; `None` if no block does, as far as can be told. Reports nothing.
pub(super) fn live_size(address: usize) -> Option<usize> {
    let shared = &PROCESS.shared;
    if shared.guarded.contains(address) {
        return shared.guarded.block_at(address).ok().map(|block| block.size);
    }
    if shared.empty.contains(address) {
        return shared.empty.family_of(address).ok().map(|_| 0);
    }
    let extent = extent::find(shared, &HINTS, address)?;
    (extent.start == address && extent.state == BlockState::Live).then_some(extent.size)
}

#[cold]
fn report(extent: extent::Extent, offset: usize, bytes: usize, access: Access) {
    let size = extent.size;
    let what = match extent.state {
        BlockState::Live => Misuse::OutOfBounds { access, size, offset, bytes },
        BlockState::Free => Misuse::UseAfterFree { access, offset, bytes },
        BlockState::Damaged => Misuse::Overflow { block_bytes: size, size: None, offset: size },
    };
    let thread = current::get().number();
    misuse::misuse(PROCESS.shared.settings(), what, extent.start, thread);
}
