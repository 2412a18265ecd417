//! Blocks of a watched heap that come home from other threads, in its inbox.
//!
//! They were checked and filled where they were freed; on their way they were linked through their first words, which are filled again here. A
//! block of an explicit heap could not wait in the quarantine of the thread that freed it: it waits in the heap's own.

use crate::shared::Shared;
use crate::size_class::block_bytes;
use crate::span::marked_block::MarkedBlock;
use crate::span::trailer::{State, Trailer};
use crate::thread::free_block::{FreeBlock, FreeChain};
use crate::thread::heap::own::Own;
use crate::thread::watched::examine::watched_span;
use crate::thread::watched::release::quarantine;
use crate::thread::watched::seat::WatchedHeap;
use crate::thread::{returns, spans};
use freestone_base::inbox::Node;
use freestone_os::Os;

/// Takes a block home that another thread freed.
pub(crate) fn take_home<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, block: FreeBlock) {
    fill_head(own.shared(), &block);
    if own.holdings().is_some() {
        let class = block.class();
        return quarantine(own, watch, (block.into_node().cast(), block_bytes(class)), class);
    }
    if let Some(home) = spans::home_of(own.layout(), own.lookup(), block.address()) {
        returns::turn_to(own, home.span.page());
        returns::give_back_first(own, &home, &mut FreeChain::of(block));
    }
}

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
