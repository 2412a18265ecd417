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
//! # Safety
//! Memory that `memory.grow` returned is zero, and nobody else's.

use crate::{Errno, GuardBy, Os, Prefault};
use core::arch::wasm32;
use core::ptr;
use freestone_base::ptr as address;
use freestone_base::sync::{AtomicU32, AtomicUsize, Ordering};
use freestone_base::units::PAGE_BYTES;

mod host;
mod lent;
mod single;
pub use host::{clock, process};
pub(crate) use host::{random, write_error};
pub(crate) use lent::{map, unmap};
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

/// The only thread would wait for itself: it goes on.
pub(crate) fn wait(_word: &AtomicU32, _expected: u32, _ms: Option<u32>) {}

/// Nobody waits.
pub(crate) fn wake(_word: &AtomicU32, _all: bool) {}

/// The number of the only thread.
pub(crate) fn this_thread() -> usize {
    ptr::from_ref(&WHOLE_END).addr()
}
