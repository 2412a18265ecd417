//! Large blocks of watched heaps: each has room for a canary behind what was asked for.
#![allow(unsafe_code)]
//!
//! # Safety
//! A page that is passed in starts a large block of a watched heap, so it has a record, and the run is the block's.

use crate::span::PageIndex;
use crate::thread::heap::own::Own;
use crate::thread::large::{self, NewBlock};
use crate::thread::watched::large_marks::{Asked, asked, mark};
use crate::thread::watched::request::Request;
use freestone_os::Os;

/// Bytes of canary that every large block has room for.
const CANARY_LEAST: usize = 16;

/// Bytes that a block of `size` takes, its canary included.
pub(crate) fn bytes_for(size: usize) -> usize {
    size.saturating_add(CANARY_LEAST)
}

/// Allocates a large block; its start is null when memory runs out.
pub(crate) fn allocate<O: Os>(own: Own<'_, O>, request: Request) -> NewBlock {
    if request.room > isize::MAX as usize || request.align > large::ALIGN_MAX {
        return NewBlock::NONE;
    }
    let block = if request.room > request.size && request.align <= crate::size_class::GRANULE_BYTES {
        large::allocate_with_growth_room(own, bytes_for(request.size))
    } else {
        large::allocate(own, bytes_for(request.room), request.align)
    };
    if let Some(page) = own.renew_view().page_of(block.start.addr()).filter(|_| !block.start.is_null()) {
        let asked = Asked { size: request.size, align_log2: request.align.trailing_zeros(), family: request.family };
        // SAFETY: the page starts the large block that was just allocated.
        unsafe { mark(own, page, asked) };
    }
    block
}

/// Makes a large block hold `size` bytes where it is; `false` if it cannot.
///
/// # Safety
/// - The block is the program's, which gives up what is cut off.
pub(crate) unsafe fn resize<O: Os>(own: Own<'_, O>, page: PageIndex, size: usize) -> bool {
    let asked = asked(own, page);
    // SAFETY: the block is the program's (this function's contract).
    let is_resized = unsafe { large::resize(own, page, bytes_for(size)) };
    if is_resized {
        // SAFETY: the block is long enough now.
        unsafe { mark(own, page, Asked { size, ..asked }) };
    }
    is_resized
}
