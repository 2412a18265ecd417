//! Draining the inbox: moves the blocks that other threads handed over into the bins.

use crate::misuse::Misuse;
use crate::size_class::{block_bytes, class_of};
use crate::span::PageIndex;
use crate::thread::free_block::{Found, FreeBlock};
use crate::thread::heap::own::Own;
use crate::thread::watched::homecoming::take_home;
use crate::thread::{double_free, flush, returns, route, sampling};
use freestone_os::Os;

/// Moves the blocks that other threads handed over into the bins. A block whose span has another owner by now is sent there.
pub(crate) fn drain<O: Os>(own: Own<'_, O>) {
    let mut blocks = own.remote().take();
    if blocks.is_empty() {
        return;
    }
    // Each block was allocated before it was handed over, so the newest view covers it.
    let (view, tag) = (own.renew_view(), own.lookup().tag());
    while let Some(found) = blocks.pop(&view, tag) {
        match found {
            Found::Own(block) => take_own(own, block),
            Found::Other(block, _) if block.is_suspect() => route::route_suspect(own, block),
            Found::Other(block, generation) => route::send(own, block, generation),
            Found::Wrong(what, address) => report(own, what, address),
            Found::Lost(_) => {}
        }
    }
    if own.watch().is_some() {
        returns::turn_to(own, PageIndex::NONE);
    }
}

/// Takes back a block of this heap.
#[inline]
fn take_own<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    match own.watch() {
        Some(watch) => take_home(own, watch, block),
        None if block.is_suspect() && double_free::is_free(own, &block) => {
            report(own, Misuse::DoubleFree { block_bytes: block_bytes(block.class()) }, block.address());
        }
        None => put(own, block),
    }
}

/// Reports what the program did to a block in transit. If it is in a bin of this heap too, its link there was overwritten: the bin ends with it.
#[cold]
fn report<O: Os>(own: Own<'_, O>, what: Misuse, address: usize) {
    if let Misuse::DoubleFree { block_bytes } = what {
        own.bins().end_at(class_of(block_bytes), address, &own.renew_view());
    }
    own.report(what, address);
}

/// Puts a block into its bin, which is flushed when it holds twice its capacity.
fn put<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    let class = block.class();
    own.bins().put(block);
    sampling::count_put(own, class);
    if own.bins().len(class) > 2 * i64::from(flush::own_capacity(own, class)) {
        flush::look_at_full(own, class);
    }
}

#[cfg(test)]
mod tests;
