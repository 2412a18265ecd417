//! What is known of a large block of a watched heap: what was asked for is in the record of the first page, and a canary lies behind it.
#![allow(unsafe_code)]
//!
//! ```text
//!  record of the first page: fresh   63    56 55     48 47       0
//!                                   │ family │ align    │ size     │
//! ```
//!
//! # Safety
//! A page that is passed in starts a large block of a watched heap, so it has a record, and the run is the block's.

use crate::misuse::Misuse;
use crate::shared::Shared;
use crate::span::family::Family;
use crate::span::{PageIndex, canary, erase, fill};
use crate::thread::heap::own::Own;
use crate::thread::watched::examine::claim_mismatch;
use crate::thread::watched::request::Claim;
use core::slice;
use freestone_os::Os;

/// What the program asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// How many bytes.
    pub(crate) size: usize,
    /// Logarithm of the alignment.
    pub(crate) align_log2: u32,
    /// Which functions free the block.
    pub(crate) family: Family,
}

/// Whether the large block at `page` is one of a watched heap.
pub(crate) fn is_watched<O: Os>(own: Own<'_, O>, page: PageIndex) -> bool {
    // SAFETY: the page starts a large block, so it has a record.
    unsafe { own.shared().pages.span(page) }.is_watched.get()
}

/// Records what was asked for, and writes the canary behind it.
///
/// # Safety
/// - The block is the caller's, and long enough.
pub(crate) unsafe fn mark<O: Os>(own: Own<'_, O>, page: PageIndex, asked: Asked) {
    // SAFETY: the page starts a large block, so it has a record.
    let record = unsafe { own.shared().pages.span(page) };
    record.is_watched.set(true);
    record.fresh.set(asked.size as u64 | u64::from(asked.align_log2) << 48 | (asked.family as u64) << 56);
    let (start, bytes) = (own.layout().page_start(page), record.n_pages().to_bytes().0);
    let range = canary::range(asked.size, bytes);
    // SAFETY: the canary lies in the run of the block, which is the caller's.
    let canary = unsafe { slice::from_raw_parts_mut(start.wrapping_add(range.start), range.len()) };
    canary::write(canary, own.shared().secret.words(start.addr()).canary);
}

/// What was asked for.
pub(crate) fn asked<O: Os>(own: Own<'_, O>, page: PageIndex) -> Asked {
    asked_in(own.shared(), page)
}

/// Bytes of the run of a large block, and those of them that are the program's, for any thread.
pub(crate) fn extent<O: Os>(shared: &Shared<O>, page: PageIndex) -> (usize, usize) {
    // SAFETY: the page starts a large block, so it has a record. A thread that may use the block reads what does not change meanwhile.
    let record = unsafe { shared.pages.span(page) };
    let bytes = record.n_pages().to_bytes().0;
    (bytes, if record.is_watched.get() { asked_in(shared, page).size } else { bytes })
}

/// As [`asked`], for who has no heap.
fn asked_in<O: Os>(shared: &Shared<O>, page: PageIndex) -> Asked {
    // SAFETY: the page starts a large block, so it has a record.
    let packed = unsafe { shared.pages.span(page) }.fresh.get();
    let family = Family::of((packed >> 56) as u32).unwrap_or(Family::C);
    Asked { size: (packed & ((1 << 48) - 1)) as usize, align_log2: (packed >> 48 & 0xff) as u32, family }
}

/// Reports what is wrong with a block that the program passes. Returns what was asked for.
pub(crate) fn examine<O: Os>(own: Own<'_, O>, page: PageIndex, claim: Claim) -> Asked {
    let asked = asked(own, page);
    let start = own.layout().page_start(page);
    let what = claim_mismatch(asked.family, (asked.size, asked.align_log2), claim);
    for what in [what, overflow(own, page, asked.size)].into_iter().flatten() {
        own.report(what, start.addr());
    }
    asked
}

/// What was written behind the `size` bytes that were asked for. Writes the canary again: a crime is reported once.
fn overflow<O: Os>(own: Own<'_, O>, page: PageIndex, size: usize) -> Option<Misuse> {
    let start = own.layout().page_start(page);
    // SAFETY: the page starts a large block, so it has a record.
    let block_bytes = unsafe { own.shared().pages.span(page) }.n_pages().to_bytes().0;
    let range = canary::range(size, block_bytes);
    // SAFETY: the canary lies in the run of the block, and is not the program's.
    let canary = unsafe { slice::from_raw_parts_mut(start.wrapping_add(range.start), range.len()) };
    let expected = own.shared().secret.words(start.addr()).canary;
    let offset = size + canary::damage(canary, expected)?;
    canary::write(canary, expected);
    Some(Misuse::Overflow { block_bytes, size: Some(size), offset })
}

/// Reports what was written to a large block since it was freed.
pub(crate) fn check_freed<O: Os>(own: Own<'_, O>, page: PageIndex) {
    let size = asked(own, page).size;
    let start = own.layout().page_start(page);
    // SAFETY: the block is in a quarantine, so no other code uses the bytes.
    let block = unsafe { slice::from_raw_parts(start, size) };
    let os_page_bytes = own.shared().os().os_page_bytes();
    let erases = own.shared().secret.erases();
    let filled = if erases { erased_damage(block, os_page_bytes) } else { fill::damage(block, os_page_bytes) };
    if let Some(offset) = filled {
        // SAFETY: the page starts a large block, so it has a record.
        let block_bytes = unsafe { own.shared().pages.span(page) }.n_pages().to_bytes().0;
        own.report(Misuse::WriteAfterFree { block_bytes, size: Some(size), offset }, start.addr());
    } else if !erases {
        if let Some(Misuse::Overflow { block_bytes, size, offset }) = overflow(own, page, size) {
            own.report(Misuse::WriteAfterFree { block_bytes, size, offset }, start.addr());
        }
    }
}

/// The offset of the first byte that was written since a block was erased, in its first and last OS pages: to look at the others would cost page
/// faults.
fn erased_damage(block: &[u8], os_page_bytes: usize) -> Option<usize> {
    let tail = block.len().saturating_sub(os_page_bytes);
    let head = block.get(..os_page_bytes.min(block.len())).and_then(erase::damage);
    head.or_else(|| Some(tail + block.get(tail..).and_then(erase::damage)?))
}

#[cfg(test)]
mod tests;
