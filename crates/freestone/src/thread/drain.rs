//! Draining the inbox: moves the blocks that other threads handed over into the bins.

use crate::span::PageIndex;
use crate::thread::flush;
use crate::thread::free_block::{Found, FreeBlock};
use crate::thread::heap::own::Own;
use crate::thread::watched::homecoming::take_home;
use crate::thread::{returns, route};
use freestone_os::Os;

/// Moves the blocks that other threads handed over into the bins. A block whose span has another owner by now is sent there.
pub(crate) fn drain<O: Os>(own: Own<'_, O>) {
    let mut blocks = own.remote().mailbox().take();
    if blocks.is_empty() {
        return;
    }
    // Each block was allocated before it was handed over, so the newest view covers it.
    let (view, tag) = (own.renew_view(), own.lookup().tag());
    while let Some(found) = blocks.pop_prefetching(&view, tag) {
        match found {
            Found::Own(block) => match own.watch() {
                Some(watch) => take_home(own, watch, block),
                None => put(own, block),
            },
            Found::Other(block, generation) => route::send(own, block, generation),
            Found::Lost(_) => {}
        }
    }
    if own.watch().is_some() {
        returns::turn_to(own, PageIndex::NONE);
    }
}

/// Puts a block into its bin, which is flushed when it holds twice its capacity.
fn put<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    let class = block.class();
    own.bins().put(block);
    if own.bins().len(class) > 2 * i64::from(flush::own_capacity(own, class)) {
        flush::overflow(own, class);
    }
}

#[cfg(test)]
mod tests;
