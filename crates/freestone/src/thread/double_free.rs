//! Whether a block that the program frees is free already.
//!
//! Asked only of blocks that have the mark of a free block (`span::free_node`), and then answered exactly, as far as this thread can see: a
//! program's data may equal the mark.
//!
//! ```text
//!  the block is     in a bin of this thread              its links say so
//!                   in a span of this thread             the bitmap says so
//!                   buffered by this thread              its buffer says so
//!                   in a span without an owner           the central lists refuse it, or else write over its links, as in another's bin
//!                   in a span of another thread          it is sent as a suspect, and that thread asks the same
//!                   in transit, or in another's bin      its links are written over by the second free: whoever finds it there next reports it
//! ```

use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Own;
use crate::thread::spans;
use freestone_os::Os;

/// Whether a block is free, as far as this thread can see: see the module header. Takes as long as the thread's bins of its class, and of smaller
/// ones, are: a Rust program may have freed a block that was shrunk in place as one of those.
#[cold]
pub(crate) fn is_free<O: Os>(own: Own<'_, O>, block: &FreeBlock) -> bool {
    let view = own.renew_view();
    (0..=block.class()).rev().any(|class| own.bins().contains(class, block.node(), &view))
        || spans::home_of(own.layout(), own.bins().lookup(), block.address())
            .is_some_and(|home| home.has(block.address(), own.shared().os().os_page_bytes()))
        || own.remote().holds(block.node())
}

#[cfg(test)]
mod tests;
