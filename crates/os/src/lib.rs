//! All system calls of the allocators.
//!
//! Long because: it has the contract of each call.
//!
//! Memory has these states, and most calls are a transition between two of them:
//!
//! ```text
//!              commit                 the program writes
//!  reserved ───────────▶ ready ─────────────────────────▶ dirty
//!     ▲                    ▲                                │
//!     │ release            └────────────── purge ───────────┘
//!     └──────────────────────── (from any state)
//! ```
//!
//! | state | address space | memory behind it | contents |
//! |---|---|---|---|
//! | reserved | set aside, not mapped | none | an access faults |
//! | ready | mapped | none | zero |
//! | dirty | mapped | yes | whatever was written |
//! | clean | mapped: ready again after a purge | none | zero, if [`Os::purge_zeroes`] says so |
//! | guarded | mapped | none | an access faults, until [`Os::unguard`] makes it ready again |
//!
//! Layer: above `base`, below the heap. [`System`] is the kernel; `fake::Fake` (feature `fake`) is one for tests, which fails on demand.
//! Cost: one system call each, except for [`Os::now_ms`], which makes none, and [`Os::relocate`], which makes several. A call that fails returns the
//! [`Errno`] and has changed no state, unless its documentation says otherwise.
#![no_std]

#[cfg(feature = "fake")]
extern crate alloc;
#[cfg(feature = "fake")]
extern crate std;

// Everywhere.
mod access_fault;
mod constructors;
mod errno;
#[cfg(feature = "fake")]
pub mod fake;
mod fatal;
mod futex;
mod inside;
mod late;
mod scratch;
pub mod stack;
mod start_function;
pub mod thread;

// 64-bit Linux and Android.
#[cfg(door = "linux")]
mod append;
#[cfg(door = "linux")]
pub mod cgroup;
#[cfg(door = "linux")]
mod charged;
#[cfg(door = "linux")]
pub mod closable;
#[cfg(door = "linux")]
pub mod fault;
#[cfg(door = "linux")]
mod file;
#[cfg(door = "linux")]
pub mod growing_file;
#[cfg(door = "linux")]
mod linux;
#[cfg(door = "linux")]
mod module;
#[cfg(door = "linux")]
mod output;
#[cfg(door = "linux")]
pub mod pin;
#[cfg(door = "linux")]
mod readable;
#[cfg(all(test, door = "linux"))]
mod refused;
#[cfg(door = "linux")]
mod shared_words;
#[cfg(all(test, door = "linux"))]
mod test_range;
#[cfg(door = "linux")]
pub mod weak_symbols;

// What POSIX has.
#[cfg(any(door = "linux", door = "bsd"))]
pub mod clock;
#[cfg(any(door = "linux", door = "bsd"))]
pub mod process;
#[cfg(any(door = "linux", door = "bsd"))]
mod pthread;

// Other platforms.
#[cfg(not(door = "linux"))]
mod absent;
#[cfg(door = "bsd")]
mod bsd;
#[cfg(door = "wasm")]
mod wasm;
#[cfg(door = "windows")]
mod windows;

#[cfg(door = "linux")]
pub use append::append;
pub use errno::Errno;
pub use fatal::{fatal, report, report_lines};
pub use futex::Futex;
pub use inside::Inside;
pub use late::{Late, Zeroed};
#[cfg(door = "linux")]
pub use module::CodeAddress;
#[cfg(door = "linux")]
pub use output::{OutputFile, read_pieces, write_descriptor};
#[cfg(any(door = "linux", door = "bsd"))]
pub use pthread::ExitHook;
pub use scratch::{map_for_good, with_long_text, with_rows, with_zeros};
#[cfg(door = "linux")]
pub use shared_words::SharedWords;

#[cfg(any(door = "bsd", door = "wasm"))]
pub use absent::closable;
#[cfg(not(door = "linux"))]
pub use absent::{
    CodeAddress, OutputFile, SharedWords, append, fault, growing_file, pin, read_pieces, weak_symbols, write_descriptor,
};
#[cfg(not(door = "linux"))]
use absent::{module, readable};

// The door: its parts that are everywhere, under one name.
#[cfg(door = "bsd")]
use bsd as kernel;
#[cfg(door = "bsd")]
pub use bsd::Bsd as System;
#[cfg(door = "linux")]
use linux as kernel;
#[cfg(door = "linux")]
pub use linux::Linux as System;
#[cfg(door = "wasm")]
use wasm as kernel;
#[cfg(door = "wasm")]
pub use wasm::{ExitHook, Wasm as System, clock, process};
#[cfg(door = "windows")]
use windows as kernel;
#[cfg(door = "windows")]
pub use windows::{ExitHook, Windows as System, clock, closable, process};

/// The kernel did not move memory ([`Os::relocate`]). The source is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMoved {
    /// The kernel's error.
    pub errno: Errno,
    /// The state of the range that the memory was to be moved to.
    pub target: Target,
}

/// The state of the target of a move that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// It is committed, as before. Its contents are undefined.
    Committed,
    /// It is reserved: it was unmapped for the move, and the kernel refused to map it again.
    Reserved,
    /// Another part of the program has mapped something there meanwhile: it must not be touched again.
    Taken,
}

/// How the kernel makes every access to a range fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardBy {
    /// By markers in the page tables (`MADV_GUARD_INSTALL`, Linux 6.13): the mapping stays in one piece.
    Marker,
    /// By access rights: the mapping is split in up to three, and a process has a limited number of mappings.
    Rights,
}

/// Memory that starts at an address. The layout is that of C's `struct iovec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct MemoryRange {
    /// The first byte.
    pub start: *mut u8,
    /// The length.
    pub bytes: usize,
}

impl MemoryRange {
    /// Nothing.
    pub const EMPTY: Self = Self { start: core::ptr::null_mut(), bytes: 0 };
}

/// How memory gets its OS pages before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefault {
    /// By a write to every OS page.
    Touch,
    /// By telling the kernel that the memory will be needed, which it may ignore.
    WillNeed,
    /// By asking the kernel for all of them at once.
    Populate,
}

/// What an allocator needs from an operating system.
///
/// # Safety
/// Memory that [`Os::commit`] has mapped is zero, and stays valid at its address until it is released.
#[allow(unsafe_code)]
pub unsafe trait Os: Sync {
    /// Size of an OS page in bytes: a power of two, at most [`PAGE_BYTES`](freestone_base::units::PAGE_BYTES).
    fn os_page_bytes(&self) -> usize;

    /// The size in bytes of the address range of a process with enough address space. Limits of the process do not matter, because nothing in
    /// the range is mapped.
    fn range_bytes_wanted(&self) -> usize;

    /// Whether memory is one piece that grows at its end: to commit a part is to get what lies before it, too. What is needed first, and whatever other
    /// things have to be committed with it, then belongs at the beginning of an address range.
    fn grows_at_its_end(&self) -> bool {
        false
    }

    /// Proposes the start of `bytes` of address space, aligned to a page, where nothing seems to be mapped. Maps nothing:
    /// [`Os::commit`] finds out. Another `attempt` proposes another place; `None` when there is none left to propose.
    fn propose_range(&self, bytes: usize, attempt: u32) -> Option<*mut u8>;

    /// Whether the kernel maps no `bytes` now, wherever it likes: then no place that is proposed is better than another. It may say `false` without asking.
    fn refuses(&self, _bytes: usize) -> bool {
        false
    }

    /// Reserved → ready: maps `bytes` at `at`. `lazily` asks the kernel not to count the memory before it is written.
    ///
    /// # Errors
    /// [`Errno::EXIST`] when another mapping is in the way, [`Errno::NOMEM`] when memory, address space or mappings run out.
    ///
    /// # Safety
    /// - `at` and `bytes` are multiples of the OS page and lie inside an address range proposed by this object.
    unsafe fn commit(&self, at: *mut u8, bytes: usize, lazily: bool) -> Result<(), Errno>;

    /// Any state → reserved: unmaps the range.
    ///
    /// # Errors
    /// [`Errno::NOMEM`] when unmapping would split a mapping beyond the kernel's limit; the memory stays mapped.
    ///
    /// # Safety
    /// - The range is committed, and no code uses it any more.
    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno>;

    /// Dirty → clean: gives the memory back and keeps the addresses.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] or [`Errno::INVAL`] for locked pages, [`Errno::NOMEM`]. A part may have been given back; the contents are undefined.
    ///
    /// # Safety
    /// - The range is committed and made of whole OS pages, and its contents are not needed.
    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno>;

    /// Purges the first ranges, as many as the kernel takes with one call (Linux 6.15: all, if it refuses none). Returns how many; none only if it refused the
    /// first, of which a part may have been given back.
    ///
    /// # Safety
    /// - As for [`Os::purge`], for each range.
    unsafe fn purge_first(&self, ranges: &[MemoryRange]) -> usize {
        // SAFETY: the first range is committed and made of whole OS pages, and its contents are not needed.
        ranges.first().map_or(0, |range| usize::from(unsafe { self.purge(range.start, range.bytes) }.is_ok()))
    }

    /// Lets the kernel take the memory when it runs short: at any moment between now and the next write. Until then it stays dirty.
    ///
    /// # Errors
    /// As for [`Os::purge`].
    ///
    /// # Safety
    /// - As for [`Os::purge`].
    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno>;

    /// Whether purged memory reads as zero. The first [`Os::purge`] that succeeds finds out: under some emulators `madvise` succeeds and
    /// does nothing.
    fn purge_zeroes(&self) -> bool;

    /// Moves the memory behind `bytes` at `from` to `to` without copying; `from` is ready (zero) afterwards. Not every kernel can.
    ///
    /// # Errors
    /// The kernel's error; nothing has moved, and [`NotMoved::target`] is the state of the target.
    ///
    /// # Safety
    /// - Both ranges are committed, page-aligned and do not overlap; the contents at `to` are not needed.
    unsafe fn relocate(&self, _from: *mut u8, _bytes: usize, _to: *mut u8) -> Result<(), NotMoved> {
        Err(NotMoved { errno: Errno::INVAL, target: Target::Committed })
    }

    /// Ready → ready, with memory behind it.
    ///
    /// # Errors
    /// The kernel does not support it, or has no memory. The OS pages that got memory keep it.
    ///
    /// # Safety
    /// - The range is ready, and made of whole OS pages.
    unsafe fn prefault(&self, at: *mut u8, bytes: usize, how: Prefault) -> Result<(), Errno>;

    /// Ready → guarded: every access to the range faults. A purge changes nothing about that; releasing the range ends it. By markers, what memory the range
    /// has goes back, and it reads as zero when it is ready again; by access rights it keeps it.
    ///
    /// # Errors
    /// [`Errno::INVAL`] if the kernel has no markers, or the memory is locked; [`Errno::NOMEM`] at the limit of mappings.
    ///
    /// # Safety
    /// - The range is ready, made of whole OS pages, and no code uses it.
    unsafe fn guard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno>;

    /// Guarded → ready.
    ///
    /// # Errors
    /// The kernel's; the range stays guarded.
    ///
    /// # Safety
    /// - The range was guarded, in whole OS pages, by the same means.
    unsafe fn unguard(&self, at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno>;

    /// Whether the kernel gives huge pages without a request, wherever a whole one fits: a guard inside takes it away.
    fn gives_huge_pages_unasked(&self) -> bool {
        false
    }

    /// Size in bytes of the huge pages that the kernel gives on request; 0 if a request changes nothing.
    fn huge_page_bytes(&self) -> usize {
        0
    }

    /// Asks for huge pages, or for none if `wanted` is false, for OS pages that have no memory yet. The range is committed, and made of whole OS
    /// pages. Neither contents nor access rights change.
    ///
    /// # Errors
    /// The kernel's error; the advice may hold for a part of the range.
    fn advise_huge(&self, _at: *mut u8, _bytes: usize, _wanted: bool) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }

    /// Whether the OS page that starts at `at`, which has been committed at some time, has memory behind it; `false` if the kernel does not say.
    fn is_resident(&self, _at: *mut u8) -> bool {
        false
    }

    /// The limit in bytes that the process's control group sets on its memory; `None` if there is none, or it cannot be read.
    ///
    /// # Errors
    /// An error that passes: without a file descriptor or memory now, it can be read later.
    fn memory_limit_bytes(&self) -> Result<Option<u64>, Errno> {
        Ok(None)
    }

    /// Whether what is mapped counts against a limit of this process or of the system, also where it has no memory.
    fn charges_mappings(&self) -> bool {
        false
    }

    /// A random number. The heap asks while it starts, and not later: a sandbox may refuse system calls then.
    fn random(&self) -> u64;

    /// Milliseconds since a fixed moment: monotonic, with a resolution of a few milliseconds.
    fn now_ms(&self) -> u64;
}
