//! Large blocks of watched heaps: each has room for a canary behind what was asked for.
#![allow(unsafe_code)]
//!
//! # Safety
//! A page that is passed in starts a large block of a watched heap, so it has a record, and the run is the block's.

use crate::span::PageIndex;
use crate::thread::heap::own::Own;
use crate::thread::large;
use crate::thread::new_block::NewBlock;
use crate::thread::watched::large_marks::{Asked, asked, mark};
use crate::thread::watched::request::Request;
use freestone_base::units::Bytes;
use freestone_base::{align, bytes};
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
    let mut block = if request.room > request.size && request.align <= crate::size_class::GRANULE_BYTES {
        // How much it grows by is not known here: it is taken for little.
        let size = bytes_for(request.size);
        large::allocate_with_growth_room(own, Bytes(size), size)
    } else {
        large::allocate(own, bytes_for(request.room), request.align)
    };
    if let Some(page) = own.renew_view().page_of(block.start.addr()).filter(|_| !block.start.is_null()) {
        let asked = Asked { size: request.size, align_log2: request.align.trailing_zeros(), family: request.family };
        if own.shared().secret.erases() && !block.zero {
            // SAFETY: the page starts the large block that was just allocated, and no code uses it yet.
            unsafe { erase(own, page, 0) };
            block.zero = true;
        }
        // SAFETY: the page starts the large block that was just allocated.
        unsafe { mark(own, page, asked) };
    }
    block
}

/// Whether a large block moves if it is cut down to `size` bytes: where freed blocks are cleared, so that the addresses of the old one, and with them
/// those that are cut off, are held back.
pub(crate) fn moves<O: Os>(own: Own<'_, O>, page: PageIndex, size: usize) -> bool {
    let Some(keep) = Bytes(bytes_for(size)).to_pages() else { return false };
    // SAFETY: the page starts a large block, so it has a record.
    let held = unsafe { own.shared().pages.span(page) }.n_pages();
    own.shared().secret.erases() && keep < held && !own.shared().pages.is_slack(held, keep)
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
        if own.shared().secret.erases() && size > asked.size {
            // SAFETY: the block is the program's, and of what is behind the bytes that it had no code uses any.
            unsafe { erase(own, page, asked.size) };
        }
        // SAFETY: the block is long enough now.
        unsafe { mark(own, page, Asked { size, ..asked }) };
    }
    is_resized
}

/// Makes a large block read as zero from an offset to its end. What are whole OS pages goes back to the kernel.
///
/// # Safety
/// - No code uses these bytes of the block that starts at `page`.
pub(crate) unsafe fn erase<O: Os>(own: Own<'_, O>, page: PageIndex, from: usize) {
    let os = own.shared().os();
    // SAFETY: the page starts a large block, which is the caller's.
    let (start, end) = (own.layout().page_start(page), unsafe { large::bytes(own, page) });
    let whole = align::up(from, os.os_page_bytes()).min(end);
    // SAFETY: these OS pages of the block are committed, and no code uses them (this function's contract).
    let purge = |at| unsafe { os.purge(start.wrapping_add(at), end - at) };
    let to = if whole == end || (purge(whole).is_ok() && os.purge_zeroes()) { whole } else { end };
    // SAFETY: no code uses these bytes of the block (this function's contract).
    unsafe { bytes::fill(start.wrapping_add(from), 0, to - from) };
}
