//! The Linux kernel, through raw system calls, which leave the program's `errno` as it is.
#![allow(unsafe_code)]
//!
//! # Safety
//! Every mapping is made where nothing else is mapped (`MAP_FIXED_NOREPLACE`), so committing cannot replace memory of the program. The other calls
//! change memory that was committed here, by the contract of [`Os`].

use crate::{Errno, GuardBy, MemoryRange, NotMoved, Os, Prefault, cgroup, charged, clock, process};
use answer::Answer;
use core::ptr;
#[cfg(not(shuttle))]
use freestone_base::sync::AtomicU32;
use freestone_base::sync::{AtomicBool, AtomicUsize, Ordering};
use freestone_base::{align, ptr as address};
use rustix::fd::{BorrowedFd, RawFd};
use rustix::io::Errno as KernelErrno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
#[cfg(not(shuttle))]
use rustix::thread::futex::{self, Flags, Timespec};

/// Makes the kernel refuse a range in which something is mapped. Not every C library's headers name it.
const FIXED_NOREPLACE: MapFlags = MapFlags::from_bits_retain(0x10_0000);

/// Of a mapping of which only what is written is to count as memory. Miri knows no such mapping, and takes a plain one.
pub(crate) const UNCOUNTED: MapFlags = if cfg!(miri) { MapFlags::empty() } else { MapFlags::NORESERVE };

/// Standard error's descriptor.
const STDERR: RawFd = 2;

/// The kernel this process runs on.
///
/// ```
/// use freestone_os::{Os, System};
///
/// let bytes = 1 << 20;
/// let mut proposed = (0..).map_while(|attempt| System.propose_range(bytes, attempt));
/// // SAFETY: each place was proposed for as many bytes.
/// let at = proposed.find(|&at| unsafe { System.commit(at, bytes, false) }.is_ok()).expect("1 MiB of address space");
/// // SAFETY: the memory was mapped just now, for this code alone; it is not used after it is released.
/// unsafe {
///     at.write(1);
///     System.purge(at, bytes).expect("the range is committed");
///     System.release(at, bytes).expect("the range is committed");
/// }
/// ```
#[derive(Debug)]
pub struct Linux;

/// Size of the address range: larger than any machine's memory. It costs nothing, because nothing in it is mapped before it is needed.
const RANGE_BYTES: usize = 1 << 44;

/// Where address ranges are tried at random: below position-independent programs, their `brk` heap, libraries and stacks, which the
/// kernel puts into the upper third of the address space.
static PLACES: [core::ops::Range<usize>; 3] = [
    // 47 address bits or more, x86-64 and AArch64; above the shadow of sanitizers (on AArch64 it ends at `0x2010_0000_0000`).
    0x2800_0000_0000..0x5000_0000_0000,
    // 42 address bits.
    0x0100_0000_0000..0x0280_0000_0000,
    // 38 or 39 address bits.
    0x0010_0000_0000..0x0028_0000_0000,
];

/// Random places tried in each of [`PLACES`] that is long enough, before the kernel chooses one.
const RANDOM_ATTEMPTS: u32 = 3;

/// Alignment of a random address range: no more than a range needs, so that its place has 28 bits.
const RANGE_ALIGN: usize = freestone_base::units::PAGE_BYTES;

/// The kernel does not know the advice that populates memory (before Linux 5.14).
static CANNOT_POPULATE: AtomicBool = AtomicBool::new(false);

impl From<KernelErrno> for Errno {
    fn from(errno: KernelErrno) -> Self {
        Self(errno.raw_os_error())
    }
}

// SAFETY: `commit` maps anonymous private memory, which the kernel zeroes, exactly where it was asked to.
unsafe impl Os for Linux {
    fn os_page_bytes(&self) -> usize {
        process::os_page_bytes()
    }

    fn range_bytes_wanted(&self) -> usize {
        RANGE_BYTES
    }

    fn propose_range(&self, bytes: usize, attempt: u32) -> Option<*mut u8> {
        let mut fitting = PLACES.iter().filter(|places| places.len() >= bytes);
        let n_fitting = fitting.clone().count() as u32;
        match fitting.nth((attempt / RANDOM_ATTEMPTS) as usize) {
            Some(places) => {
                let place = random() as usize % ((places.len() - bytes) / RANGE_ALIGN + 1);
                Some(address::from_exposed(places.start + place * RANGE_ALIGN))
            }
            None if attempt == n_fitting * RANDOM_ATTEMPTS => find_gap(bytes),
            None => None,
        }
    }

    fn refuses(&self, bytes: usize) -> bool {
        let Some(at) = map(bytes) else { return true };
        // SAFETY: the memory was mapped just now, and no code uses it.
        unsafe { unmap(at, bytes) };
        false
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, lazily: bool) -> Result<(), Errno> {
        let lazy = if lazily { MapFlags::NORESERVE } else { MapFlags::empty() };
        let flags = MapFlags::PRIVATE | FIXED_NOREPLACE | lazy;
        // SAFETY: the flag makes the kernel refuse a range in which something is mapped.
        let got = unsafe { mmap_anonymous(at.cast(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        if got == at.cast() {
            address::expose(got);
            return Ok(());
        }
        // A kernel or emulator that does not know the flag took the address for a hint.
        // SAFETY: the call above made this mapping, and no other code has its address.
        let _ = unsafe { munmap(got, bytes) };
        Err(Errno::EXIST)
    }

    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: no code uses the range any more.
        unsafe { munmap(at.cast(), bytes) }.map_err(Errno::from)
    }

    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the range is committed and made of whole OS pages, and its contents are not needed.
        unsafe { purge::one(MemoryRange { start: at, bytes }) }
    }

    unsafe fn purge_first(&self, ranges: &[MemoryRange]) -> usize {
        // SAFETY: the ranges are committed and made of whole OS pages, and their contents are not needed.
        unsafe { purge::first(ranges) }
    }

    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the contents of the range are not needed.
        unsafe { madvise(at.cast(), bytes, Advice::LinuxFree) }.map_err(Errno::from)
    }

    fn purge_zeroes(&self) -> bool {
        purge::zeroes()
    }

    unsafe fn relocate(&self, from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), NotMoved> {
        // SAFETY: both ranges are committed and do not overlap, and the contents of `to` are not needed.
        unsafe { relocate::relocate(from, bytes, to) }
    }

    unsafe fn prefault(&self, at: *mut u8, bytes: usize, how: Prefault) -> Result<(), Errno> {
        let advice = match how {
            Prefault::Touch => {
                for offset in (0..bytes).step_by(process::os_page_bytes()) {
                    // SAFETY: the byte is in the range, which is ready: no code uses it, and it reads as zero already.
                    unsafe { at.wrapping_add(offset).write_volatile(0) };
                }
                return Ok(());
            }
            Prefault::WillNeed => Advice::WillNeed,
            Prefault::Populate if CANNOT_POPULATE.load(Ordering::Relaxed) => return Err(Errno::INVAL),
            Prefault::Populate => Advice::LinuxPopulateWrite,
        };
        // SAFETY: the advice gives OS pages memory that reads as zero, which is what they hold already.
        let given = unsafe { madvise(at.cast(), bytes, advice) }.map_err(Errno::from);
        if given == Err(Errno::INVAL) && how == Prefault::Populate {
            CANNOT_POPULATE.store(true, Ordering::Relaxed);
        }
        given
    }

    unsafe fn guard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        // SAFETY: no code uses the range, which is committed.
        unsafe { guards::close(at, bytes, by) }
    }

    unsafe fn unguard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
        // SAFETY: the range is committed; only guarded memory changes, and becomes accessible.
        unsafe { guards::open(at, bytes, by) }
    }

    fn gives_huge_pages_unasked(&self) -> bool {
        static ANSWER: Answer = Answer::new();
        if let Some(answer) = ANSWER.get() {
            return answer;
        }
        let Ok(found) = huge_pages::unasked() else { return false };
        ANSWER.set(found);
        found
    }

    fn huge_page_bytes(&self) -> usize {
        /// The size found, plus one; 0 before the first call.
        static ANSWER: AtomicUsize = AtomicUsize::new(0);
        let answer = ANSWER.load(Ordering::Relaxed);
        if answer != 0 {
            return answer - 1;
        }
        // After an error that may pass, the next call asks again.
        let Ok(found) = huge_pages::on_request() else { return 0 };
        ANSWER.store(found + 1, Ordering::Relaxed);
        found
    }

    fn advise_huge(&self, at: *mut u8, bytes: usize, wanted: bool) -> Result<(), Errno> {
        let advice = if wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: the advice changes neither contents nor access rights.
        unsafe { madvise(at.cast(), bytes, advice) }.map_err(Errno::from)
    }

    fn is_resident(&self, at: *mut u8) -> bool {
        let (mut answer, errno) = (0u8, process::errno());
        // SAFETY: the call is about one OS page, for which it writes one byte of `answer`; it takes any address.
        let asked = unsafe { libc::mincore(at.cast(), 1, &raw mut answer) } == 0;
        process::set_errno(errno);
        asked && answer & 1 == 1
    }

    fn memory_limit_bytes(&self) -> Result<Option<u64>, Errno> {
        cgroup::memory_limit_bytes()
    }

    fn charges_mappings(&self) -> bool {
        charged::mappings_are_charged()
    }

    fn random(&self) -> u64 {
        random()
    }

    #[inline(never)]
    fn now_ms(&self) -> u64 {
        let now = clock::read(libc::CLOCK_MONOTONIC_COARSE);
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }
}

/// What ThreadSanitizer does not see, because these system calls do not go through the C library: that the kernel unmaps memory before it maps other
/// memory in its place.
#[cfg(tsan)]
static N_UNMAPPED: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// Notes that memory was mapped where the kernel likes.
#[inline(always)]
pub(crate) fn note_mapped() {
    #[cfg(tsan)]
    N_UNMAPPED.load(core::sync::atomic::Ordering::Acquire);
}

/// Maps `bytes` that read as zero, where the kernel likes. Only what is written gets memory.
#[inline(never)]
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | UNCOUNTED);
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags) }.ok()?;
    note_mapped();
    address::expose(at);
    Some(at.cast())
}

/// Unmaps what [`map`] mapped.
///
/// # Safety
/// - `map` returned `at` for as many bytes, and no code uses the memory any more.
pub(crate) unsafe fn unmap(at: *mut u8, bytes: usize) {
    #[cfg(tsan)]
    N_UNMAPPED.fetch_add(1, core::sync::atomic::Ordering::Release);
    // SAFETY: the range is one mapping that no code uses (this function's contract).
    let _ = unsafe { munmap(at.cast(), bytes) };
}

/// Writes text to standard error with one call. Errors are ignored.
pub(crate) fn write_error(text: &[u8]) {
    // SAFETY: the descriptor is used within this statement only. If the program has closed or reused it, the write fails or goes there, and
    // touches no memory.
    let _ = rustix::io::write(unsafe { BorrowedFd::borrow_raw(STDERR) }, text);
}

/// Returns when `word` may have changed from `expected`, or after `ms` milliseconds if that is given; may return early.
#[cfg(not(shuttle))]
pub(crate) fn wait(word: &AtomicU32, expected: u32, ms: Option<u32>) {
    let timeout = ms.map(|ms| Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 });
    // The caller reads the word again in every case: woken, interrupted, timed out, or changed before the call.
    let _ = futex::wait(word, Flags::PRIVATE, expected, timeout.as_ref());
}

/// Wakes threads that wait for `word` to change: one, or all.
#[cfg(not(shuttle))]
pub(crate) fn wake(word: &AtomicU32, all: bool) {
    let _ = futex::wake(word, Flags::PRIVATE, if all { i32::MAX as u32 } else { 1 });
}

/// A number that no other living thread has, and that the thread keeps in a forked child.
#[cfg(not(shuttle))]
pub(crate) fn this_thread() -> usize {
    process::errno_address()
}

/// A random number; before the kernel has any, one made from the clock and the stack's random address.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let here = ptr::from_ref(&bytes).addr() as u64;
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => {
            let now = clock::read(libc::CLOCK_MONOTONIC);
            (here ^ now.tv_nsec as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7
        }
    }
}

/// Lets the kernel find unused address space: maps it without access and unmaps it again. Returns the lower half of a gap of twice the size:
/// the kernel puts later mappings of the program at the upper end of the highest gap, and the upper end of the address range is where the heap
/// will need its records and bitmaps.
fn find_gap(bytes: usize) -> Option<*mut u8> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let gap_bytes = bytes.checked_mul(2)?;
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let got = unsafe { mmap_anonymous(ptr::null_mut(), gap_bytes, ProtFlags::empty(), flags) }.ok()?;
    // SAFETY: the call above made this mapping, and no other code has its address.
    unsafe { munmap(got, gap_bytes) }.ok()?;
    Some(address::from_exposed(align::up(got.addr(), freestone_base::units::PAGE_BYTES)))
}

mod answer;
pub(crate) mod guards;
mod huge_pages;
pub(crate) mod process_facts;
mod purge;
mod relocate;
mod scheduling;

/// Threads, and what is said about them to the kernel.
pub(crate) mod threads {
    pub use super::scheduling::{schedule_like_the_first, set_name};
    pub use crate::pthread::count_thread_locals;
    pub(crate) use crate::pthread::{Handle, join, start};
}

#[cfg(test)]
pub(crate) mod tests;
