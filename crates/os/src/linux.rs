//! The Linux kernel, by raw system calls: `errno` stays the program's.
#![allow(unsafe_code)]
//! # Safety
//! Every mapping is made at an address that nothing else occupies (`MAP_FIXED_NOREPLACE`), so that committing can never
//! replace memory of the program; the rest passes the caller's promises on.

use crate::{Errno, NotMoved, Os, Prefault, cgroup, process};
use core::ptr;
use freestone_base::sync::{AtomicU8, AtomicUsize, Ordering};
use freestone_base::{align, ptr as address};
use rustix::io::Errno as KernelErrno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The kernel this process runs on.
#[derive(Debug)]
pub struct Linux;

/// The window is this large unless the machine has more than an eighth of it as memory.
const WINDOW_BYTES_LEAST: usize = 1 << 40;

/// Window bytes for each byte of memory: address space is free, and room for big blocks to grow is worth having.
const WINDOW_PER_MEMORY: usize = 8;

/// Where a window is looked for at random: above the shadow of sanitizers (on AArch64 it ends at `0x2010_0000_0000`), below
/// position-independent programs, their `brk` heap, libraries and stacks, on every x86-64 and AArch64 kernel with 47 address bits or more.
const PLACES: core::ops::Range<usize> = 0x2800_0000_0000..0x5000_0000_0000;

/// Random places tried before the kernel is asked for one.
const RANDOM_ATTEMPTS: u32 = 3;

/// Attempts in all.
const ATTEMPTS: u32 = RANDOM_ATTEMPTS + 1;

/// Alignment of a random window: one top-level page table entry's half, so that page tables are not shared.
const WINDOW_ALIGN: usize = 1 << 30;

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

    fn window_bytes_wanted(&self) -> usize {
        let info = rustix::system::sysinfo();
        let memory = (info.totalram as usize).saturating_mul(info.mem_unit as usize);
        let wanted = memory.saturating_mul(WINDOW_PER_MEMORY).max(WINDOW_BYTES_LEAST);
        let wanted = wanted.checked_next_power_of_two().unwrap_or(WINDOW_BYTES_LEAST);
        match rustix::process::getrlimit(rustix::process::Resource::As).current {
            // A limited address space is all there is to hand out: more window would only need more page map.
            Some(limit) => wanted.min((limit as usize).checked_next_power_of_two().unwrap_or(wanted)),
            None => wanted,
        }
    }

    fn propose_window(&self, bytes: usize, attempt: u32) -> Option<*mut u8> {
        if attempt < RANDOM_ATTEMPTS {
            let places = (PLACES.end - PLACES.start).checked_sub(bytes)? / WINDOW_ALIGN;
            let place = random() as usize % (places + 1);
            return Some(address::from_exposed(PLACES.start + place * WINDOW_ALIGN));
        }
        if attempt < ATTEMPTS { find_gap(bytes) } else { None }
    }

    unsafe fn commit(&self, at: *mut u8, bytes: usize, lazily: bool) -> Result<(), Errno> {
        let lazy = if lazily { MapFlags::NORESERVE } else { MapFlags::empty() };
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE | lazy;
        // SAFETY: the flag makes the kernel refuse a place that is taken; see the module header.
        let got = unsafe { mmap_anonymous(at.cast(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        if got == at.cast() {
            address::expose(got);
            return Ok(());
        }
        // A kernel or emulator that does not know the flag took the address for a hint.
        // SAFETY: this mapping was made two lines above and nobody has seen it.
        let _ = unsafe { munmap(got, bytes) };
        Err(Errno::EXIST)
    }

    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the caller gives up the range.
        unsafe { munmap(at.cast(), bytes) }.map_err(Errno::from)
    }

    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the caller no longer needs the contents.
        unsafe { madvise(at.cast(), bytes, Advice::LinuxDontNeed) }.map_err(Errno::from)
    }

    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the caller no longer needs the contents.
        unsafe { madvise(at.cast(), bytes, Advice::LinuxFree) }.map_err(Errno::from)
    }

    fn purge_zeroes(&self) -> bool {
        /// 0 unknown, 1 yes, 2 no.
        static ANSWER: AtomicU8 = AtomicU8::new(0);
        match ANSWER.load(Ordering::Relaxed) {
            0 => {
                let zeroes = try_purge_zeroes().unwrap_or(false);
                ANSWER.store(if zeroes { 1 } else { 2 }, Ordering::Relaxed);
                zeroes
            }
            answer => answer == 1,
        }
    }

    unsafe fn relocate(&self, from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), NotMoved> {
        // SAFETY: the caller's promise.
        unsafe { relocate::relocate(from, bytes, to) }
    }

    unsafe fn prefault(&self, at: *mut u8, bytes: usize, how: Prefault) -> Result<(), Errno> {
        // SAFETY: the range is ready: nobody uses it, and it reads as zero before and after.
        unsafe {
            match how {
                Prefault::Touch => {
                    for offset in (0..bytes).step_by(process::os_page_bytes()) {
                        at.add(offset).write_volatile(0);
                    }
                    Ok(())
                }
                Prefault::WillNeed => madvise(at.cast(), bytes, Advice::WillNeed).map_err(Errno::from),
                Prefault::Populate => madvise(at.cast(), bytes, Advice::LinuxPopulateWrite).map_err(Errno::from),
            }
        }
    }

    fn huge_page_bytes(&self) -> usize {
        /// What was found, plus one; 0 before the first time.
        static ANSWER: AtomicUsize = AtomicUsize::new(0);
        let answer = ANSWER.load(Ordering::Relaxed);
        if answer != 0 {
            return answer - 1;
        }
        let found = huge_pages::on_request();
        ANSWER.store(found + 1, Ordering::Relaxed);
        found
    }

    unsafe fn advise_huge(&self, at: *mut u8, bytes: usize, wanted: bool) -> Result<(), Errno> {
        let advice = if wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: changes neither contents nor access.
        unsafe { madvise(at.cast(), bytes, advice) }.map_err(Errno::from)
    }

    fn is_resident(&self, at: *mut u8) -> bool {
        let (mut answer, errno) = (0u8, process::errno());
        // SAFETY: asks about one page and writes one byte.
        let asked = unsafe { libc::mincore(at.cast(), 1, &raw mut answer) } == 0;
        process::set_errno(errno);
        asked && answer & 1 == 1
    }

    fn memory_limit_bytes(&self) -> Option<u64> {
        cgroup::memory_limit_bytes()
    }

    fn now_ms(&self) -> u64 {
        let now = clock(libc::CLOCK_MONOTONIC_COARSE);
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }
}

/// A clock that cannot fail, read by the C library: it knows the way without a system call, also under emulation.
fn clock(id: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(id, &mut now) };
    now
}

/// A random number; if the kernel has none to give yet, one from the clock and this stack's random place.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let here = ptr::from_ref(&bytes).addr() as u64;
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => {
            let now = clock(libc::CLOCK_MONOTONIC);
            (here ^ now.tv_nsec as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7
        }
    }
}

/// Lets the kernel find unused address space: maps it without access and unmaps it again. The answer is the lower half of a gap twice
/// as long as what is wanted: what the program maps later comes to lie at the upper end of the highest gap, which is where a window has
/// the records and bitmaps that it is going to need. (Kernels with 39 or 42 address bits have none of the random places.)
fn find_gap(bytes: usize) -> Option<*mut u8> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let gap_bytes = bytes.checked_mul(2)?;
    // SAFETY: a new mapping where nothing was; it is unmapped before anybody knows of it.
    unsafe {
        let got = mmap_anonymous(ptr::null_mut(), gap_bytes, ProtFlags::empty(), flags).ok()?;
        munmap(got, gap_bytes).ok()?;
        let start = align::up(got.addr(), freestone_base::units::PAGE_BYTES);
        Some(address::from_exposed(start))
    }
}

/// Dirties a page, purges it, and looks.
fn try_purge_zeroes() -> Result<bool, Errno> {
    let bytes = process::os_page_bytes();
    let flags = MapFlags::PRIVATE;
    // SAFETY: a mapping of our own, used and unmapped here.
    unsafe {
        let page = mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)?;
        page.cast::<u8>().write_volatile(0xA5);
        let purged = madvise(page, bytes, Advice::LinuxDontNeed);
        let byte = page.cast::<u8>().read_volatile();
        munmap(page, bytes)?;
        purged?;
        Ok(byte == 0)
    }
}

mod huge_pages;
mod relocate;

#[cfg(test)]
mod tests;
