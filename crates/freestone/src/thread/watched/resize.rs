//! Resizing a small block of a watched span where it is.
//!
//! The owner of another heap's span may be looking at the block's trailer and at the last bytes of its canary. So such a block does not grow where it
//! is, and becomes smaller only if a canary that reaches the trailer stays one: its last bytes are the same whatever the size.

use crate::span::canary;
use crate::span::trailer::{State, Trailer};
use crate::thread::growth::GrownBlocks;
use crate::thread::watched::examine::Examined;

/// Makes a block hold `size` bytes if it can where it is, and stays there, which depends on which have `grown` lately.
pub(crate) fn stays(grown: &GrownBlocks, examined: &Examined, size: usize) -> bool {
    let block = &examined.block;
    grown.stays(block.start().addr(), block.capacity(), size) && is_resized(examined, size)
}

/// Makes a block hold `size` bytes where it is, however little that is of it, if it becomes smaller.
pub(crate) fn is_cut(examined: &Examined, size: usize) -> bool {
    size <= examined.fields.size() && is_resized(examined, size)
}

/// Makes a block hold `size` bytes, for which it has room, if it can.
fn is_resized(examined: &Examined, size: usize) -> bool {
    let Examined { block, fields, is_own, .. } = *examined;
    let (held, align_log2) = (fields.size(), fields.align_log2());
    let reaches = |size: usize| size + canary::MOST_BYTES >= block.capacity();
    if !is_own && (size > held || reaches(size) != reaches(held)) {
        return false;
    }
    let Some(family) = fields.family() else { return false };
    block.move_canary(size, held);
    block.set_trailer(Trailer { state: State::Live(family), size, align_log2 });
    true
}
