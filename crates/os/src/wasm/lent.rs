//! Memory outside the address range: tables for good, and rows and texts that are lent for a call. Memory never shrinks, so what was given back is lent again.
#![allow(unsafe_code)]
//!
//! Who asks for a length gets what was given back of that length, if anything was; nothing is split or joined. So of each length there is as much as was lent
//! at once.
//!
//! # Safety
//! What was given back begins with a record, which no other code accesses until it is lent again.

use super::GROWTH_BYTES;
use core::arch::wasm32;
use core::ptr;
use freestone_base::sync::{AtomicPtr, Ordering};
use freestone_base::{bytes, ptr as address};

/// At the beginning of what was given back.
struct Record {
    next: AtomicPtr<Record>,
    bytes: usize,
}

/// What was given back last.
static GIVEN_BACK: AtomicPtr<Record> = AtomicPtr::new(ptr::null_mut());

/// Memory of `bytes` that reads as zero.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    let bytes = bytes.checked_next_multiple_of(GROWTH_BYTES)?;
    if let Some(at) = take(bytes) {
        // SAFETY: the memory has so many bytes, and no other code has it.
        unsafe { bytes::fill(at, 0, bytes) };
        return Some(at);
    }
    let pages = wasm32::memory_grow::<0>(bytes / GROWTH_BYTES);
    (pages != usize::MAX).then(|| address::from_exposed(pages * GROWTH_BYTES))
}

/// Takes what was given back of a length.
fn take(bytes: usize) -> Option<*mut u8> {
    let mut link = &GIVEN_BACK;
    loop {
        let at = link.load(Ordering::Relaxed);
        // SAFETY: null, or the record of what was given back and is not lent.
        let record = unsafe { at.as_ref() }?;
        if record.bytes == bytes {
            link.store(record.next.load(Ordering::Relaxed), Ordering::Relaxed);
            return Some(at.cast());
        }
        link = &record.next;
    }
}

/// Gives back what [`map`] returned.
///
/// # Safety
/// - `map` returned `at` for as many bytes, and no code uses the memory any more.
pub(crate) unsafe fn unmap(at: *mut u8, bytes: usize) {
    let next = AtomicPtr::new(GIVEN_BACK.load(Ordering::Relaxed));
    let record = at.cast::<Record>();
    // SAFETY: no code uses the memory, which is long enough and aligned to what memory grows by (this function's contract).
    unsafe { record.write(Record { next, bytes: bytes.next_multiple_of(GROWTH_BYTES) }) };
    GIVEN_BACK.store(record, Ordering::Relaxed);
}
