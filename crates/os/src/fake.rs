//! A kernel for tests: fails on demand, has its own clock, its own OS page size, and checks every transition.
#![allow(unsafe_code)]
//! # Safety
//! The window is one zeroed allocation that lives as long as the `Fake`, so that committed
//! memory is real; a state is kept for each OS page and a transition that no kernel would allow panics the test.

use crate::{Errno, Os, Prefault};
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::vec::Vec;
#[cfg(not(shuttle))]
use freestone_base::lock::{Guard, Lock, Spin};
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
    state: Known,
}

#[derive(Debug, Default)]
struct State {
    /// Start of the allocation that the window lies in.
    memory: usize,
    window: usize,
    committed: Vec<bool>,
    now_ms: u64,
    n_calls: u64,
    failure: Option<Failure>,
    purged_bytes: u64,
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
        Self { os_page_bytes, window_bytes, state: Known::new(State::default()) }
    }

    /// Plans a failure, or none, and counts calls from 0 again.
    pub fn plan(&self, failure: Option<Failure>) {
        let mut state = self.lock();
        state.n_calls = 0;
        state.failure = failure;
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

    /// Bytes committed now.
    #[must_use]
    pub fn committed_bytes(&self) -> usize {
        self.lock().committed.iter().filter(|&&page| page).count() * self.os_page_bytes
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
        let mut state = self.lock();
        let this = state.n_calls;
        state.n_calls += 1;
        match state.failure {
            Some(plan) if this == plan.nth_call || (plan.for_good && this > plan.nth_call) => Err(plan.errno),
            _ => Ok(state),
        }
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
            state.committed = alloc::vec![false; self.window_bytes / self.os_page_bytes];
        }
        Some(freestone_base::ptr::from_exposed(state.window))
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, _lazily: bool) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        if state.committed[pages.clone()].iter().any(|&page| page) {
            return Err(Errno::EXIST);
        }
        if let Some(most) = state.most_committed {
            let all = state.committed.iter().filter(|&&page| page).count() * self.os_page_bytes;
            if all + bytes > most {
                return Err(Errno::NOMEM);
            }
        }
        state.committed[pages].fill(true);
        Ok(())
    }

    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        state.committed[pages].fill(false);
        // SAFETY: the range is inside the window (checked by `pages`) and given up by the caller.
        unsafe { at.write_bytes(0, bytes) };
        Ok(())
    }

    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.committed[pages].iter().all(|&page| page), "purging memory that is not committed");
        state.purged_bytes += bytes as u64;
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

    unsafe fn relocate(&self, from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), Errno> {
        let state = self.call()?;
        let _ = (self.pages(&state, from, bytes), self.pages(&state, to, bytes));
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
        let mut state = self.call()?;
        let pages = self.pages(&state, at, bytes);
        assert!(state.committed[pages.clone()].iter().all(|&page| page), "advising about nothing");
        let all = state.committed.len();
        state.huge.resize(all, false);
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
