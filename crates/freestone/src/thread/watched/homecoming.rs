//! What was a link of a block of a watched heap on its way home is made again what it was before.
//!
//! The block was checked and filled where it was freed; on its way it was linked through its first word.

use crate::shared::Shared;
use crate::size_class::block_bytes;
use crate::span::marked_block::MarkedBlock;
use crate::span::trailer::{State, Trailer};
use crate::thread::free_block::FreeBlock;
use crate::thread::watched::examine::watched_span;
use freestone_base::inbox::Node;
use freestone_os::Os;

/// Writes the canary of a block again that the program freed where there was no heap: the block's first word was a link since, which is longer than what the
/// program had of the shortest blocks.
#[cold]
#[allow(unsafe_code)]
pub(crate) fn mend_canary<O: Os>(shared: &Shared<O>, start: *mut u8) {
    let Some(class) = watched_span(shared, start.addr()).and_then(|_| shared.pages.view().small_class(start.addr()))
    else {
        return;
    };
    // SAFETY: the address lies in a watched span; where no block starts no trailer is whole, but for chance.
    let block = unsafe { MarkedBlock::at(start, block_bytes(class), &shared.secret) };
    if let Some(Trailer { state: State::Live(_), size, .. }) = block.trailer() {
        if size < size_of::<Node>() {
            block.write_canary(size);
        }
    }
}

/// Fills the first words of a block on its way, where its links were, if its span is watched.
#[allow(unsafe_code)]
pub(crate) fn fill_head<O: Os>(shared: &Shared<O>, block: &FreeBlock) {
    if watched_span(shared, block.address()).is_none() {
        return;
    }
    // SAFETY: the block is the value's, and of a watched span.
    let marked = unsafe { MarkedBlock::at(block.node().cast(), block_bytes(block.class()), &shared.secret) };
    if let Some(Trailer { state: State::Freed, size, .. }) = marked.trailer() {
        marked.fill_head(size);
    }
}
