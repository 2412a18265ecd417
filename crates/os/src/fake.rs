//! A kernel for tests: fails on demand, fully or half-way, has its own clock, its own OS page size, and checks every transition.
#![allow(unsafe_code)]
//!
//! What the kernels of the last ten years leave behind when they fail in the middle ([`Fake::plan_half_way`]):
//!
//! | call | half-way |
//! |---|---|
//! | commit (`mmap`), release (`munmap`) | as fully: they check before they change |
//! | purge (`madvise`) | the first half is gone (a locked part comes behind it, or a hole) |
//! | relocate (`mremap`) | the target is unmapped; with `EEXIST` somebody else has mapped something there |
//! | prefault (`MADV_POPULATE_WRITE`) | the first half has memory |
//! | advise_huge (`MADV_HUGEPAGE`) | the first half is advised |
//!
//! Long because: one function for each call of the kernel, with all ways in which it may fail.
//!
//! # Safety
//! The window is one zeroed allocation that lives as long as the `Fake`, so that committed
//! memory is real; a state is kept for each OS page and a transition that no kernel would allow panics the test.

use crate::{Errno, NotMoved, Os, Prefault, Target};
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::vec::Vec;
#[cfg(not(shuttle))]
use freestone_base::lock::{Guard, Lock, Spin};
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_base::units::PAGE_BYTES;

/// What the kernel knows, and nobody interrupts it: one call at a time.
#[cfg(not(shuttle))]
type Known = Lock<State>;
#[cfg(not(shuttle))]
type Inside<'kernel> = Guard<'kernel, State, Spin, 0>;

/// In the model under schedules another thread may run before a call and after it, never inside: a fork leaves no call half made.
#[cfg(shuttle)]
type Known = std::sync::Mutex<State>;
#[cfg(shuttle)]
type Inside<'kernel> = std::sync::MutexGuard<'kernel, State>;

/// When a call fails.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Which call, counted from 0 at the moment the failure is planned.
    pub nth_call: u64,
    /// With what.
    pub errno: Errno,
    /// Whether all later calls fail too.
    pub for_good: bool,
}

/// See the module header.
pub struct Fake {
    os_page_bytes: usize,
    window_bytes: usize,
    /// Whether purges wait, and how many do.
    holds_purges: AtomicBool,
    n_held: AtomicU32,
    state: Known,
}

/// Wide because: each way to fail, and each figure that tests ask for, is one number.
#[derive(Debug, Default)]
struct State {
    /// Whether what fails has done half its work.
    half_way: bool,
    /// OS pages that somebody else has mapped.
    taken: Vec<bool>,
    /// Start of the allocation that the window lies in.
    memory: usize,
    window: usize,
    committed: Vec<bool>,
    /// OS pages that were committed once.
    known: Vec<bool>,
    now_ms: u64,
    n_calls: u64,
    failure: Option<Failure>,
    purged_bytes: u64,
    longest_purge_bytes: usize,
    purge_keeps_contents: bool,
    huge_page_bytes: usize,
    huge: Vec<bool>,
    all_resident: bool,
    most_committed: Option<usize>,
}

impl Fake {
    /// A kernel with OS pages of `os_page_bytes` that has `window_bytes` of address space to give.
    #[must_use]
    pub fn new(os_page_bytes: usize, window_bytes: usize) -> Self {
        assert!(os_page_bytes.is_power_of_two() && os_page_bytes <= PAGE_BYTES);
        Self {
            os_page_bytes,
            window_bytes,
            holds_purges: AtomicBool::new(false),
            n_held: AtomicU32::new(0),
            state: Known::new(State::default()),
        }
    }

    /// Plans a failure, or none, and counts calls from 0 again.
    pub fn plan(&self, failure: Option<Failure>) {
        let mut state = self.lock();
        state.n_calls = 0;
        state.failure = failure;
        state.half_way = false;
    }

    /// As [`Fake::plan`], but what fails has done half its work.
    pub fn plan_half_way(&self, failure: Failure) {
        self.plan(Some(failure));
        self.lock().half_way = true;
    }

    /// Calls since the last [`Fake::plan`].
    #[must_use]
    pub fn n_calls(&self) -> u64 {
        self.lock().n_calls
    }

    /// Moves the clock.
    pub fn advance_ms(&self, ms: u64) {
        self.lock().now_ms += ms;
    }

    /// Bytes purged since the beginning.
    #[must_use]
    pub fn purged_bytes(&self) -> u64 {
        self.lock().purged_bytes
    }

    /// The most bytes that one call purged.
    #[must_use]
    pub fn longest_purge_bytes(&self) -> usize {
        self.lock().longest_purge_bytes
    }

    /// Lets purges wait inside the kernel, or go on.
    pub fn hold_purges(&self, hold: bool) {
        self.holds_purges.store(hold, Ordering::SeqCst);
    }

    /// Purges that wait now.
    #[must_use]
    pub fn n_held_purges(&self) -> u32 {
        self.n_held.load(Ordering::SeqCst)
    }

    /// Bytes committed now.
    #[must_use]
    pub fn committed_bytes(&self) -> usize {
        self.lock().committed.iter().filter(|&&page| page).count() * self.os_page_bytes
    }

    /// Whether all memory that is not committed is as it was when it was last mapped: zero. Who writes there would have crashed.
    #[must_use]
    pub fn is_untouched_outside(&self) -> bool {
        let state = self.lock();
        let was_committed = (0..state.committed.len()).filter(|&page| state.known[page] && !state.committed[page]);
        let is_zero = |page: usize| {
            let start = freestone_base::ptr::from_exposed::<u8>(state.window + page * self.os_page_bytes);
            // SAFETY: the page is inside the window.
            unsafe { core::slice::from_raw_parts(start, self.os_page_bytes) }.iter().all(|&byte| byte == 0)
        };
        was_committed.into_iter().all(is_zero)
    }

    /// Makes purging succeed without clearing, as some emulators do.
    pub fn keep_contents_on_purge(&self) {
        self.lock().purge_keeps_contents = true;
    }

    /// Gives huge pages of this size to those who ask, and answers that all memory is resident.
    pub fn give_huge_pages(&self, bytes: usize) {
        let mut state = self.lock();
        state.huge_page_bytes = bytes;
        state.all_resident = true;
    }

    /// Refuses to have more than `bytes` committed at once, as under a limit of address space.
    pub fn limit_committed(&self, bytes: usize) {
        self.lock().most_committed = Some(bytes);
    }

    /// Answers that all memory is resident, or none.
    pub fn say_resident(&self, resident: bool) {
        self.lock().all_resident = resident;
    }

    /// Bytes for which huge pages are asked now.
    #[must_use]
    pub fn huge_bytes(&self) -> usize {
        self.lock().huge.iter().filter(|&&page| page).count() * self.os_page_bytes
    }

    #[cfg(not(shuttle))]
    fn lock(&self) -> Inside<'_> {
        self.state.lock()
    }

    #[cfg(shuttle)]
    fn lock(&self) -> Inside<'_> {
        freestone_base::sync::scheduled::kernel_point();
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Counts a call and fails it if it is its turn.
    fn call(&self) -> Result<Inside<'_>, Errno> {
        self.call_or_half_way(|_| ())
    }

    /// As [`Fake::call`]; `half` does what the call has done when it fails half-way.
    fn call_or_half_way(&self, half: impl FnOnce(&mut State)) -> Result<Inside<'_>, Errno> {
        let mut state = self.lock();
        let this = state.n_calls;
        state.n_calls += 1;
        match state.failure {
            Some(plan) if this == plan.nth_call || (plan.for_good && this > plan.nth_call) => {
                if state.half_way {
                    half(&mut state);
                }
                Err(plan.errno)
            }
            _ => Ok(state),
        }
    }

    /// Bytes of the first half of a range, in whole OS pages.
    fn half(&self, bytes: usize) -> usize {
        bytes / 2 / self.os_page_bytes * self.os_page_bytes
    }

    /// Unmaps a range of the window.
    ///
    /// # Safety
    /// - The caller gives it up.
    unsafe fn unmap(&self, state: &mut State, at: *mut u8, bytes: usize) {
        let pages = self.pages(state, at, bytes);
        state.committed[pages.clone()].fill(false);
        state.huge[pages].fill(false);
        // SAFETY: the range is inside the window (checked by `pages`) and given up by the caller.
        unsafe { at.write_bytes(0, bytes) };
    }

    /// Room for the window, and for aligning it: of an allocation that is aligned by itself every byte would be written to.
    fn layout(&self) -> Layout {
        Layout::array::<u8>(self.window_bytes + PAGE_BYTES).expect("the test's window size is sensible")
    }

    /// The OS pages of a range inside the window.
    fn pages(&self, state: &State, at: *mut u8, bytes: usize) -> core::ops::Range<usize> {
        let offset = at.addr().checked_sub(state.window).expect("the range starts inside the window");
        assert!(offset.is_multiple_of(self.os_page_bytes) && bytes.is_multiple_of(self.os_page_bytes) && bytes > 0);
        assert!(offset + bytes <= self.window_bytes, "the range ends inside the window");
        offset / self.os_page_bytes..(offset + bytes) / self.os_page_bytes
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let memory = self.lock().memory;
        if memory != 0 {
            // SAFETY: allocated with this layout in `propose_window`, and nothing outlives the kernel it came from.
            unsafe { dealloc(freestone_base::ptr::from_exposed(memory), self.layout()) }
        }
    }
}

// SAFETY: memory comes from one live allocation and is zero where it is not committed: it starts so, and `release` and
// `purge` clear it.
unsafe impl Os for Fake {
    fn os_page_bytes(&self) -> usize {
        self.os_page_bytes
    }

    fn window_bytes_wanted(&self) -> usize {
        self.window_bytes
    }

    fn propose_window(&self, bytes: usize, attempt: u32) -> Option<*mut u8> {
        if attempt > 0 || bytes > self.window_bytes {
            return None;
        }
        let mut state = self.call().ok()?;
        if state.window == 0 {
            // SAFETY: the layout is not empty.
            let memory = unsafe { alloc_zeroed(self.layout()) };
            if memory.is_null() {
                return None;
            }
            state.memory = freestone_base::ptr::expose(memory);
            state.window = state.memory.next_multiple_of(PAGE_BYTES);
            let none = alloc::vec![false; self.window_bytes / self.os_page_bytes];
            state.committed.clone_from(&none);
            state.known.clone_from(&none);
            state.huge.clone_from(&none);
            state.taken = none;
        }
        Some(freestone_base::ptr::from_exposed(state.window))
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, _lazily: bool) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        if pages.clone().any(|page| state.committed[page] || state.taken[page]) {
            return Err(Errno::EXIST);
        }
        if let Some(most) = state.most_committed {
            let all = state.committed.iter().filter(|&&page| page).count() * self.os_page_bytes;
            if all + bytes > most {
                return Err(Errno::NOMEM);
            }
        }
        state.known[pages.clone()].fill(true);
        state.committed[pages].fill(true);
        Ok(())
    }

    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        let mut state = self.call()?;
        // SAFETY: the caller's promise.
        unsafe { self.unmap(&mut state, at, bytes) };
        Ok(())
    }

    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        self.n_held.fetch_add(1, Ordering::SeqCst);
        while self.holds_purges.load(Ordering::SeqCst) {
            crate::process::yield_now();
        }
        self.n_held.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: as in `release`.
        let mut state = self.call_or_half_way(|_| unsafe { at.write_bytes(0, self.half(bytes)) })?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.committed[pages].iter().all(|&page| page), "purging memory that is not committed");
        state.purged_bytes += bytes as u64;
        state.longest_purge_bytes = state.longest_purge_bytes.max(bytes);
        if !state.purge_keeps_contents {
            // SAFETY: as in `release`.
            unsafe { at.write_bytes(0, bytes) };
        }
        Ok(())
    }

    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the caller's promise. This kernel is always short of memory.
        unsafe { self.purge(at, bytes) }
    }

    fn purge_zeroes(&self) -> bool {
        !self.lock().purge_keeps_contents
    }

    unsafe fn relocate(&self, from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), NotMoved> {
        let mut target = Target::Committed;
        let state = self.call_or_half_way(|state| {
            target = Target::Reserved;
            // SAFETY: nobody needs what is at `to`.
            unsafe { self.unmap(state, to, bytes) };
            if state.failure.is_some_and(|plan| plan.errno == Errno::EXIST) {
                target = Target::Taken;
                let pages = self.pages(state, to, bytes);
                state.taken[pages].fill(true);
            }
        });
        let state = state.map_err(|errno| NotMoved { errno, target })?;
        for (at, what) in [(from, "moving what is not committed"), (to, "moving to where nothing is committed")] {
            assert!(state.committed[self.pages(&state, at, bytes)].iter().all(|&page| page), "{what}");
        }
        // SAFETY: both ranges are inside the window (checked by `pages`) and the caller's.
        unsafe {
            to.copy_from_nonoverlapping(from, bytes);
            from.write_bytes(0, bytes);
        }
        Ok(())
    }

    unsafe fn prefault(&self, at: *mut u8, bytes: usize, _how: Prefault) -> Result<(), Errno> {
        let state = self.call()?;
        assert!(state.committed[self.pages(&state, at, bytes)].iter().all(|&page| page), "prefaulting nothing");
        Ok(())
    }

    fn huge_page_bytes(&self) -> usize {
        self.lock().huge_page_bytes
    }

    unsafe fn advise_huge(&self, at: *mut u8, bytes: usize, wanted: bool) -> Result<(), Errno> {
        let mut state = self.call_or_half_way(|state| {
            let pages = self.pages(state, at, bytes);
            state.huge[pages.start..pages.start + pages.len() / 2].fill(wanted);
        })?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.committed[pages.clone()].iter().all(|&page| page), "advising about nothing");
        state.huge[pages].fill(wanted);
        Ok(())
    }

    fn is_resident(&self, at: *mut u8) -> bool {
        let state = self.lock();
        let _ = self.pages(&state, at, self.os_page_bytes);
        state.all_resident
    }

    fn memory_limit_bytes(&self) -> Option<u64> {
        None
    }

    fn now_ms(&self) -> u64 {
        self.lock().now_ms
    }
}

#[cfg(test)]
mod tests;
