//! WebAssembly: one memory, which grows at its end and never shrinks, and one thread.
#![allow(unsafe_code)]
//!
//! ```text
//!  0 ─ the program's data and stack ─ start ─ committed, or skipped ─ end
//!                                       ├───── the address range ──────────▶
//! ```
//!
//! An address range is what lies behind the end of the memory when it is proposed. Committing a part grows the memory up to the part's end, so the
//! parts before it are committed, too ([`Os::grows_at_its_end`]): whoever commits puts what is needed first to the beginning. Memory that is
//! purged stays where it is: nothing is given back, and no memory is purged.
//!
//! Other code may grow the memory in between. What it has got that way is skipped: committing it fails with [`Errno::EXIST`].
//!
//! A Freestone without threads is what WebAssembly has so far: the target features `atomics` and `bulk-memory`, with which threads would share the
//! memory, are refused.
//!
//! Tables, rows and texts lie outside the address range. What was lent for a call and given back is lent again to who asks for the same length; nothing is split
//! or joined. So of each length there is as much as was lent at once.
//!
//! # Safety
//! Memory that `memory.grow` returned is zero, and nobody else's. What was given back begins with a record, which no other code accesses until it is lent again.

use crate::{Errno, GuardBy, Os, Prefault};
use core::arch::wasm32;
use core::ptr;
use freestone_base::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use freestone_base::units::PAGE_BYTES;
use freestone_base::{bytes, ptr as address};

mod host;
mod single;
pub use host::{clock, process};
pub(crate) use host::{random, write_error};
pub use single::ExitHook;
pub(crate) use single::threads;

#[cfg(target_feature = "atomics")]
compile_error!(
    "freestone in WebAssembly has one thread: build without the target feature `atomics`, or leave the program with the allocator of std"
);

/// The memory of the instance.
#[derive(Debug)]
pub struct Wasm;

/// Bytes that memory grows by: the same as the heap's pages.
const GROWTH_BYTES: usize = 1 << 16;

const _: () = assert!(GROWTH_BYTES == PAGE_BYTES);

/// Size of the address range: half of what an address can say, of which the metadata takes a hundredth.
const RANGE_BYTES: usize = 1 << 31;

/// The end of the part from whose start on everything is committed: other code has grown the memory behind it, or nobody has yet.
static WHOLE_END: AtomicUsize = AtomicUsize::new(0);

/// The end of the last growth that was made here.
static OWN_END: AtomicUsize = AtomicUsize::new(0);

/// The end of the memory.
fn end() -> usize {
    wasm32::memory_size::<0>() * GROWTH_BYTES
}

/// Grows the memory up to `to`. `false` if the host refuses.
fn grow(to: usize) -> bool {
    let pages = to.saturating_sub(end()).div_ceil(GROWTH_BYTES);
    wasm32::memory_grow::<0>(pages) != usize::MAX
}

// SAFETY: `commit` grows the memory, and what it grows by is zero, and no other code's.
unsafe impl Os for Wasm {
    fn os_page_bytes(&self) -> usize {
        GROWTH_BYTES
    }

    fn range_bytes_wanted(&self) -> usize {
        RANGE_BYTES
    }

    fn grows_at_its_end(&self) -> bool {
        true
    }

    fn propose_range(&self, bytes: usize, attempt: u32) -> Option<*mut u8> {
        let start = end();
        if attempt > 0 || start.checked_add(bytes).is_none() {
            return None;
        }
        WHOLE_END.store(start, Ordering::Relaxed);
        OWN_END.store(start, Ordering::Relaxed);
        Some(address::from_exposed(start))
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, _lazily: bool) -> Result<(), Errno> {
        let (at, memory_end, own_end) = (at.addr(), end(), OWN_END.load(Ordering::Relaxed));
        let whole_end = WHOLE_END.load(Ordering::Relaxed);
        let wanted = at.checked_add(bytes).ok_or(Errno::NOMEM)?;
        if wanted <= whole_end {
            return Ok(());
        }
        let is_whole = whole_end == memory_end;
        // Other code has grown the memory, or a part before this one was skipped.
        if !is_whole && at < memory_end.max(own_end) {
            return Err(Errno::EXIST);
        }
        if !grow(wanted) {
            return Err(Errno::NOMEM);
        }
        OWN_END.store(wanted, Ordering::Relaxed);
        if is_whole {
            WHOLE_END.store(wanted, Ordering::Relaxed);
        }
        Ok(())
    }

    unsafe fn release(&self, _at: *mut u8, _bytes: usize) -> Result<(), Errno> {
        Err(Errno::NOMEM)
    }

    unsafe fn purge(&self, _at: *mut u8, _bytes: usize) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }

    unsafe fn purge_lazily(&self, _at: *mut u8, _bytes: usize) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }

    fn purge_zeroes(&self) -> bool {
        false
    }

    unsafe fn prefault(&self, _at: *mut u8, _bytes: usize, _how: Prefault) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }

    unsafe fn guard(&self, _at: *mut u8, _bytes: usize, _by: GuardBy) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }

    unsafe fn unguard(&self, _at: *mut u8, _bytes: usize, _by: GuardBy) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }

    fn random(&self) -> u64 {
        random()
    }

    fn now_ms(&self) -> u64 {
        clock::monotonic_us() / 1000
    }
}

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

/// The only thread would wait for itself: it goes on.
pub(crate) fn wait(_word: &AtomicU32, _expected: u32, _ms: Option<u32>) {}

/// Nobody waits.
pub(crate) fn wake(_word: &AtomicU32, _all: bool) {}

/// The number of the only thread.
pub(crate) fn this_thread() -> usize {
    ptr::from_ref(&WHOLE_END).addr()
}
