//! The calls of the fake kernel, and the memory behind them.
#![allow(unsafe_code)]
//!
//! Long because: it has each call.
//!
//! # Safety
//! The address range is one zeroed allocation that is freed or kept with the `Fake`, so committed memory can be used. Parts of it are checked to
//! lie inside it before they are written to.

use super::page_set::PageSet;
use super::{Fake, State};
use crate::{Errno, GuardBy, MemoryRange, NotMoved, Os, Prefault, Target};
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::vec::Vec;
use freestone_base::sync::Ordering;
use std::sync::{Mutex, PoisonError};

/// Memory of kernels that are gone, for the next ones. The kernel of the machine takes longer to find and clear each OS page again than most tests take.
static SPARE: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

/// The most of it that waits: as many tests as run at once on most machines.
const SPARE_MAX: usize = 4;

/// The most bytes that are cleared, and then stay in use.
const CLEARED_MAX: usize = 32 << 20;

/// All zero.
struct Spare {
    memory: usize,
    range_bytes: usize,
}

/// Address ranges start at multiples of this, wherever the test's own allocator puts their memory: what is placed by address is placed alike in each run.
const ALIGN: usize = 2 << 20;

/// How many bytes are compared at once.
const PIECE: usize = 1024;

// SAFETY: memory comes from one live allocation and is zero where it is not committed: it starts so, and `release` and
// `purge` clear it.
unsafe impl Os for Fake {
    fn os_page_bytes(&self) -> usize {
        self.os_page_bytes
    }

    fn range_bytes_wanted(&self) -> usize {
        self.range_bytes
    }

    fn propose_range(&self, bytes: usize, attempt: u32) -> Option<*mut u8> {
        if attempt > 0 || bytes > self.range_bytes {
            return None;
        }
        let mut state = self.call().ok()?;
        if state.address_range == 0 {
            state.memory = self.zeroed_memory()?;
            state.address_range = state.memory.next_multiple_of(ALIGN);
            let none = PageSet::with_room(self.range_bytes / self.os_page_bytes);
            state.committed = none.clone();
            state.known = none.clone();
            state.huge = none.clone();
            state.guarded_by_marker = none.clone();
            state.guarded_by_rights = none.clone();
            state.taken = none;
        }
        Some(freestone_base::ptr::from_exposed(state.address_range))
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, _lazily: bool) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        if state.committed.has_any(pages.clone()) || state.taken.has_any(pages.clone()) {
            return Err(Errno::EXIST);
        }
        if let Some(most) = state.most_committed {
            if state.committed.len() * self.os_page_bytes + bytes > most {
                return Err(Errno::NOMEM);
            }
        }
        state.known.set(pages.clone(), true);
        state.committed.set(pages, true);
        Ok(())
    }

    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        let mut state = self.call()?;
        // SAFETY: no code uses the range any more.
        unsafe { self.unmap(&mut state, at, bytes) };
        Ok(())
    }

    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        self.wait_while_held();
        if self.lock().keeps_memory {
            return Err(Errno::INVAL);
        }
        // SAFETY: the range is committed, so it is inside the address range, and its contents are not needed.
        let mut state = self.call_or_half_way(|_| unsafe { at.write_bytes(0, self.half(bytes)) })?;
        // SAFETY: the range is committed, and its contents are not needed.
        unsafe { self.take_back(&mut state, &[MemoryRange { start: at, bytes }]) };
        Ok(())
    }

    unsafe fn purge_first(&self, ranges: &[MemoryRange]) -> usize {
        self.wait_while_held();
        if self.lock().keeps_memory {
            return 0;
        }
        let mut n = 0;
        let half_way = |state: &mut State| {
            n = ranges.len() / 2;
            let (gone, kept) = ranges.split_at(n);
            // SAFETY: the ranges are committed, and their contents are not needed.
            unsafe { self.take_back(state, gone) };
            if let Some(range) = kept.first() {
                // SAFETY: as above.
                unsafe { range.start.write_bytes(0, self.half(range.bytes)) };
            }
        };
        if let Ok(mut state) = self.call_or_half_way(half_way) {
            n = ranges.len();
            // SAFETY: as above.
            unsafe { self.take_back(&mut state, ranges) };
        }
        n
    }

    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // This kernel is always short of memory.
        // SAFETY: the range is committed, and its contents are not needed.
        unsafe { self.purge(at, bytes) }
    }

    fn purge_zeroes(&self) -> bool {
        !self.lock().purge_keeps_contents
    }

    unsafe fn relocate(&self, from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), NotMoved> {
        let mut target = Target::Committed;
        let state = self.call_or_half_way(|state| {
            target = Target::Reserved;
            // SAFETY: what is at `to` is not needed.
            unsafe { self.unmap(state, to, bytes) };
            if state.failure.is_some_and(|plan| plan.errno == Errno::EXIST) {
                target = Target::Taken;
                let pages = self.pages(state, to, bytes);
                state.taken.set(pages, true);
            }
        });
        let mut state = match state {
            Ok(state) => state,
            Err(errno) => {
                if target == Target::Committed {
                    // It was unmapped for the move, and mapped again.
                    // SAFETY: what is at `to` is not needed.
                    unsafe { to.write_bytes(0, bytes) };
                    let mut state = self.lock();
                    let pages = self.pages(&state, to, bytes);
                    state.huge.set(pages, false);
                }
                return Err(NotMoved { errno, target });
            }
        };
        for (at, what) in
            [(from, "moving memory that is not committed"), (to, "moving to a range that is not committed")]
        {
            let pages = self.pages(&state, at, bytes);
            assert!(state.committed.has_all(pages.clone()), "{what}");
            assert!(!state.is_guarded(pages), "moving guarded memory");
        }
        // SAFETY: both ranges are inside the address range (checked by `pages`), do not overlap, and no other code uses them.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
        // SAFETY: as above, and the contents have been copied.
        unsafe { from.write_bytes(0, bytes) };
        // What was advised goes with the memory, and stays where it was as well.
        let (source, target) = (self.pages(&state, from, bytes), self.pages(&state, to, bytes));
        state.huge.copy(source, target.start);
        Ok(())
    }

    unsafe fn prefault(&self, at: *mut u8, bytes: usize, _how: Prefault) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.committed.has_all(pages.clone()), "prefaulting memory that is not committed");
        assert!(!state.is_guarded(pages), "prefaulting guarded memory");
        state.prefaulted_bytes += bytes as u64;
        Ok(())
    }

    unsafe fn guard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.committed.has_all(pages.clone()), "guarding memory that is not committed");
        assert!(!state.is_guarded(pages.clone()), "guarding memory twice");
        if by == GuardBy::Marker && state.has_no_markers {
            return Err(Errno::INVAL);
        }
        if let (GuardBy::Rights, Some(most)) = (by, state.most_guarded_by_rights) {
            if state.guarded(by).len() * self.os_page_bytes + bytes > most {
                return Err(Errno::NOMEM);
            }
        }
        if by == GuardBy::Marker {
            // SAFETY: the range is inside the address range (checked by `pages`), and no code uses it.
            unsafe { at.write_bytes(0, bytes) };
        }
        state.guarded(by).set(pages, true);
        Ok(())
    }

    unsafe fn unguard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.guarded(by).has_all(pages.clone()), "ending what is not guarded so");
        if state.opens_nothing {
            return Err(Errno::NOMEM);
        }
        state.guarded(by).set(pages, false);
        Ok(())
    }

    fn gives_huge_pages_unasked(&self) -> bool {
        self.lock().huge_unasked
    }

    fn huge_page_bytes(&self) -> usize {
        self.lock().huge_page_bytes
    }

    fn advise_huge(&self, at: *mut u8, bytes: usize, wanted: bool) -> Result<(), Errno> {
        let mut state = self.call_or_half_way(|state| {
            let pages = self.pages(state, at, bytes);
            state.huge.set(pages.start..pages.start + pages.len() / 2, wanted);
        })?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.committed.has_all(pages.clone()), "advising about memory that is not committed");
        state.huge.set(pages, wanted);
        Ok(())
    }

    fn is_resident(&self, at: *mut u8) -> bool {
        let state = self.lock();
        let _ = self.pages(&state, at, self.os_page_bytes);
        state.all_resident
    }

    fn memory_limit_bytes(&self) -> Result<Option<u64>, Errno> {
        self.wait_while_held();
        Ok(self.call()?.group_bytes)
    }

    fn charges_mappings(&self) -> bool {
        self.lock().charges_mappings
    }

    fn random(&self) -> u64 {
        self.lock().draw()
    }

    fn now_ms(&self) -> u64 {
        self.lock().now_ms
    }
}

impl Fake {
    /// Waits as long as slow calls are held.
    fn wait_while_held(&self) {
        self.n_held.fetch_add(1, Ordering::SeqCst);
        while self.holds_slow_calls.load(Ordering::SeqCst) {
            let_others_run();
        }
        self.n_held.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether all memory is still zero that is guarded, or was committed and is not any more. A write there would crash on a real kernel.
    #[must_use]
    pub fn is_untouched_outside(&self) -> bool {
        let state = self.lock();
        let was_committed = state.known.without(&state.committed);
        let guarded =
            [&state.guarded_by_marker, &state.guarded_by_rights].into_iter().flat_map(|guarded| guarded.pages());
        let is_zero = |page: usize| {
            let start = freestone_base::ptr::from_exposed::<u8>(state.address_range + page * self.os_page_bytes);
            // SAFETY: the page is inside the address range, which is one allocation, and no code writes to memory that is not committed.
            let bytes = unsafe { core::slice::from_raw_parts(start, self.os_page_bytes) };
            // By pieces: one byte at a time takes Miri long.
            bytes.chunks(PIECE).all(|piece| *piece == [0; PIECE][..piece.len()])
        };
        was_committed.chain(guarded).all(is_zero)
    }

    /// Memory for the address range, and for aligning it here: the allocator would write to every byte of an aligned allocation to zero it.
    fn layout(&self) -> Layout {
        Layout::array::<u8>(self.range_bytes + ALIGN).expect("the size of the test's address range is sensible")
    }

    /// Memory for the address range, all zero: where it starts.
    fn zeroed_memory(&self) -> Option<usize> {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = spare.iter().position(|spare| spare.range_bytes == self.range_bytes) {
            return Some(spare.swap_remove(at).memory);
        }
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(self.layout()) };
        if memory.is_null() { None } else { Some(freestone_base::ptr::expose(memory)) }
    }

    /// Clears all that has ever been committed.
    fn clear(&self) {
        let state = self.lock();
        for page in state.known.pages() {
            let start = freestone_base::ptr::from_exposed::<u8>(state.address_range + page * self.os_page_bytes);
            // SAFETY: the page is inside the address range, which nothing uses after its kernel.
            unsafe { start.write_bytes(0, self.os_page_bytes) };
        }
    }

    /// Unmaps a part of the address range.
    ///
    /// # Safety
    /// - No code uses the range any more.
    unsafe fn unmap(&self, state: &mut State, at: *mut u8, bytes: usize) {
        let pages = self.pages(state, at, bytes);
        state.committed.set(pages.clone(), false);
        state.huge.set(pages.clone(), false);
        state.guarded_by_marker.set(pages.clone(), false);
        state.guarded_by_rights.set(pages, false);
        // SAFETY: the range is inside the address range (checked by `pages`), and no code uses it any more.
        unsafe { at.write_bytes(0, bytes) };
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let memory = self.lock().memory;
        if memory == 0 {
            return;
        }
        let known_bytes = self.lock().known.len() * self.os_page_bytes;
        // A test that fails may have written where nothing has been committed. Miri sees accesses to memory that has been freed.
        if !cfg!(miri) && !std::thread::panicking() && known_bytes <= CLEARED_MAX {
            self.clear();
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE_MAX {
                return spare.push(Spare { memory, range_bytes: self.range_bytes });
            }
        }
        // SAFETY: `zeroed_memory` allocated it with this layout, and nothing uses the address range after its kernel.
        unsafe { dealloc(freestone_base::ptr::from_exposed(memory), self.layout()) }
    }
}

/// Lets other threads run.
fn let_others_run() {
    #[cfg(not(shuttle))]
    std::thread::yield_now();
    #[cfg(shuttle)]
    freestone_base::sync::scheduled::let_others_run();
}
