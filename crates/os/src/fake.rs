//! A fake kernel for tests: it fails on demand, completely or half-way, has its own clock and OS page size, and checks every transition.
//!
//! Long because: it has each way in which a kernel fails or differs.
//!
//! What a call that fails half-way leaves behind ([`Fake::plan_half_way`]), as kernels of the last ten years do:
//!
//! | call | half-way |
//! |---|---|
//! | commit (`mmap`), release (`munmap`) | nothing: they check everything before they change anything |
//! | purge (`madvise`) | the first half is purged: a locked part or a hole comes after it |
//! | purge_first (`process_madvise`) | the first half of the ranges is purged, and the first half of the next range |
//! | relocate (`mremap`) | the target is unmapped; with `EEXIST` another thread has mapped something there |
//! | prefault (`MADV_POPULATE_WRITE`) | the first half has memory |
//! | advise_huge (`MADV_HUGEPAGE`) | the first half is advised |
//! | guard, unguard (`MADV_GUARD_INSTALL`, `MADV_GUARD_REMOVE`, `mprotect`) | nothing |
//!
//! A relocation that fails completely leaves the target empty: it was unmapped for the move, and is mapped again.
//!
//! The fake keeps a state for each OS page, and a transition that no kernel would allow panics the test.

use crate::{Errno, GuardBy, MemoryRange};
use core::ops::Range;
#[cfg(not(shuttle))]
use freestone_base::lock::{Guard, Lock, Spin};
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_base::units::PAGE_BYTES;
use page_set::PageSet;

/// The state behind a lock: one call at a time.
#[cfg(not(shuttle))]
type Known = Lock<State>;
#[cfg(not(shuttle))]
type Inside<'kernel> = Guard<'kernel, State, Spin, 0>;

/// In the model under schedules another thread may run before and after a call, but not during it, so a fork interrupts no call.
#[cfg(shuttle)]
type Known = std::sync::Mutex<State>;
#[cfg(shuttle)]
type Inside<'kernel> = std::sync::MutexGuard<'kernel, State>;

/// When a call fails.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Which call, counted from 0 at the moment the failure is planned.
    pub nth_call: u64,
    /// The error.
    pub errno: Errno,
    /// Whether all later calls fail too.
    pub for_good: bool,
}

/// See the module header.
///
/// ```
/// use freestone_os::fake::{Failure, Fake};
/// use freestone_os::{Errno, Os};
///
/// let kernel = Fake::new(4096, 1 << 20);
/// let at = kernel.propose_range(1 << 20, 0).expect("the whole range");
/// kernel.plan(Some(Failure { nth_call: 1, errno: Errno::NOMEM, for_good: false }));
/// // SAFETY: parts of the proposed range, which only this code uses.
/// unsafe {
///     assert_eq!(kernel.commit(at, 4096, false), Ok(()));
///     assert_eq!(kernel.commit(at.add(4096), 4096, false), Err(Errno::NOMEM));
///     assert_eq!(kernel.commit(at.add(4096), 4096, false), Ok(()));
/// }
/// assert_eq!(kernel.committed_bytes(), 8192);
/// ```
pub struct Fake {
    os_page_bytes: usize,
    range_bytes: usize,
    /// Whether purges, and readings of the control group's limit, wait.
    holds_slow_calls: AtomicBool,
    /// Calls that wait.
    n_held: AtomicU32,
    state: Known,
}

/// Wide because: each kind of failure, and each figure that tests read, is one number.
#[derive(Debug, Default)]
struct State {
    /// Whether a call that fails does half its work first.
    half_way: bool,
    /// OS pages that another part of the program has mapped.
    taken: PageSet,
    /// Start of the allocation that the address range lies in.
    memory: usize,
    address_range: usize,
    committed: PageSet,
    /// OS pages that have been committed at some time.
    known: PageSet,
    now_ms: u64,
    n_calls: u64,
    failure: Option<Failure>,
    purged_bytes: u64,
    longest_purge_bytes: usize,
    prefaulted_bytes: u64,
    purge_keeps_contents: bool,
    huge_page_bytes: usize,
    huge: PageSet,
    all_resident: bool,
    huge_unasked: bool,
    guarded_by_marker: PageSet,
    guarded_by_rights: PageSet,
    has_no_markers: bool,
    opens_nothing: bool,
    most_guarded_by_rights: Option<usize>,
    most_committed: Option<usize>,
    n_random: u64,
    group_bytes: Option<u64>,
    /// What is mapped counts against a limit.
    charges_mappings: bool,
    /// All memory is locked.
    keeps_memory: bool,
}

impl State {
    /// The pages that are guarded by these means.
    fn guarded(&mut self, by: GuardBy) -> &mut PageSet {
        match by {
            GuardBy::Marker => &mut self.guarded_by_marker,
            GuardBy::Rights => &mut self.guarded_by_rights,
        }
    }

    /// Whether a page of a range is guarded.
    fn is_guarded(&self, pages: Range<usize>) -> bool {
        self.guarded_by_marker.has_any(pages.clone()) || self.guarded_by_rights.has_any(pages)
    }

    /// The same numbers in every test.
    fn draw(&mut self) -> u64 {
        self.n_random += 1;
        self.n_random.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl Fake {
    /// A kernel with OS pages of `os_page_bytes` and an address range of `range_bytes`.
    #[must_use]
    pub fn new(os_page_bytes: usize, range_bytes: usize) -> Self {
        assert!(os_page_bytes.is_power_of_two() && os_page_bytes <= PAGE_BYTES);
        Self {
            os_page_bytes,
            range_bytes,
            holds_slow_calls: AtomicBool::new(false),
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

    /// As [`Fake::plan`], but the calls that fail do half their work first.
    pub fn plan_half_way(&self, failure: Failure) {
        self.plan(Some(failure));
        self.lock().half_way = true;
    }

    /// Calls since the last [`Fake::plan`].
    #[must_use]
    pub fn n_calls(&self) -> u64 {
        self.lock().n_calls
    }

    /// Moves the clock forward.
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

    /// Bytes prefaulted since the beginning.
    #[must_use]
    pub fn prefaulted_bytes(&self) -> u64 {
        self.lock().prefaulted_bytes
    }

    /// Makes purges, and readings of the control group's limit, wait inside the kernel, or lets them go on.
    pub fn hold_slow_calls(&self, hold: bool) {
        self.holds_slow_calls.store(hold, Ordering::SeqCst);
    }

    /// Calls that wait now.
    #[must_use]
    pub fn n_held_calls(&self) -> u32 {
        self.n_held.load(Ordering::SeqCst)
    }

    /// Sets the memory limit of the control group.
    pub fn limit_group_bytes(&self, bytes: u64) {
        self.lock().group_bytes = Some(bytes);
    }

    /// Makes what is mapped count against a limit.
    pub fn charge_mappings(&self) {
        self.lock().charges_mappings = true;
    }

    /// Refuses to take memory back that stays mapped, as if it was locked.
    pub fn keep_memory(&self) {
        self.lock().keeps_memory = true;
    }

    /// Bytes committed now.
    #[must_use]
    pub fn committed_bytes(&self) -> usize {
        self.lock().committed.len() * self.os_page_bytes
    }

    /// Makes purges succeed without clearing the memory, as some emulators do.
    pub fn keep_contents_on_purge(&self) {
        self.lock().purge_keeps_contents = true;
    }

    /// Grants huge pages of this size on request, and answers that all memory is resident.
    pub fn give_huge_pages(&self, bytes: usize) {
        let mut state = self.lock();
        state.huge_page_bytes = bytes;
        state.all_resident = true;
    }

    /// Refuses to commit more than `bytes` in total, as under a limit of address space.
    pub fn limit_committed(&self, bytes: usize) {
        self.lock().most_committed = Some(bytes);
    }

    /// Answers that all memory is resident, or none.
    pub fn say_resident(&self, resident: bool) {
        self.lock().all_resident = resident;
    }

    /// Bytes for which huge pages are requested now.
    #[must_use]
    pub fn huge_bytes(&self) -> usize {
        self.lock().huge.len() * self.os_page_bytes
    }

    /// Gives huge pages without a request.
    pub fn give_huge_pages_unasked(&self) {
        self.lock().huge_unasked = true;
    }

    /// Refuses markers, as kernels before Linux 6.13 do.
    pub fn refuse_markers(&self) {
        self.lock().has_no_markers = true;
    }

    /// Whether guarded memory is refused to be made accessible.
    pub fn refuse_to_open(&self, refuse: bool) {
        self.lock().opens_nothing = refuse;
    }

    /// Refuses to guard more than `bytes` in total by access rights, as at the limit of mappings.
    pub fn limit_guarded_by_rights(&self, bytes: usize) {
        self.lock().most_guarded_by_rights = Some(bytes);
    }

    /// Bytes guarded now by these means.
    #[must_use]
    pub fn guarded_bytes(&self, by: GuardBy) -> usize {
        self.lock().guarded(by).len() * self.os_page_bytes
    }

    /// Whether the OS page with this address is guarded.
    #[must_use]
    pub fn is_guarded(&self, at: *const u8) -> bool {
        let state = self.lock();
        let page = (at.addr() - state.address_range) / self.os_page_bytes;
        state.is_guarded(page..page + 1)
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

    /// Counts a call, and fails it if the plan says so.
    fn call(&self) -> Result<Inside<'_>, Errno> {
        self.call_or_half_way(|_| ())
    }

    /// As [`Fake::call`]; `half` does what the call does before it fails half-way.
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

    /// Takes the memory of ranges back, in one call.
    ///
    /// # Safety
    /// - As for [`Os::purge`](crate::Os::purge), for each range.
    #[allow(unsafe_code)]
    unsafe fn take_back(&self, state: &mut State, ranges: &[MemoryRange]) {
        for &MemoryRange { start, bytes } in ranges {
            let pages = self.pages(state, start, bytes);
            assert!(state.committed.has_all(pages), "purging memory that is not committed");
            if !state.purge_keeps_contents {
                // SAFETY: the range is inside the address range (checked by `pages`), and its contents are not needed.
                unsafe { start.write_bytes(0, bytes) };
            }
        }
        let bytes = ranges.iter().map(|range| range.bytes).sum();
        state.purged_bytes += bytes as u64;
        state.longest_purge_bytes = state.longest_purge_bytes.max(bytes);
    }

    /// Bytes of the first half of a range, in whole OS pages.
    fn half(&self, bytes: usize) -> usize {
        bytes / 2 / self.os_page_bytes * self.os_page_bytes
    }

    /// The OS pages of a part of the address range.
    fn pages(&self, state: &State, at: *mut u8, bytes: usize) -> Range<usize> {
        let offset = at.addr().checked_sub(state.address_range).expect("the range starts inside the address range");
        assert!(offset % self.os_page_bytes == 0 && bytes % self.os_page_bytes == 0 && bytes > 0);
        assert!(offset + bytes <= self.range_bytes, "the range ends inside the address range");
        offset / self.os_page_bytes..(offset + bytes) / self.os_page_bytes
    }
}

mod calls;
mod page_set;

#[cfg(test)]
mod tests;
